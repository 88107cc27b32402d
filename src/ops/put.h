/* SPDX-License-Identifier: MIT */
/* The last step of file_write and file_edit: the new content takes its place. */
#ifndef SBX_OPS_PUT_H
#define SBX_OPS_PUT_H

#include "target.h"

struct sbx_file_put {
	const void *data;
	size_t size;
	const struct stat *expected; /* in a session: the file that data was made from, or NULL */
	const char *outcome;         /* result: "published", "no_op", "session" */
	bool created;                /* result */
};

/* Puts data where the target says: into a live session, or into a layer of its own. */
int sbx_put_file(const struct sbx_job *job, const struct sbx_target *target,
	struct sbx_file_put *put, struct sbx_err *err);

/* Fills the job's result. tool (taken): what the tool's caller gets. */
void sbx_put_answer(struct sbx_job *job, const struct sbx_file_put *put, struct json_object *tool);

#endif
