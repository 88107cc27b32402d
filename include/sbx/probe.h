/* SPDX-License-Identifier: MIT */
/*
 * What this host gives to sandboxes, found out by trying: the rows that "sbx-admin doctor" prints.
 */
#ifndef SBX_PROBE_H
#define SBX_PROBE_H

#include "sbx/err.h"

#define SBX_PROBES_MAX 32

enum sbx_probe_state {
	SBX_PROBE_PRESENT,
	SBX_PROBE_INSTEAD, /* absent; what is said in "instead" is used */
	SBX_PROBE_MISSING, /* absent, and no sandbox can start without it */
};

struct sbx_probe {
	const char *feature; /* static, as is all text but detail */
	const char *why;     /* what it is needed for */
	const char *instead; /* what is done without it; NULL: nothing can be done */
	enum sbx_probe_state state;
	char detail[200]; /* version, numbers, or the kernel's reason; may be empty */
};

/* "present", "instead", "missing". */
const char *sbx_probe_state_name(enum sbx_probe_state state);

/*
 * Tries everything, in a child process with namespaces of its own; nothing is left behind but a
 * scratch directory below state_fd that is removed again. state_fd: where sandboxes are kept (the
 * state root), for what depends on its file system. Takes some ten milliseconds. Needs root:
 * without it most rows are missing with EPERM as their reason.
 */
int sbx_probe_all(int state_fd, struct sbx_probe ret[static SBX_PROBES_MAX], size_t *ret_n,
	struct sbx_err *err);

#endif
