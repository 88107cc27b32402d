/* SPDX-License-Identifier: MIT */
#include "job_args.h"

#include <string.h>

static int missing(const struct sbx_job *job, const char *key, struct sbx_err *err)
{
	return sbx_err_kind(err, SBX_KIND_INTERNAL, EINVAL, "the job came without \"%s\": %.200s",
		key, sbx_json_text(job->args, NULL));
}

int sbx_job_string(
	const struct sbx_job *job, const char *key, const char **ret, struct sbx_err *err)
{
	const char *value = sbx_json_string(job->args, key, NULL);

	if (!value)
		return missing(job, key, err);
	*ret = value;
	return 0;
}

int sbx_job_int(const struct sbx_job *job, const char *key, int64_t *ret, struct sbx_err *err)
{
	if (!json_object_is_type(sbx_json_member(job->args, key), json_type_int))
		return missing(job, key, err);
	*ret = sbx_json_int(job->args, key, 0);
	return 0;
}

static int take_layers(const struct sbx_job *job, const char *key,
	int (*add)(struct sbx_stack *stack, const char *layer_id), struct sbx_stack *ret,
	struct sbx_err *err)
{
	struct json_object *ids = sbx_json_member(job->args, key);
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;
	size_t n;

	if (!json_object_is_type(ids, json_type_array))
		return missing(job, key, err);
	n = json_object_array_length(ids);
	for (size_t i = 0; i < n; i++) {
		struct json_object *id = json_object_array_get_idx(ids, i);
		int r = add(&stack, id ? json_object_get_string(id) : "");

		if (r < 0)
			return sbx_err_kind(err, SBX_KIND_INTERNAL, -r,
				"layer %zu of \"%s\" cannot be used: %m", i, key);
	}
	*ret = stack;
	stack = SBX_STACK_INIT;
	return 0;
}

int sbx_job_stack(
	const struct sbx_job *job, const char *key, struct sbx_stack *ret, struct sbx_err *err)
{
	return take_layers(job, key, sbx_stack_add, ret, err);
}

int sbx_job_layer_set(
	const struct sbx_job *job, const char *key, struct sbx_stack *ret, struct sbx_err *err)
{
	return take_layers(job, key, sbx_stack_include, ret, err);
}

int sbx_job_view(
	const struct sbx_job *job, const char *key, struct sbx_view **ret, struct sbx_err *err)
{
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;
	int r;

	r = sbx_job_stack(job, key, &stack, err);
	if (r < 0)
		return r;
	if (!strcmp(key, "head"))
		return sbx_view_open_kept(
			job->context->layers_fd, &stack, &job->context->head, ret, err);
	return sbx_view_open(job->context->layers_fd, &stack, ret, err);
}

struct json_object *sbx_job_tool_args(const struct sbx_job *job)
{
	struct json_object *args = sbx_json_member(job->args, "args");

	return args ? args : job->args;
}

static void set_details(struct sbx_job *job, const char *path)
{
	json_object_put(job->details);
	job->details = json_object_new_object();
	sbx_json_add_path(job->details, "path", path);
}

int sbx_job_path(struct sbx_job *job, char ret_path[static SBX_PATH_MAX + 1], struct sbx_err *err)
{
	struct json_object *given = sbx_json_member(sbx_job_tool_args(job), "path");
	const char *root_at = NULL;
	const char *path;
	int r;

	r = sbx_job_string(job, "root_at", &root_at, err);
	if (r < 0)
		return r;
	path = given ? json_object_get_string(given) : ".";
	set_details(job, path);
	r = sbx_fs_normalize(path, given ? (size_t)json_object_get_string_len(given) : 1, root_at,
		ret_path, err);
	if (r < 0)
		return r;
	set_details(job, *ret_path ? ret_path : ".");
	return 0;
}
