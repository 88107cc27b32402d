/* SPDX-License-Identifier: MIT */
/* What sandboxd asks of the publishing jobs' code at its start, without a worker. */
#ifndef SBX_PUBLISH_H
#define SBX_PUBLISH_H

#include "sbx/job.h"
#include "sbx/view.h"

/*
 * Brings a publication of sessions/<session_dir> that never reached the head back into the session:
 * afterwards its upper/ holds the work. Does nothing when no publication was under way. session_dir
 * is a valid id. The caller holds the sandbox's lock, has replayed head.log, and no worker runs.
 */
int sbx_publish_recover(
	struct sbx_job_context *context, const char *session_dir, struct sbx_err *err);

/*
 * Adds the layers that rejects are based on to ret: a sweep must keep them. A reject that cannot be
 * read is named in err when all others are taken; what it needs is not known then.
 */
int sbx_reject_bases(struct sbx_job_context *context, struct sbx_stack *ret, struct sbx_err *err);

#endif
