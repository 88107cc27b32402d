/* SPDX-License-Identifier: MIT */
/*
 * The jobs of the file tools and of people's questions. Each takes in its arguments what
 * include/sbx/job.h says; beyond that:
 *
 *   file_read    {"args", "root_at", "head"}, or a session's root as descriptor in place of "head"
 *   file_write   {"args", "root_at", "head", "version", "layer_id", "operation_id"}: layer_id is
 * fresh for file_edit      each run. → {"outcome": "published", "layer_id", "tool": {…}}: the layer
 * is durable and waits for its commit; when the head moved, run the job again. → {"outcome":
 * "no_op", "tool": {…}}: nothing to commit. In a session: {"args", "root_at", "id_base"} and its
 * root as descriptor → {"outcome": "session", "tool": {…}}. file_blame   {"args", "root_at",
 * "head"}
 *
 * "tool" is what the tool's caller gets.
 */
#ifndef SBX_OPS_JOBS_H
#define SBX_OPS_JOBS_H

#include "sbx/job.h"

int sbx_job_file_read(struct sbx_job *job, struct sbx_err *err);
int sbx_job_file_write(struct sbx_job *job, struct sbx_err *err);
int sbx_job_file_edit(struct sbx_job *job, struct sbx_err *err);
int sbx_job_file_blame(struct sbx_job *job, struct sbx_err *err);

#endif
