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
#include "own_batch.h"
#include "sbx/lines.h"
#include "sbx/loop.h"
#include "sbx/store.h"
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

static void batch_freep(struct sbx_own_batch **batch)
{
	sbx_own_batch_free(*batch);
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

/* What the head has at the path. */
struct before {
	bool existed;
	bool ignored;
	bool has_lines;         /* the content below can be compared by lines */
	struct sbx_buf content; /* empty when it is larger than any that can be written */
};

static void before_done(struct before *before)
{
	sbx_buf_done(&before->content);
}

static int load_content(int fd, const char *path, struct before *before, struct sbx_err *err)
{
	int r = sbx_fs_read_fd(fd, SBX_LINES_BYTES_MAX, &before->content);

	if (r < 0 && r != -EFBIG)
		return sbx_err_set(err, -r, "read '%s': %m", path);
	if (r < 0)
		sbx_buf_clear(&before->content);
	else
		before->has_lines = !sbx_text_is_binary(before->content.data, before->content.size);
	return 0;
}

static int load(const struct sbx_target *target, struct before *before, struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	r = sbx_ignored_path(target->view, target->path, &before->ignored, err);
	if (r < 0)
		return r;
	r = sbx_target_open(target, &fd, &st, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	before->existed = true;
	return load_content(fd, target->path, before, err);
}

/* A content over the limit of lines is longer than any frame: it is never the same. */
static bool is_same(const struct before *before, const struct sbx_layer_put *put)
{
	const struct sbx_buf *old = &before->content;

	return before->existed && (before->has_lines || old->size) && old->size == put->size &&
	       (!put->size || !memcmp(old->data, put->data, put->size));
}

/* Lines that stay keep their owners, the others are owner's. Takes the old content. */
static int own(struct sbx_own_batch *batch, const struct sbx_target *target, struct before *before,
	const struct sbx_layer_put *put, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_own_item_done)
	struct sbx_own_item item = {.whole = before->ignored, .size = put->size};
	SBX_BUF struct sbx_buf content = SBX_BUF_INIT;
	int r;

	r = sbx_buf_append(&content, put->data, put->size);
	if (r < 0)
		return r;
	item.whole |= sbx_text_is_binary(put->data, put->size);
	sbx_digest_bytes(put->data, put->size, &item.digest);
	if (item.whole || !before->has_lines)
		return sbx_own_batch_new(batch, target->path, &item, &content);
	item.has_old = true;
	item.old_content = before->content;
	before->content = SBX_BUF_INIT;
	r = sbx_own_batch_old_runs(batch, target->view, target->path, &item);
	if (r == 0)
		r = sbx_own_batch_compare(batch, target->path, &item, &content);
	return r < 0 ? r : sbx_own_batch_flush(batch, err);
}

static int write_lines(const struct layer *layer, const char *owner,
	const struct sbx_target *target, struct before *before, const struct sbx_layer_put *put,
	struct sbx_err *err)
{
	SBX_CLEANUP(batch_freep) struct sbx_own_batch *batch = NULL;
	int r;

	r = sbx_own_batch_new_for(owner, &batch);
	if (r == 0)
		r = own(batch, target, before, put, err);
	if (r < 0)
		return sbx_err_set(err, -r, "find the owners of '%s': %m", target->path);
	return sbx_own_batch_write(batch, layer->fd, err);
}

static int seal(const struct sbx_job *job, const struct sbx_target *target, struct layer *layer,
	const char *owner, const struct before *before, const struct sbx_layer_put *put,
	struct sbx_err *err)
{
	SBX_CLEANUP(sbx_layer_info_done)
	struct sbx_layer_info info = {
		.created_ns = sbx_realtime_ns(),
		.added = put->created,
		.modified = !put->created,
		.ignored = before->ignored,
	};
	int64_t version = 0;
	int r;

	r = sbx_job_int(job, "version", &version, err);
	if (r < 0)
		return r;
	(void)snprintf(info.id, sizeof(info.id), "%s", layer->id);
	info.parent_version = (uint64_t)version;
	info.owner = strdup(owner);
	if (!info.owner)
		return sbx_err_set(err, ENOMEM, "seal layer %s: %m", layer->id);
	r = sbx_seal_layer(layer->layers_fd, layer->fd, target->path, &info, err);
	layer->sealed = r == 0;
	return r;
}

static int make(const struct sbx_job *job, const struct sbx_target *target, struct before *before,
	const struct sbx_layer_put *put, struct sbx_err *err)
{
	SBX_CLEANUP(layer_done) struct layer layer = {.fd = -EBADF, .tree_fd = -EBADF};
	const char *id = NULL, *operation_id = NULL;
	char owner[SBX_OWNER_MAX + 1];
	int r;

	r = sbx_job_string(job, "layer_id", &id, err);
	if (r == 0)
		r = sbx_job_string(job, "operation_id", &operation_id, err);
	if (r < 0)
		return r;
	(void)snprintf(owner, sizeof(owner), "operation:%s", operation_id);
	r = make_layer(job, id, &layer, err);
	if (r == 0)
		r = sbx_layer_tree_make(
			job, target, layer.fd, layer.tree_fd, put->data, put->size, err);
	if (r == 0)
		r = write_lines(&layer, owner, target, before, put, err);
	if (r == 0)
		r = seal(job, target, &layer, owner, before, put, err);
	return r;
}

int sbx_layer_put(const struct sbx_job *job, const struct sbx_target *target,
	struct sbx_layer_put *put, struct sbx_err *err)
{
	SBX_CLEANUP(before_done) struct before before = {0};
	int r;

	r = load(target, &before, err);
	if (r < 0)
		return r;
	put->created = !before.existed;
	put->no_op = is_same(&before, put);
	return put->no_op ? 0 : make(job, target, &before, put, err);
}
