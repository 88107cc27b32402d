/* SPDX-License-Identifier: MIT */
/*
 * The layer is built under its own name: until head.log names it, nobody looks at it, and the
 * sweep removes it.
 */
#include "layer_put.h"

#include <stdio.h>
#include <string.h>

#include "ignored.h"
#include "layer_tree.h"
#include "own_load.h"
#include "sbx/lines.h"
#include "sbx/loop.h"
#include "sbx/own.h"
#include "seal.h"

#define LAYER_MODE 0700

struct layer {
	const char *id;
	int layers_fd; /* borrowed */
	int fd;
	int tree_fd;
	bool sealed;
};

static void layer_done(struct layer *layer)
{
	sbx_fd_close(&layer->tree_fd);
	sbx_fd_close(&layer->fd);
	if (!layer->sealed && layer->id)
		(void)sbx_fs_remove_tree(layer->layers_fd, layer->id); /* else the sweep does */
}

/* A fresh directory; what an earlier run of this job left under the name was never committed. */
static int make_layer(
	const struct sbx_job *job, const char *id, struct layer *layer, struct sbx_err *err)
{
	int layers_fd = job->context->layers_fd;
	int r;

	r = sbx_fs_remove_tree(layers_fd, id);
	if (r == 0) {
		layer->id = id;
		layer->layers_fd = layers_fd;
		r = sbx_fs_ensure_dir(layers_fd, id, LAYER_MODE, &layer->fd);
	}
	if (r == 0)
		r = sbx_fs_ensure_dir(layer->fd, SBX_LAYER_TREE, LAYER_MODE, &layer->tree_fd);
	return r < 0 ? sbx_err_set(err, -r, "make layer %s: %m", id) : 0;
}

/* What is known of the file before and what becomes of its lines. */
struct owners {
	struct sbx_owner_table *table;
	struct sbx_owned old;
	bool existed;
	bool ignored;
	uint32_t author; /* index of who writes now */
};

static void owners_done(struct owners *owners)
{
	sbx_owner_table_free(owners->table);
	sbx_owned_done(&owners->old);
}

/* Fills file's result: the lines that stay keep their owners, the others are the author's. */
static int compute(const struct owners *owners, const struct sbx_layer_put *put,
	struct sbx_own_file *file, struct sbx_err *err)
{
	const struct sbx_owned *old = &owners->old;
	bool has_lines = owners->existed && !old->is_large &&
			 !sbx_text_is_binary(old->content.data, old->content.size);

	file->has_old = has_lines;
	file->has_new = true;
	file->new_data = put->data;
	file->new_size = put->size;
	if (has_lines) {
		file->old_data = old->content.data;
		file->old_size = old->content.size;
		file->old_runs = old->runs;
		file->n_old_runs = old->n_runs;
	}
	return sbx_own_compute(file, 1, owners->author, err);
}

static void own_file_done(struct sbx_own_file *file)
{
	sbx_own_file_done(file);
}

static int record(const struct owners *owners, const char *path, const struct sbx_layer_put *put,
	struct sbx_owners_writer *writer, struct sbx_err *err)
{
	SBX_CLEANUP(own_file_done) struct sbx_own_file file = {.path = path};
	struct sbx_run whole = {.owner = owners->author};
	struct sbx_owner_record record = {.path = path, .size = put->size};
	int r;

	record.whole = put->size && (owners->ignored || sbx_text_is_binary(put->data, put->size));
	sbx_digest_bytes(put->data, put->size, &record.digest);
	if (record.whole) {
		whole.count = sbx_owned_count_lines(put->data, put->size);
		record.runs = &whole;
		record.n_runs = 1;
		record.n_lines = whole.count;
	} else {
		r = compute(owners, put, &file, err);
		if (r < 0)
			return r;
		record.runs = file.runs;
		record.n_runs = file.n_runs;
		record.n_lines = file.n_lines;
	}
	r = sbx_owners_writer_add(writer, &record);
	return r < 0 ? sbx_err_set(err, -r, "record the owners of '%s': %m", path) : 0;
}

static int seal(const struct owners *owners, const struct sbx_job *job,
	const struct sbx_target *target, struct layer *layer, const struct sbx_layer_put *put,
	struct sbx_err *err)
{
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
	struct sbx_layer_info info = {
		.created_ns = sbx_realtime_ns(),
		.added = put->created,
		.modified = !put->created,
		.ignored = owners->ignored,
	};
	SBX_FREE char *owner = NULL;
	int64_t version = 0;
	int r;

	r = sbx_job_int(job, "version", &version, err);
	if (r < 0)
		return r;
	(void)snprintf(info.id, sizeof(info.id), "%s", layer->id);
	info.parent_version = (uint64_t)version;
	owner = strdup(sbx_owner_table_name(owners->table, owners->author));
	r = owner ? sbx_owners_writer_new(&writer) : -ENOMEM;
	if (r < 0)
		return sbx_err_set(err, -r, "seal layer %s: %m", layer->id);
	info.owner = owner;
	r = record(owners, target->path, put, writer, err);
	if (r < 0)
		return r;
	r = sbx_seal_layer(layer->layers_fd, layer->fd, &info, writer, owners->table, err);
	layer->sealed = r == 0;
	return r;
}

/* Loads what the head has at path. */
static int load(const struct sbx_job *job, const struct sbx_target *target, struct owners *owners,
	struct sbx_err *err)
{
	char author[SBX_OWNER_MAX + 1];
	const char *operation_id = NULL;
	SBX_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	r = sbx_job_string(job, "operation_id", &operation_id, err);
	if (r < 0)
		return r;
	(void)snprintf(author, sizeof(author), "operation:%s", operation_id);
	r = sbx_owner_table_new(&owners->table);
	if (r == 0)
		r = sbx_owner_table_add(owners->table, author, &owners->author);
	if (r < 0)
		return sbx_err_set(err, -r, "name the owner %s: %m", author);
	r = sbx_ignored_path(target->view, target->path, &owners->ignored, err);
	if (r < 0)
		return r;
	r = sbx_target_open(target, &fd, &st, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	owners->existed = true;
	return sbx_owned_load(target->view, target->path, owners->table, &owners->old, err);
}

static bool is_same(const struct owners *owners, const struct sbx_layer_put *put)
{
	const struct sbx_buf *old = &owners->old.content;

	return owners->existed && !owners->old.is_large && old->size == put->size &&
	       (!put->size || !memcmp(old->data, put->data, put->size));
}

int sbx_layer_put(const struct sbx_job *job, const struct sbx_target *target,
	struct sbx_layer_put *put, struct sbx_err *err)
{
	SBX_CLEANUP(owners_done) struct owners owners = {0};
	SBX_CLEANUP(layer_done) struct layer layer = {.fd = -EBADF, .tree_fd = -EBADF};
	const char *id = NULL;
	int r;

	r = load(job, target, &owners, err);
	if (r < 0)
		return r;
	put->created = !owners.existed;
	put->no_op = is_same(&owners, put);
	if (put->no_op)
		return 0;
	r = sbx_job_string(job, "layer_id", &id, err);
	if (r < 0)
		return r;
	r = make_layer(job, id, &layer, err);
	if (r == 0)
		r = sbx_layer_tree_make(
			job, target, layer.fd, layer.tree_fd, put->data, put->size, err);
	if (r == 0)
		r = seal(&owners, job, target, &layer, put, err);
	return r;
}
