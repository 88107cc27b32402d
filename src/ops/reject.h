/* SPDX-License-Identifier: MIT */
/*
 * rejects/<id>/: tree/ (the changeset as it was captured, never half merged) and reject.json, which
 * is written last. Byte format: docs/publishing.md.
 */
#ifndef SBX_OPS_REJECT_H
#define SBX_OPS_REJECT_H

#include "publication.h"
#include "sbx/json.h"

#define SBX_REJECT_CLASS_CONFLICT "source_conflict"
#define SBX_REJECT_CLASS_ERROR    "publish_error"

#define SBX_REJECT_JSON_MAX (64u << 20) /* bytes: SBX_CONFLICTS_MAX paths of SBX_PATH_MAX fit */

/*
 * Keeps a publication's tree as a reject, durably, and fills in the job's result. message: why, for
 * a class without conflicts, else NULL. On failure the tree is at home again.
 */
int sbx_reject_keep(
	struct sbx_publication *p, const char *class, const char *message, struct sbx_err *err);

/* Opens rejects/<id>: SBX_KIND_NOT_FOUND when there is no complete one. */
int sbx_reject_open(struct sbx_job_context *context, const char *id, int *ret_fd,
	struct json_object **ret_json, struct sbx_err *err);
/* Out of sight in one step, so that a crash leaves all of it or none; then removed. */
int sbx_reject_remove(struct sbx_job_context *context, const char *id, struct sbx_err *err);
/* The base's layers of a reject.json. */
int sbx_reject_base(struct json_object *reject, struct sbx_stack *ret, struct sbx_err *err);

#endif
