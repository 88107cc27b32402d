/* SPDX-License-Identifier: MIT */
/* What most jobs take from their arguments. A missing one is our own daemon's fault: internal. */
#ifndef SBX_OPS_JOB_ARGS_H
#define SBX_OPS_JOB_ARGS_H

#include "sbx/fs.h"
#include "sbx/job.h"
#include "sbx/view.h"

/* A string or integer that has to be there. The string is borrowed. */
int sbx_job_string(
	const struct sbx_job *job, const char *key, const char **ret, struct sbx_err *err);
int sbx_job_int(const struct sbx_job *job, const char *key, int64_t *ret, struct sbx_err *err);

/* A list of layer ids, bottom first. The caller ends ret with sbx_stack_done(). */
int sbx_job_stack(
	const struct sbx_job *job, const char *key, struct sbx_stack *ret, struct sbx_err *err);

/* The same for a list that is a set (sbx_stack_include()). */
int sbx_job_layer_set(
	const struct sbx_job *job, const char *key, struct sbx_stack *ret, struct sbx_err *err);

/* The view of a list of layers. */
int sbx_job_view(
	const struct sbx_job *job, const char *key, struct sbx_view **ret, struct sbx_err *err);

/* The tool's own arguments: "args". Never NULL. */
struct json_object *sbx_job_tool_args(const struct sbx_job *job);

/*
 * The tool's "path", relative to the workspace root ("" is the root). Sets the job's details to
 * {"path"}: as it was given when it is refused, else in this form.
 */
int sbx_job_path(struct sbx_job *job, char ret_path[static SBX_PATH_MAX + 1], struct sbx_err *err);

#endif
