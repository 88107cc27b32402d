/* SPDX-License-Identifier: MIT */
/*
 * Touching files as somebody else: setfsuid(2), setfsgid(2), for a worker that is root otherwise.
 * Held for a few calls only; processes of ours have no second thread that it would apply to.
 */
#ifndef SBX_OPS_IDENTITY_H
#define SBX_OPS_IDENTITY_H

#include <sys/types.h>

#include "sbx/err.h"

struct sbx_identity {
	uid_t uid; /* before */
	gid_t gid;
	mode_t umask;
	bool active;
};

enum sbx_identity_flags {
	/* keeps root's power over files; without it only what that user may do succeeds */
	SBX_IDENTITY_PRIVILEGED = 1 << 0,
};

/* From now on files are made by uid and gid, with a umask of 022. Also sets up what restore needs
 * when it fails. */
int sbx_identity_assume(struct sbx_identity *identity, uid_t uid, gid_t gid,
	enum sbx_identity_flags flags, struct sbx_err *err);
/* Ends it; nothing to do when it was not assumed. Cannot fail: it would end the process. */
void sbx_identity_restore(struct sbx_identity *identity);
#define SBX_IDENTITY SBX_CLEANUP(sbx_identity_restore)

#endif
