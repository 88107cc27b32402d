/* SPDX-License-Identifier: MIT */
#include "print.h"

#include <stdio.h>
#include <string.h>

#include "remote.h"
#include "table.h"
#include "value.h"

static int done(int r, struct sbx_err *err)
{
	return r < 0 ? sbx_err_set(err, -r, "print the result: %m") : 0;
}

int sbx_admin_print_nothing(const struct call *call, struct json_object *result,
	struct sbx_buf *out, struct sbx_err *err)
{
	(void)call;
	(void)result;
	(void)out;
	(void)err;
	return 0;
}

/* {"count", "paths": the first of them}: what the import could not take over. */
static int print_loss(
	struct json_object *result, const char *key, const char *what, struct sbx_buf *out)
{
	struct json_object *loss = sbx_json_member(result, key);
	int64_t count = sbx_json_int(loss, "count", 0);
	int r;

	if (count == 0)
		return 0;
	r = sbx_buf_printf(out, "%jd %s: ", (intmax_t)count, what);
	if (r == 0)
		r = sbx_show_value(out, "paths", sbx_json_member(loss, "paths"));
	return r < 0 ? r : sbx_buf_append(out, "\n", 1);
}

int sbx_admin_print_created(const struct call *call, struct json_object *result,
	struct sbx_buf *out, struct sbx_err *err)
{
	static const struct {
		const char *key, *what;
	} losses[] = {
		{"vanished", "vanished while being copied"},
		{"not_kept", "not kept (sockets, devices)"},
		{"other_file_systems", "mount points, left empty"},
	};
	const char *id = sbx_json_string(result, "sandbox_id", "");
	int r = sbx_show(result, call->verb->view, out);

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(losses); i++)
		r = print_loss(result, losses[i].key, losses[i].what, out);
	if (r == 0)
		r = sbx_buf_printf(out,
			"\nnext: let an MCP client run 'sandbox-mcp --set runtime' and call its "
			"tools with sandbox_id '%s'\n",
			id);
	return done(r, err);
}

static size_t widest_owner(struct json_object *ranges)
{
	size_t widest = 0;

	for (size_t i = 0; i < json_object_array_length(ranges); i++) {
		const char *owner =
			sbx_json_string(json_object_array_get_idx(ranges, i), "owner", "");

		widest = SBX_MAX(widest, sbx_table_width(owner));
	}
	return widest;
}

/* The line at *at without its end; moves *at behind it. */
static size_t next_line(const char *content, size_t size, size_t *at)
{
	const char *start = content + *at;
	const char *end = memchr(start, '\n', size - *at);
	size_t n = end ? (size_t)(end - start) : size - *at;

	*at += n + (end != NULL);
	return n;
}

int sbx_admin_print_owned_lines(
	struct json_object *ranges, const char *content, size_t size, struct sbx_buf *out)
{
	int width = (int)widest_owner(ranges);
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; i < json_object_array_length(ranges); i++) {
		struct json_object *range = json_object_array_get_idx(ranges, i);
		const char *owner = sbx_json_string(range, "owner", "");
		int64_t first = sbx_json_int(range, "start_line", 1);
		int64_t count = sbx_json_int(range, "line_count", 0);

		for (int64_t line = first; line < first + count && at < size && r == 0; line++) {
			size_t from = at;
			size_t n = next_line(content, size, &at);

			r = sbx_buf_printf(out, "%-*s %6jd  ", width, owner, (intmax_t)line);
			if (r == 0)
				r = sbx_show_lines(out, content + from, n);
			if (r == 0)
				r = sbx_buf_append(out, "\n", 1);
		}
	}
	return r;
}

int sbx_admin_print_blame(const struct call *call, struct json_object *result, struct sbx_buf *out,
	struct sbx_err *err)
{
	struct json_object *ranges = sbx_json_member(result, "ranges");
	SBX_BUF struct sbx_buf content = SBX_BUF_INIT;
	SBX_JSON struct json_object *ignored = NULL;
	int r;

	if (!json_object_is_type(ranges, json_type_array) || !json_object_array_length(ranges))
		return done(sbx_buf_append_string(out, "the file is empty\n"), err);
	r = sbx_admin_fetch("cat", call->args, &content, &ignored, err);
	if (r < 0)
		return r;
	return done(sbx_admin_print_owned_lines(
			    ranges, content.data ? content.data : "", content.size, out),
		err);
}

static int print_file(struct json_object *file, struct sbx_buf *out)
{
	const char *path = sbx_json_string(file, "path", "");
	const char *diff = sbx_json_string(file, "diff", NULL);
	int r = sbx_buf_printf(
		out, "%s%s ", out->size ? "\n" : "", sbx_json_string(file, "change", "changed"));

	if (r == 0)
		r = sbx_show_text(out, path, strlen(path));
	if (r == 0)
		r = sbx_buf_append(out, "\n", 1);
	if (r == 0 && diff)
		r = sbx_show_lines(out, diff, strlen(diff));
	if (r == 0 && diff && *diff && diff[strlen(diff) - 1] != '\n')
		r = sbx_buf_append(out, "\n", 1);
	return r;
}

int sbx_admin_print_diff(const struct call *call, struct json_object *result, struct sbx_buf *out,
	struct sbx_err *err)
{
	struct json_object *files = sbx_json_member(result, "files");
	int r = 0;

	(void)call;
	if (!json_object_is_type(files, json_type_array))
		return done(sbx_show(result, NULL, out), err);
	if (!json_object_array_length(files))
		return done(sbx_buf_append_string(out, "no difference\n"), err);
	for (size_t i = 0; r == 0 && i < json_object_array_length(files); i++)
		r = print_file(json_object_array_get_idx(files, i), out);
	return done(r, err);
}

/* A publication's outcome lies in "publish"; its other members stand beside it. */
int sbx_admin_print_publish(const struct call *call, struct json_object *result,
	struct sbx_buf *out, struct sbx_err *err)
{
	struct json_object *publish = sbx_json_member(result, "publish");
	int r = sbx_show(
		json_object_is_type(publish, json_type_object) ? publish : result, NULL, out);

	(void)call;
	return done(r, err);
}
