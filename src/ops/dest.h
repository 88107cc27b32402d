/* SPDX-License-Identifier: MIT */
/*
 * Where a caller wants something written outside of the store. Workers are root, callers need not
 * be: all that is made there is made with the caller's own rights, belongs to the caller, and is
 * written through the descriptor that making it gave.
 */
#ifndef SBX_OPS_DEST_H
#define SBX_OPS_DEST_H

#include "sbx/job.h"
#include "sbx/store.h"

struct sbx_dest {
	const char *path; /* absolute; borrowed */
	const char *name; /* its last component */
	int parent_fd;
	uid_t uid; /* the caller's */
	gid_t gid;
};
#define SBX_DEST_INIT ((struct sbx_dest){.parent_fd = -EBADF})
void sbx_dest_done(struct sbx_dest *dest);
#define SBX_DEST SBX_CLEANUP(sbx_dest_done)

/*
 * Takes "dest" of the tool's arguments and "uid" of the job's (absent: the sandbox's owner).
 * SBX_KIND_INVALID when it is not absolute, or its directory is not there or closed to the caller.
 */
int sbx_dest_init(struct sbx_dest *dest, const struct sbx_job *job,
	const struct sbx_sandbox *sandbox, struct sbx_err *err);

/* Makes it: SBX_KIND_INVALID when it exists or must not be made by the caller. */
int sbx_dest_make_dir(const struct sbx_dest *dest, int *ret_fd, struct sbx_err *err);
int sbx_dest_make_file(const struct sbx_dest *dest, int *ret_fd, struct sbx_err *err);
/* Removes the file again, after a failure. */
void sbx_dest_unmake_file(const struct sbx_dest *dest);

#endif
