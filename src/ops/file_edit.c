/* SPDX-License-Identifier: MIT */
/*
 * file_edit: exact replacements, all or nothing; also in files that are no valid UTF-8, of which
 * only the matched bytes change. In a live session a command may write the file
 * while we work on it; then the edits are tried on what it wrote, a few times.
 */
#include "sbx/edit.h"

#include "jobs.h"
#include "put.h"

#define TRIES_MAX 5 /* of one call, on a file that keeps changing */

struct edits {
	struct sbx_edit *items;
	size_t n;
};

static void edits_done(struct edits *edits)
{
	sbx_free_pointer(&edits->items);
}

static size_t text_of(struct json_object *edit, const char *key, const char **ret)
{
	struct json_object *text = sbx_json_member(edit, key);

	*ret = text ? json_object_get_string(text) : "";
	return text ? (size_t)json_object_get_string_len(text) : 0;
}

/* The texts are borrowed from args. */
static int take_edits(struct json_object *args, struct edits *ret, struct sbx_err *err)
{
	struct json_object *array = sbx_json_member(args, "edits");
	size_t n =
		json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;

	ret->items = calloc(n + 1, sizeof(*ret->items));
	if (!ret->items)
		return sbx_err_set(err, ENOMEM, "take %zu edits: %m", n);
	for (; ret->n < n; ret->n++) {
		struct json_object *from = json_object_array_get_idx(array, ret->n);
		struct sbx_edit *edit = &ret->items[ret->n];

		edit->old_n = text_of(from, "old_string", &edit->old_s);
		edit->new_n = text_of(from, "new_string", &edit->new_s);
		edit->replace_all = sbx_json_bool(from, "replace_all", false);
	}
	return 0;
}

static int read_text(const struct sbx_target *target, struct sbx_buf *ret, struct stat *ret_st,
	struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	int r;

	r = sbx_target_open(target, &fd, ret_st, err);
	if (r < 0)
		return r;
	r = sbx_fs_read_fd(fd, SBX_EDIT_SIZE_MAX, ret);
	if (r == -EFBIG)
		return sbx_err_kind(err, SBX_KIND_INVALID, EFBIG,
			"'%s' has %lld bytes, file_edit takes files up to %d; use exec_command, "
			"for example \"sed -i\"",
			target->path, (long long)ret_st->st_size, SBX_EDIT_SIZE_MAX);
	if (r < 0)
		return sbx_err_set(err, -r, "read '%s': %m", target->path);
	return 0;
}

static int edit_once(struct sbx_job *job, const struct sbx_target *target,
	const struct edits *edits, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf edited = SBX_BUF_INIT;
	struct sbx_file_put put = {0};
	struct json_object *tool;
	size_t replacements = 0;
	struct stat st;
	int r;

	r = read_text(target, &text, &st, err);
	if (r < 0)
		return r;
	r = sbx_edit_apply(
		text.data, text.size, edits->items, edits->n, &edited, &replacements, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "'%s'", target->path);
	put.data = edited.data ? edited.data : "";
	put.size = edited.size;
	put.expected = &st;
	r = sbx_put_file(job, target, &put, err);
	if (r < 0)
		return r;
	tool = json_object_new_object();
	sbx_json_add_string(tool, "type", "edit");
	sbx_json_add_path(tool, "path", target->path);
	sbx_json_add_int(tool, "edits_applied", (int64_t)edits->n);
	sbx_json_add_int(tool, "replacements", (int64_t)replacements);
	sbx_json_add_int(tool, "bytes_written", (int64_t)edited.size);
	sbx_put_answer(job, &put, tool);
	return 0;
}

int sbx_job_file_edit(struct sbx_job *job, struct sbx_err *err)
{
	SBX_TARGET struct sbx_target target = SBX_TARGET_INIT;
	SBX_CLEANUP(edits_done) struct edits edits = {0};
	int r;

	r = take_edits(sbx_job_tool_args(job), &edits, err);
	if (r < 0)
		return r;
	r = sbx_target_init(&target, job, err);
	if (r < 0)
		return r;
	for (int i = 0; i < TRIES_MAX; i++) {
		r = edit_once(job, &target, &edits, err);
		if (r != -ESTALE)
			break;
	}
	return r;
}
