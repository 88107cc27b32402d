/* SPDX-License-Identifier: MIT */
/*
 * The jobs of the file tools and of people's questions. What all take is in include/sbx/job.h: the
 * caller's "args", "root_at", "head" (of the version that is asked for) with its "version".
 *
 * file_read, file_blame (also as blame)
 *   - without a session from the head, file_read also from a session's root, given as descriptor
 *
 * file_write, file_edit
 *   - without a session: also "operation_id", and "layer_id", fresh for each run
 *   - result {"outcome": "published", "layer_id", "tool"}: the layer is durable and waits for its
 *     commit; when the head moved meanwhile, the job is run again
 *   - result {"outcome": "no_op", "tool"}: there is nothing to commit
 *   - in a session: "id_base" and its root as descriptor; result {"outcome": "session", "tool"}
 *   - "tool" is what the tool's caller gets
 *
 * layers, layer, log, cat, ls
 *   - results as in include/sbx/op.h
 *
 * diff
 *   - also "base" and "base_version"; "files" as in filediff.h
 *
 * squash
 *   - "remove": layers in a row in the head, "layer_id": of the layer that they become
 *   - result {"outcome": "published", "layer_id", "squashed"}: durable, waits for its commit
 *
 * history
 *   - "max" bytes, "weights": what earlier ones found
 *   - result {"oldest": the version before which all are to be forgotten, or 0, "weights"}
 *
 * gc
 *   - "keep": layers that sessions are pinned to; no publication is under way
 *   - result {"removed": number of directories and files}
 *
 * verify
 *   - result {"damages": []}; damage is a failure with {"damages": [{"what"}], "n_damages"} as its
 *     details
 *
 * stat
 *   - result {"version", "head_layers", "head_entries", "head_bytes", "stored_layers", "rejects",
 *     "session_directories", "disk_bytes", "disk_free_bytes", "disk_free_inodes"}
 *
 * export
 *   - "uid": of the caller; absent: the sandbox's owner
 *   - result {"dest", "format", "version", "entries", "bytes", "xattrs_dropped"}
 */
#ifndef SBX_OPS_JOBS_H
#define SBX_OPS_JOBS_H

#include "sbx/job.h"

int sbx_job_file_read(struct sbx_job *job, struct sbx_err *err);
int sbx_job_file_write(struct sbx_job *job, struct sbx_err *err);
int sbx_job_file_edit(struct sbx_job *job, struct sbx_err *err);
int sbx_job_file_blame(struct sbx_job *job, struct sbx_err *err);

int sbx_job_layers(struct sbx_job *job, struct sbx_err *err);
int sbx_job_layer(struct sbx_job *job, struct sbx_err *err);
int sbx_job_log(struct sbx_job *job, struct sbx_err *err);
int sbx_job_diff(struct sbx_job *job, struct sbx_err *err);
int sbx_job_cat(struct sbx_job *job, struct sbx_err *err);
int sbx_job_ls(struct sbx_job *job, struct sbx_err *err);

int sbx_job_squash(struct sbx_job *job, struct sbx_err *err);
int sbx_job_history(struct sbx_job *job, struct sbx_err *err);
int sbx_job_gc(struct sbx_job *job, struct sbx_err *err);
int sbx_job_verify(struct sbx_job *job, struct sbx_err *err);
int sbx_job_stat(struct sbx_job *job, struct sbx_err *err);
int sbx_job_export(struct sbx_job *job, struct sbx_err *err);

#endif
