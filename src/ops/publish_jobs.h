/* SPDX-License-Identifier: MIT */
/*
 * The jobs of publishing. Their arguments and outcomes are those of include/sbx/job.h; beyond that:
 *
 *   publish       An error that is not a conflict (a tree that cannot be taken, a full disk) makes
 *                 a reject of class "publish_error" with its "message"; only when that cannot be
 *                 made either the job fails, and the tree is back in the session.
 *   reresolve     {"layer_id", "base", "head", "version", "reject_id"}; owner and command are the
 *                 layer's. The result counts as a publication's. After "no_op" and "rejected" the
 *                 layer is gone.
 *   recover       {"session_dir"} or {"reject_id"}, "head" → {"state": "not_moved" | "brought_back"
 * | "committed" | "rejected" | "gone"}: see moved.h. publish and reject_retry do the same by
 * themselves first. commit        {"batch": the text of the records}, descriptor: head.log preview
 * → the counts, "dropped", "paths", "n_paths" and "files" (filediff.h) reject_list   {} →
 * {"rejects": [reject.json's fields but conflicts]} reject_show   {"reject_id"} → reject.json's
 * fields, the counts and "paths" reject_diff   {"reject_id"} → {"reject_id", "files": [{path,
 * change, old_kind, new_kind, diff}]} reject_export {"reject_id", "dest"} → {"reject_id", "dest",
 * "n_files"} reject_drop   {"reject_id"} → {"reject_id"} reject_retry  {"reject_id", "head",
 * "version", "layer_id"} → as publish; the reject stays until it is dropped, which is right after
 * the commit, or after "no_op".
 */
#ifndef SBX_OPS_PUBLISH_JOBS_H
#define SBX_OPS_PUBLISH_JOBS_H

#include "sbx/job.h"

int sbx_job_publish(struct sbx_job *job, struct sbx_err *err);
int sbx_job_reresolve(struct sbx_job *job, struct sbx_err *err);
int sbx_job_recover(struct sbx_job *job, struct sbx_err *err);
int sbx_job_commit(struct sbx_job *job, struct sbx_err *err);
int sbx_job_preview(struct sbx_job *job, struct sbx_err *err);
int sbx_job_reject_list(struct sbx_job *job, struct sbx_err *err);
int sbx_job_reject_show(struct sbx_job *job, struct sbx_err *err);
int sbx_job_reject_diff(struct sbx_job *job, struct sbx_err *err);
int sbx_job_reject_export(struct sbx_job *job, struct sbx_err *err);
int sbx_job_reject_drop(struct sbx_job *job, struct sbx_err *err);
int sbx_job_reject_retry(struct sbx_job *job, struct sbx_err *err);

#endif
