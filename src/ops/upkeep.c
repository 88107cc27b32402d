/* SPDX-License-Identifier: MIT */
/* squash, gc, verify, stat: what keeps a store short, small and sound, and tells how it is. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "answer.h"
#include "dirlist.h"
#include "job_args.h"
#include "jobs.h"
#include "reject.h"
#include "sbx/loop.h"
#include "sbx/publish.h"
#include "sbx/store.h"

#define OWNER_UNKNOWN "unknown" /* of a layer that several owners' layers were made into */
#define DAMAGES_MAX   1000      /* that verify names; "n_damages" counts all */

static int load_info(
	const struct sbx_job *job, const char *id, struct sbx_layer_info *ret, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(
		job->context->layers_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return sbx_err_set(err, errno, "open layer %s: %m", id);
	return sbx_layer_info_load(fd, ret, err);
}

/*
 * What is said of the layer that a run becomes: it stands at the version of its newest part, and
 * belongs to the run's owner if there is but one.
 */
static int describe_run(const struct sbx_job *job, const struct sbx_stack *run,
	struct sbx_layer_info *ret, struct sbx_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->n; i++) {
		SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
		const char *owner;

		r = load_info(job, run->ids[i], &info, err);
		if (r < 0)
			return r;
		ret->parent_version = SBX_MAX(ret->parent_version, info.parent_version);
		owner = !ret->owner || !strcmp(ret->owner, info.owner) ? info.owner : OWNER_UNKNOWN;
		sbx_free_pointer(&ret->owner);
		ret->owner = strdup(owner);
		r = ret->owner ? 0 : sbx_err_set(err, ENOMEM, "squash layers: %m");
	}
	return r;
}

/* The layers of head below the first of run, which must stand in a row in it. */
static int split(const struct sbx_stack *head, const struct sbx_stack *run, struct sbx_stack *ret,
	struct sbx_err *err)
{
	ssize_t first = run->n ? sbx_stack_find(head, run->ids[0]) : -ENOENT;
	int r = 0;

	if (first < 0 || (size_t)first + run->n > head->n)
		return sbx_err_kind(err, SBX_KIND_INTERNAL, EINVAL,
			"the layers to squash are no part of the head");
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(head->ids[(size_t)first + i], run->ids[i]) != 0)
			return sbx_err_kind(err, SBX_KIND_INTERNAL, EINVAL,
				"layer %s of those to squash does not follow the one before",
				run->ids[i]);
	for (ssize_t i = 0; r == 0 && i < first; i++)
		r = sbx_stack_add(ret, head->ids[i]);
	return r < 0 ? sbx_err_set(err, -r, "squash layers: %m") : 0;
}

int sbx_job_squash(struct sbx_job *job, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	SBX_STACK struct sbx_stack head = SBX_STACK_INIT;
	SBX_STACK struct sbx_stack run = SBX_STACK_INIT;
	SBX_STACK struct sbx_stack below = SBX_STACK_INIT;
	const char *layer_id = NULL;
	int r;

	r = sbx_job_string(job, "layer_id", &layer_id, err);
	if (r == 0)
		r = sbx_job_stack(job, "head", &head, err);
	if (r == 0)
		r = sbx_job_stack(job, "remove", &run, err);
	if (r == 0)
		r = split(&head, &run, &below, err);
	if (r == 0)
		r = describe_run(job, &run, &info, err);
	if (r < 0)
		return r;
	(void)snprintf(info.id, sizeof(info.id), "%s", layer_id);
	info.created_ns = sbx_realtime_ns();
	r = sbx_store_squash(job->context->layers_fd, &below, &run, &info, err);
	if (r < 0)
		return r;
	sbx_json_add_string(job->result, "outcome", "published");
	sbx_json_add_string(job->result, "layer_id", layer_id);
	sbx_json_add_int(job->result, "squashed", (int64_t)run.n);
	return 0;
}

static void head_log_freep(struct sbx_head_log **log)
{
	sbx_head_log_free(*log);
}

int sbx_job_history(struct sbx_job *job, struct sbx_err *err)
{
	SBX_CLEANUP(head_log_freep) struct sbx_head_log *log = NULL;
	SBX_JSON struct json_object *weights =
		json_object_get(sbx_json_member(job->args, "weights"));
	uint64_t max = (uint64_t)sbx_json_int(job->args, "max", 0), oldest = 0;
	int r;

	if (!weights)
		weights = json_object_new_object();
	r = sbx_head_log_open(job->context->store_fd, false, &log, err);
	if (r == 0)
		r = sbx_history_oldest(job->context->layers_fd, log, max, weights, &oldest, err);
	if (r < 0)
		return r;
	sbx_json_add_int(job->result, "oldest", (int64_t)oldest);
	sbx_json_add(job->result, "weights", sbx_take(&weights));
	return 0;
}

int sbx_job_gc(struct sbx_job *job, struct sbx_err *err)
{
	SBX_CLEANUP(head_log_freep) struct sbx_head_log *log = NULL;
	SBX_STACK struct sbx_stack keep = SBX_STACK_INIT;
	uint64_t n_removed = 0;
	int r;

	r = sbx_job_layer_set(job, "keep", &keep, err);
	if (r == 0)
		r = sbx_reject_bases(job->context, &keep, err);
	if (r == 0)
		r = sbx_head_log_open(job->context->store_fd, false, &log, err);
	if (r == 0)
		r = sbx_store_sweep(job->context->store_fd, log, &keep, &n_removed, err);
	if (r < 0)
		return r;
	sbx_json_add_int(job->result, "removed", (int64_t)n_removed);
	return 0;
}

struct damages {
	struct json_object *list;
	size_t n;
};

static void on_damage(void *data, const char *what)
{
	struct damages *damages = data;
	struct json_object *text = json_object_new_object();

	if (damages->n++ >= DAMAGES_MAX) {
		json_object_put(text);
		return;
	}
	sbx_json_add_bytes(text, "what", what, strlen(what));
	sbx_answer_push(damages->list, text);
}

/* What the store cannot read of a reject; that reject.json is there it has seen. */
static int verify_rejects(const struct sbx_job *job, struct damages *damages)
{
	SBX_CLEANUP(sbx_dirlist_done) struct sbx_dirlist names = {0};
	int r = sbx_dirlist_read(job->context->rejects_fd, SIZE_MAX, &names);

	for (size_t i = 0; r == 0 && i < names.n; i++) {
		SBX_JSON struct json_object *reject = NULL;
		struct sbx_err why = SBX_ERR_INIT;
		SBX_CLOSE int fd = -EBADF;
		const char *id = sbx_dirlist_name(&names, i);

		if (sbx_id_valid(id) && sbx_reject_open(job->context, id, &fd, &reject, &why) < 0 &&
			why.code != ENOENT)
			on_damage(damages, why.message);
	}
	return r;
}

int sbx_job_verify(struct sbx_job *job, struct sbx_err *err)
{
	struct damages damages = {.list = json_object_new_array()};
	SBX_JSON struct json_object *o = json_object_new_object();
	int r;

	sbx_json_add(o, "damages", damages.list);
	r = sbx_store_verify(job->context->sandbox_fd, on_damage, &damages);
	if (r >= 0)
		r = verify_rejects(job, &damages);
	sbx_json_add_int(o, "n_damages", (int64_t)damages.n);
	if (r == 0 && !damages.n) {
		sbx_json_add(job->result, "damages", json_object_get(damages.list));
		return 0;
	}
	job->details = sbx_take(&o);
	if (r < 0)
		return sbx_err_set(err, -r, "the check could not be finished: %m");
	return sbx_err_set(err, EBADMSG,
		"the store has %zu damages; what is published before them can still be exported",
		damages.n);
}

/* Entries of a directory of ours, but for temporary ones. */
static int count_names(int dir_fd, int64_t *ret)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = dir ? 0 : -errno;
	int64_t n = 0;

	if (!dir)
		sbx_fd_close(&fd);
	while (dir && (errno = 0, true)) {
		const struct dirent *entry = readdir(dir);

		if (!entry) {
			r = -errno;
			break;
		}
		n += entry->d_name[0] != '.';
	}
	if (dir)
		(void)closedir(dir); /* only read from */
	*ret = n;
	return r;
}

static int add_count(struct sbx_job *job, const char *key, int dir_fd, struct sbx_err *err)
{
	int64_t n = 0;
	int r = count_names(dir_fd, &n);

	if (r < 0)
		return sbx_err_set(err, -r, "count the store's %s: %m", key);
	sbx_json_add_int(job->result, key, n);
	return 0;
}

static int add_layers(struct sbx_job *job, struct sbx_err *err)
{
	SBX_STACK struct sbx_stack head = SBX_STACK_INIT;
	uint64_t n_entries = 0, n_bytes = 0;
	int r = sbx_job_stack(job, "head", &head, err);

	for (size_t i = 0; r == 0 && i < head.n; i++) {
		SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};

		r = load_info(job, head.ids[i], &info, err);
		n_entries += info.n_entries;
		n_bytes += info.n_bytes;
	}
	if (r < 0)
		return r;
	sbx_json_add_int(job->result, "head_layers", (int64_t)head.n);
	sbx_json_add_int(job->result, "head_entries", (int64_t)n_entries);
	sbx_json_add_int(job->result, "head_bytes", (int64_t)n_bytes);
	return 0;
}

static int add_disk(struct sbx_job *job, struct sbx_err *err)
{
	struct statvfs fs;

	if (fstatvfs(job->context->store_fd, &fs) < 0)
		return sbx_err_set(err, errno, "look at the store's file system: %m");
	sbx_json_add_int(job->result, "disk_bytes", (int64_t)(fs.f_blocks * fs.f_frsize));
	sbx_json_add_int(job->result, "disk_free_bytes", (int64_t)(fs.f_bavail * fs.f_frsize));
	sbx_json_add_int(job->result, "disk_free_inodes", (int64_t)fs.f_favail);
	return 0;
}

int sbx_job_stat(struct sbx_job *job, struct sbx_err *err)
{
	int64_t version = 0;
	int r = sbx_job_int(job, "version", &version, err);

	if (r < 0)
		return r;
	sbx_json_add_int(job->result, "version", version);
	r = add_layers(job, err);
	if (r == 0)
		r = add_count(job, "stored_layers", job->context->layers_fd, err);
	if (r == 0)
		r = add_count(job, "rejects", job->context->rejects_fd, err);
	if (r == 0)
		r = add_count(job, "session_directories", job->context->sessions_fd, err);
	return r < 0 ? r : add_disk(job, err);
}
