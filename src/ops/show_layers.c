/* SPDX-License-Identifier: MIT */
/* layers, layer: what the stack consists of, and what each layer changed. */
#include <fcntl.h>
#include <string.h>

#include "answer.h"
#include "capture.h"
#include "job_args.h"
#include "jobs.h"
#include "sbx/store.h"

static int open_layer(const struct sbx_job *job, const char *id, int *ret_fd, struct sbx_err *err)
{
	int fd = openat(
		job->context->layers_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return sbx_err_set(err, errno, "open layer %s: %m", id);
	*ret_fd = fd;
	return 0;
}

/* layer.json's fields. */
static int describe(
	const struct sbx_job *job, const char *id, struct json_object *ret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	SBX_CLOSE int layer_fd = -EBADF;
	int r;

	r = open_layer(job, id, &layer_fd, err);
	if (r == 0)
		r = sbx_layer_info_load(layer_fd, &info, err);
	if (r == 0)
		sbx_layer_info_to_json(&info, ret);
	return r;
}

int sbx_job_layers(struct sbx_job *job, struct sbx_err *err)
{
	SBX_STACK struct sbx_stack head = SBX_STACK_INIT;
	struct json_object *layers = json_object_new_array();
	int64_t version = 0;
	int r;

	sbx_json_add(job->result, "layers", layers);
	r = sbx_job_stack(job, "head", &head, err);
	if (r == 0)
		r = sbx_job_int(job, "version", &version, err);
	for (size_t i = 0; r == 0 && i < head.n; i++) {
		struct json_object *layer = json_object_new_object();

		sbx_answer_push(layers, layer);
		r = describe(job, head.ids[i], layer, err);
	}
	if (r < 0)
		return r;
	sbx_json_add_int(job->result, "version", version);
	return 0;
}

static void head_log_freep(struct sbx_head_log **log)
{
	sbx_head_log_free(*log);
}

/* The newest stack of the history that has the layer; -ENOENT. */
static int find_in_history(
	const struct sbx_job *job, const char *id, struct sbx_stack *ret, struct sbx_err *err)
{
	SBX_CLEANUP(head_log_freep) struct sbx_head_log *log = NULL;
	int r = sbx_head_log_open(job->context->store_fd, false, &log, err);

	if (r < 0)
		return r;
	for (uint64_t version = sbx_head_log_head(log)->version; version > 0; version--) {
		SBX_CLEANUP(sbx_head_done) struct sbx_head head = {0};

		r = sbx_head_log_at(log, version, &head);
		if (r == -ENOENT)
			break; /* compacted away, and all before it */
		if (r < 0)
			return sbx_err_set(
				err, -r, "look at version %llu: %m", (unsigned long long)version);
		if (sbx_stack_find(&head.stack, id) >= 0)
			return sbx_stack_copy(&head.stack, ret);
	}
	return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
		"there is no layer '%s'; 'sbx-admin layers' lists those of the head", id);
}

/* A stack that has the layer: the head, or an older one. */
static int find_stack(
	const struct sbx_job *job, const char *id, struct sbx_stack *ret, struct sbx_err *err)
{
	int r = sbx_job_stack(job, "head", ret, err);

	if (r < 0 || sbx_stack_find(ret, id) >= 0)
		return r;
	sbx_stack_done(ret);
	return find_in_history(job, id, ret, err);
}

/* The view of the layers below id. */
static int view_below(const struct sbx_job *job, const struct sbx_stack *stack, const char *id,
	struct sbx_view **ret, struct sbx_err *err)
{
	SBX_STACK struct sbx_stack below = SBX_STACK_INIT;
	int r = 0;

	for (size_t i = 0; r == 0 && strcmp(stack->ids[i], id) != 0; i++)
		r = sbx_stack_add(&below, stack->ids[i]);
	if (r < 0)
		return sbx_err_set(err, -r, "open what is below layer %s: %m", id);
	return sbx_view_open(job->context->layers_fd, &below, ret, err);
}

static int list_paths(
	struct sbx_job *job, const struct sbx_stack *stack, const char *id, struct sbx_err *err)
{
	SBX_CHANGESET struct sbx_changeset set = SBX_CHANGESET_INIT;
	SBX_VIEW struct sbx_view *below = NULL;
	SBX_CLOSE int layer_fd = -EBADF, tree_fd = -EBADF;
	int r;

	r = open_layer(job, id, &layer_fd, err);
	if (r == 0)
		r = view_below(job, stack, id, &below, err);
	if (r < 0)
		return r;
	tree_fd = openat(layer_fd, SBX_LAYER_TREE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree_fd < 0)
		return sbx_err_set(err, errno, "open the tree of layer %s: %m", id);
	r = sbx_capture(tree_fd, -EBADF, below, SBX_CAPTURE_READ_ONLY, &set, err);
	if (r < 0)
		return r;
	r = sbx_changeset_list(&set, job->result);
	return r < 0 ? sbx_err_set(err, -r, "list layer %s: %m", id) : 0;
}

int sbx_job_layer(struct sbx_job *job, struct sbx_err *err)
{
	const char *id = sbx_json_string(sbx_job_tool_args(job), "layer_id", "");
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;
	int r;

	r = find_stack(job, id, &stack, err);
	if (r == 0)
		r = describe(job, id, job->result, err);
	if (r == 0)
		r = list_paths(job, &stack, id, err);
	return r;
}
