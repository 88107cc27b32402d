/* SPDX-License-Identifier: MIT */
/* The jobs on rejects. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "capture.h"
#include "changeset_diff.h"
#include "job_args.h"
#include "publish_jobs.h"
#include "reject.h"
#include "reject_export.h"
#include "sbx/fs.h"
#include "sbx/store.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A reject that is looked at. */
struct reject {
	int fd;
	int tree_fd;
	struct json_object *json;
	struct sbx_stack base_stack;
	struct sbx_view *base;
	struct sbx_changeset set;
};
#define REJECT_INIT ((struct reject){.fd = -EBADF, .tree_fd = -EBADF})

static void reject_done(struct reject *reject)
{
	sbx_changeset_done(&reject->set);
	sbx_view_free(reject->base);
	sbx_stack_done(&reject->base_stack);
	sbx_json_put(&reject->json);
	sbx_fd_close(&reject->tree_fd);
	sbx_fd_close(&reject->fd);
}

static const char *asked_id(const struct sbx_job *job)
{
	return sbx_json_string(sbx_job_tool_args(job), "reject_id", "");
}

/* Opens the reject that the job is about and captures it, changing nothing. */
static int look(struct sbx_job *job, struct reject *ret, struct sbx_err *err)
{
	int r = sbx_reject_open(job->context, asked_id(job), &ret->fd, &ret->json, err);

	if (r == 0)
		r = sbx_reject_base(ret->json, &ret->base_stack, err);
	if (r == 0)
		r = sbx_view_open(job->context->layers_fd, &ret->base_stack, &ret->base, err);
	if (r < 0)
		return r;
	ret->tree_fd = openat(ret->fd, SBX_LAYER_TREE, OPEN_DIR_FLAGS);
	if (ret->tree_fd < 0)
		return sbx_err_kind(err, SBX_KIND_CONFLICT, errno,
			"the files of reject %s are being published", asked_id(job));
	return sbx_capture(ret->tree_fd, -EBADF, ret->base, SBX_CAPTURE_READ_ONLY, &ret->set, err);
}

/* Its description, which stays the reject's, with or without the conflicts. */
static void add_fields(struct json_object *reject, bool conflicts, struct json_object *ret)
{
	json_object_object_foreach (reject, key, value) {
		if (!strcmp(key, "base") || (!conflicts && !strcmp(key, "conflicts")))
			continue;
		sbx_json_add(ret, key, json_object_get(value));
	}
}

static int list_one(struct sbx_job *job, const char *id, struct json_object *list)
{
	SBX_JSON struct json_object *json = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	SBX_CLOSE int fd = -EBADF;
	struct json_object *item;
	int r = sbx_reject_open(job->context, id, &fd, &json, &err);

	if (r == -ENOENT)
		return 0; /* half-made */
	item = json_object_new_object();
	if (!item)
		return -ENOMEM;
	if (r == 0) {
		add_fields(json, false, item);
	} else {
		/* a damaged one is shown as such: it must not hide the others */
		sbx_json_add_string(item, "reject_id", id);
		sbx_json_add_string(item, "class", "damaged");
		sbx_json_add_string(item, "message", err.message);
	}
	sbx_answer_push(list, item);
	return 0;
}

static int compare_created(const void *a, const void *b)
{
	struct json_object *x = *(struct json_object *const *)a;
	struct json_object *y = *(struct json_object *const *)b;
	int64_t x_ns = sbx_json_int(x, "created_ns", 0), y_ns = sbx_json_int(y, "created_ns", 0);

	return (x_ns > y_ns) - (x_ns < y_ns);
}

static void close_dirp(DIR **dirp)
{
	int saved = errno;

	if (*dirp)
		(void)closedir(*dirp); /* only read from */
	errno = saved;
}

int sbx_job_reject_list(struct sbx_job *job, struct sbx_err *err)
{
	SBX_JSON struct json_object *list = json_object_new_array();
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	int fd = openat(job->context->rejects_fd, ".", OPEN_DIR_FLAGS), r = 0;
	struct dirent *entry;

	dirp = fd < 0 ? NULL : fdopendir(fd);
	if (!dirp) {
		r = -errno;
		sbx_fd_close(&fd);
		return sbx_err_set(err, -r, "list the rejects: %m");
	}
	while (r == 0 && (errno = 0, (entry = readdir(dirp))))
		if (sbx_id_valid(entry->d_name))
			r = list_one(job, entry->d_name, list);
	if (r == 0)
		r = -errno;
	if (r < 0)
		return sbx_err_set(err, -r, "list the rejects: %m");
	json_object_array_sort(list, compare_created);
	sbx_json_add(job->result, "rejects", sbx_take(&list));
	return 0;
}

int sbx_job_reject_show(struct sbx_job *job, struct sbx_err *err)
{
	SBX_CLEANUP(reject_done) struct reject reject = REJECT_INIT;
	int r = look(job, &reject, err);

	if (r < 0)
		return r;
	add_fields(reject.json, true, job->result);
	return sbx_changeset_show(&reject.set, job->result, err);
}

int sbx_job_reject_diff(struct sbx_job *job, struct sbx_err *err)
{
	SBX_CLEANUP(reject_done) struct reject reject = REJECT_INIT;
	int r = look(job, &reject, err);

	if (r < 0)
		return r;
	sbx_json_add_string(job->result, "reject_id", asked_id(job));
	return sbx_changeset_diff(&reject.set, reject.tree_fd, reject.base, job->result, err);
}

int sbx_job_reject_export(struct sbx_job *job, struct sbx_err *err)
{
	const char *dest = sbx_json_string(sbx_job_tool_args(job), "dest", "");
	SBX_CLEANUP(reject_done) struct reject reject = REJECT_INIT;
	struct sbx_reject_export export;
	uint64_t n_files;
	int r = look(job, &reject, err);

	if (r < 0)
		return r;
	export = (struct sbx_reject_export){.set = &reject.set,
		.tree_fd = reject.tree_fd,
		.sandbox_fd = job->context->sandbox_fd,
		.json = reject.json};
	r = sbx_reject_export(&export, dest, &n_files, err);
	if (r < 0)
		return r;
	sbx_json_add_string(job->result, "reject_id", asked_id(job));
	sbx_json_add_string(job->result, "dest", dest);
	sbx_json_add_int(job->result, "n_files", (int64_t)n_files);
	return 0;
}

int sbx_job_reject_drop(struct sbx_job *job, struct sbx_err *err)
{
	const char *id = asked_id(job);
	int r = sbx_reject_remove(job->context, id, err);

	if (r == 0)
		sbx_json_add_string(job->result, "reject_id", id);
	return r;
}
