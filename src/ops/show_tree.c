/* SPDX-License-Identifier: MIT */
/* cat and ls: a file or a directory of a version, for people. */
#include <string.h>

#include "answer.h"
#include "changeset.h"
#include "content.h"
#include "jobs.h"
#include "target.h"

#define CHUNK_SIZE  (256u << 10)
#define ENTRIES_MAX 100000 /* that ls lists; "n_entries" counts all */

/* Sends the file in pieces; *ret_size is what was sent. */
static int send_all(struct sbx_job *job, int fd, uint64_t *ret_size)
{
	SBX_FREE char *chunk = malloc(CHUNK_SIZE);
	uint64_t sent = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	while ((n = read(fd, chunk, CHUNK_SIZE)) != 0) {
		int r = n < 0 ? -errno
			      : job->context->chunk(job->context->chunk_data, chunk, (size_t)n);

		if (r < 0 && r != -EINTR)
			return r;
		sent += n > 0 ? (uint64_t)n : 0;
	}
	*ret_size = sent;
	return 0;
}

int sbx_job_cat(struct sbx_job *job, struct sbx_err *err)
{
	SBX_TARGET struct sbx_target target = SBX_TARGET_INIT;
	SBX_CLOSE int fd = -EBADF;
	uint64_t size = 0;
	struct stat st;
	int r;

	r = sbx_target_init(&target, job, err);
	if (r == 0)
		r = sbx_target_open(&target, &fd, &st, err);
	if (r < 0)
		return r;
	r = send_all(job, fd, &size);
	if (r < 0)
		return sbx_err_set(err, -r, "send '%s': %m", target.path);
	sbx_json_add_path(job->result, "path", target.path);
	sbx_json_add_int(job->result, "size", (int64_t)size);
	return 0;
}

static int add_target(struct sbx_view_dir *dir, const char *name, struct json_object *o)
{
	SBX_BUF struct sbx_buf to = SBX_BUF_INIT;
	int fd = -EBADF;
	int r = sbx_view_dir_fd_of(dir, name, &fd);

	if (r == 0)
		r = sbx_link_read(fd, name, &to);
	if (r == 0)
		sbx_json_add_path(o, "target", to.data);
	return r;
}

static int add_entry(struct sbx_view_dir *dir, const char *name, struct json_object *entries)
{
	SBX_JSON struct json_object *o = json_object_new_object();
	struct sbx_node node;
	int r = sbx_view_dir_lookup(dir, name, &node);

	if (r < 0)
		return r;
	sbx_json_add_path(o, "name", name);
	sbx_json_add_string(o, "kind", sbx_mode_name(node.st.st_mode));
	sbx_json_add_int(o, "mode", node.st.st_mode & 07777);
	sbx_json_add_int(o, "uid", node.st.st_uid);
	sbx_json_add_int(o, "gid", node.st.st_gid);
	sbx_json_add_int(o, "size", (int64_t)node.st.st_size);
	sbx_json_add_int(o, "mtime_ns",
		(int64_t)node.st.st_mtim.tv_sec * (int64_t)SBX_NSEC_PER_SEC +
			node.st.st_mtim.tv_nsec);
	if (S_ISLNK(node.st.st_mode))
		r = add_target(dir, name, o);
	if (r < 0)
		return r;
	sbx_answer_push(entries, sbx_take(&o));
	return 0;
}

static int list(
	struct sbx_job *job, struct sbx_view_dir *dir, const char *path, struct sbx_err *err)
{
	struct json_object *entries = json_object_new_array();
	SBX_NAMES char **names = NULL;
	size_t n = 0;
	int r;

	sbx_json_add_path(job->result, "path", path);
	sbx_json_add(job->result, "entries", entries);
	r = sbx_view_dir_list(dir, &names, &n);
	for (size_t i = 0; r == 0 && i < SBX_MIN(n, (size_t)ENTRIES_MAX); i++)
		r = add_entry(dir, names[i], entries);
	if (r < 0)
		return sbx_err_set(err, -r, "list '%s': %m", path);
	sbx_json_add_int(job->result, "n_entries", (int64_t)n);
	return 0;
}

/* Why there is no directory at path. */
static int refuse_dir(const struct sbx_target *target, int r, struct sbx_err *err)
{
	struct sbx_node node;

	if (sbx_view_lookup(target->view, target->path, &node) < 0)
		return sbx_target_explain(target->path, r, err);
	return sbx_err_kind(err, SBX_KIND_INVALID, ENOTDIR, "path '%s' is %s, not a directory",
		target->path, sbx_fs_kind_name(node.st.st_mode));
}

int sbx_job_ls(struct sbx_job *job, struct sbx_err *err)
{
	SBX_TARGET struct sbx_target target = SBX_TARGET_INIT;
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	int r;

	r = sbx_target_init(&target, job, err);
	if (r < 0)
		return r;
	r = sbx_view_dir_open(target.view, target.path, &dir);
	if (r < 0)
		return refuse_dir(&target, r, err);
	return list(job, dir, *target.path ? target.path : ".", err);
}
