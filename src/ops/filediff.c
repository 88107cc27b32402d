/* SPDX-License-Identifier: MIT */
#include "filediff.h"

#include <stdio.h>

#include "answer.h"
#include "content.h"
#include "sbx/diff.h"
#include "sbx/fs.h"

#define CONTEXT_LINES 3

static const char omitted_binary[] = "binary";
static const char omitted_too_large[] = "too_large";

void sbx_filediff_done(struct sbx_filediff *diff)
{
	sbx_json_put(&diff->files);
}

int sbx_filediff_change(const struct sbx_place *old, const struct sbx_place *new)
{
	int differences;

	if (!old || !new)
		return old ? SBX_CHANGE_DELETE : SBX_CHANGE_ADD;
	differences = sbx_place_compare(old, new);
	if (differences < 0)
		return differences;
	if (differences & SBX_DIFFERS_KIND)
		return SBX_CHANGE_REPLACE;
	if (differences & SBX_DIFFERS_CONTENT)
		return SBX_CHANGE_MODIFY;
	if (S_ISDIR(new->st.st_mode))
		differences &= ~SBX_DIFFERS_MTIME;
	return differences ? SBX_CHANGE_METADATA : SBX_CHANGE_NONE;
}

static void add_kinds(
	struct json_object *o, const struct sbx_place *old, const struct sbx_place *new)
{
	sbx_json_add_string(o, "old_kind", old ? sbx_mode_name(old->st.st_mode) : NULL);
	sbx_json_add_string(o, "new_kind", new ? sbx_mode_name(new->st.st_mode) : NULL);
	if (old)
		sbx_json_add_int(o, "old_mode", old->st.st_mode & 07777);
	else
		sbx_json_add(o, "old_mode", NULL);
	if (new)
		sbx_json_add_int(o, "new_mode", new->st.st_mode & 07777);
	else
		sbx_json_add(o, "new_mode", NULL);
}

static bool has_text(const struct sbx_place *place)
{
	return !place || S_ISREG(place->st.st_mode) || S_ISLNK(place->st.st_mode);
}

/* The bytes to compare. -EFBIG. */
static int load(const struct sbx_place *place, struct sbx_buf *ret)
{
	if (!place)
		return 0;
	if (S_ISLNK(place->st.st_mode))
		return sbx_link_read(place->dir_fd, place->name, ret);
	return sbx_place_read(place, SBX_FILEDIFF_INPUT_MAX, ret);
}

static int unify(const char *path, const struct sbx_buf *a, const struct sbx_buf *b,
	const struct sbx_place *old, const struct sbx_place *new, struct sbx_buf *ret,
	struct sbx_err *err)
{
	SBX_LINES struct sbx_lines a_lines = SBX_LINES_INIT;
	SBX_LINES struct sbx_lines b_lines = SBX_LINES_INIT;
	char a_name[SBX_PATH_MAX + 3], b_name[SBX_PATH_MAX + 3];
	int r;

	(void)snprintf(a_name, sizeof(a_name), "a/%s", path);
	(void)snprintf(b_name, sizeof(b_name), "b/%s", path);
	r = sbx_lines_split(a->data, a->size, 0, &a_lines, err);
	if (r == 0)
		r = sbx_lines_split(b->data, b->size, 0, &b_lines, err);
	if (r < 0)
		return r;
	return sbx_diff_unified(&a_lines, &b_lines, old ? a_name : NULL, new ? b_name : NULL,
		CONTEXT_LINES, ret, err);
}

/* The text of a change, or in *ret_omitted why there is none. */
static int text_of(const char *path, const struct sbx_place *old, const struct sbx_place *new,
	struct sbx_buf *ret, const char **ret_omitted, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf a = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf b = SBX_BUF_INIT;
	int r;

	r = load(old, &a);
	if (r == 0)
		r = load(new, &b);
	if (r == -EFBIG) {
		*ret_omitted = omitted_too_large;
		return 0;
	}
	if (r < 0)
		return sbx_err_set(err, -r, "read '%s': %m", path);
	if (sbx_text_is_binary(a.data, a.size) || sbx_text_is_binary(b.data, b.size)) {
		*ret_omitted = omitted_binary;
		return 0;
	}
	return unify(path, &a, &b, old, new, ret, err);
}

static int add_text(struct sbx_filediff *diff, struct json_object *o, const char *path,
	const struct sbx_place *old, const struct sbx_place *new, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	const char *omitted = NULL;
	int r;

	r = text_of(path, old, new, &text, &omitted, err);
	if (r < 0)
		return r;
	if (text.size > SBX_FILEDIFF_TEXT_MAX ||
		diff->text_size + text.size > SBX_FILEDIFF_TEXTS_MAX)
		omitted = omitted_too_large;
	if (omitted) {
		sbx_json_add(o, "diff", NULL);
		sbx_json_add_string(o, "diff_omitted", omitted);
		return 0;
	}
	diff->text_size += text.size;
	sbx_json_add_bytes(o, "diff", text.data ? text.data : "", text.size);
	return 0;
}

int sbx_filediff_add(struct sbx_filediff *diff, const char *path, const struct sbx_place *old,
	const struct sbx_place *new, struct sbx_err *err)
{
	SBX_JSON struct json_object *o = NULL;
	int change = sbx_filediff_change(old, new);
	int r = 0;

	if (change < 0)
		return sbx_err_set(err, -change, "compare '%s': %m", path);
	if (change == SBX_CHANGE_NONE || diff->n++ >= SBX_FILEDIFF_FILES_MAX)
		return 0;
	o = json_object_new_object();
	sbx_json_add_path(o, "path", path);
	sbx_json_add_string(o, "change", sbx_change_name((enum sbx_change)change));
	add_kinds(o, old, new);
	if (change != SBX_CHANGE_METADATA && change != SBX_CHANGE_REPLACE && has_text(old) &&
		has_text(new))
		r = add_text(diff, o, path, old, new, err);
	else
		sbx_json_add(o, "diff", NULL);
	if (r < 0)
		return r;
	if (!diff->files)
		diff->files = json_object_new_array();
	sbx_answer_push(diff->files, sbx_take(&o));
	return 0;
}

void sbx_filediff_answer(struct sbx_filediff *diff, struct json_object *ret_object)
{
	sbx_json_add(ret_object, "files",
		diff->files ? sbx_take(&diff->files) : json_object_new_array());
	sbx_json_add_int(ret_object, "n_files", (int64_t)diff->n);
}
