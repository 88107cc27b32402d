/* SPDX-License-Identifier: MIT */
/*
 * sbx-admin: a person's view of sandboxes. Parse, do, print; everything else is in the table of
 * verbs. Standard output has the result and nothing else.
 */
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"

#include "remote.h"
#include "verb.h"

enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

static int write_out(const struct sbx_buf *out)
{
	int r = out->size ? sbx_fs_write_all(STDOUT_FILENO, out->data, out->size) : 0;

	if (r < 0)
		(void)fprintf(stderr, "sbx-admin: write the result: %s\n", strerror(-r));
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

static int write_json(struct json_object *o)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	size_t size;
	const char *text = sbx_json_text(o, &size);

	if (sbx_buf_append(&out, text, size) < 0 || sbx_buf_append(&out, "\n", 1) < 0) {
		(void)fputs("sbx-admin: out of memory\n", stderr);
		return EXIT_FAILED;
	}
	return write_out(&out);
}

/* Programs get {"error": ...} as they would from a tool; people a line and the particulars. */
static void report(const struct call *call, const struct sbx_err *err, struct json_object *details)
{
	SBX_JSON struct json_object *answer = NULL;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct json_object *error;

	if (call->json) {
		answer = json_object_new_object();
		error = json_object_new_object();
		if (!answer || !error)
			abort();
		sbx_json_add(answer, "error", error);
		sbx_json_add_string(error, "kind", sbx_err_kind_name(err->kind));
		sbx_json_add_string(error, "message", err->message);
		sbx_json_add(error, "details", json_object_get(details));
		(void)write_json(answer); /* the exit status tells of the failure already */
		return;
	}
	if (sbx_show_text(&text, err->message, strlen(err->message)) < 0)
		abort();
	(void)fprintf(stderr, "sbx-admin: %s\n", text.data);
	sbx_buf_clear(&text);
	if (json_object_is_type(details, json_type_object) && sbx_show(details, NULL, &text) == 0 &&
		text.size)
		(void)fputs(text.data, stderr);
}

static int print(const struct call *call, struct json_object *result, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	int r;

	if (call->json)
		return write_json(result);
	if (call->verb->print)
		r = call->verb->print(call, result, &out, err);
	else if ((r = sbx_show(result, call->verb->view, &out)) < 0)
		(void)sbx_err_set(err, -r, "print the result: %m");
	if (r < 0) {
		report(call, err, NULL);
		return EXIT_FAILED;
	}
	return write_out(&out);
}

/* Whether an answered call did what was asked for: a publication may be refused, a host unfit. */
static bool came_about(struct json_object *result)
{
	return !sbx_json_bool(result, "publish_rejected", false) &&
	       sbx_json_bool(result, "usable", true);
}

static int run(const struct call *call)
{
	SBX_JSON struct json_object *result = NULL;
	SBX_JSON struct json_object *details = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	int r = call->verb->run ? call->verb->run(call, &result, &details, &err)
				: sbx_admin_remote(call, &result, &details, &err);

	if (r < 0) {
		report(call, &err, details);
		return EXIT_FAILED;
	}
	r = print(call, result, &err);
	return r == EXIT_OK && !came_about(result) ? EXIT_FAILED : r;
}

static int show_help(const struct call *call)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	if (sbx_admin_help(call->verb, call->group, &out) < 0)
		return EXIT_FAILED;
	return write_out(&out);
}

int main(int argc, char *argv[])
{
	SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	char cwd[PATH_MAX];

	(void)setlocale(LC_ALL, ""); /* the C locale does as well */
	if (!getcwd(cwd, sizeof(cwd)))
		(void)strcpy(cwd, "/"); /* only relative paths need it, and they lead nowhere now */
	if (sbx_admin_parse(argc, argv, cwd, &call, &err) < 0) {
		report(&call, &err, NULL);
		return EXIT_USAGE;
	}
	if (call.version)
		return printf("sbx-admin %s\n", PACKAGE_VERSION) < 0 || fflush(stdout) ? EXIT_FAILED
										       : EXIT_OK;
	if (call.help)
		return show_help(&call);
	return run(&call);
}
