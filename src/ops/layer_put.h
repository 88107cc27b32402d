/* SPDX-License-Identifier: MIT */
/* Replacing a file without a session: a layer of one path, complete and durable. */
#ifndef SBX_OPS_LAYER_PUT_H
#define SBX_OPS_LAYER_PUT_H

#include "target.h"

struct sbx_layer_put {
	const void *data;
	size_t size;
	bool created; /* result: the head had no such file */
	bool no_op;   /* result: the head's file has just this content; no layer was made */
};

/*
 * Makes layers/<layer_id> of the job: the directories of path as the head has them, the file with
 * the new content (mode, owner and xattrs of the old one, a fresh mtime, no hard links), the owners
 * of its lines. SBX_KIND_INVALID when a component is no directory or path no regular file. A layer
 * that could not be finished is removed.
 */
int sbx_layer_put(const struct sbx_job *job, const struct sbx_target *target,
	struct sbx_layer_put *put, struct sbx_err *err);

#endif
