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

/* The walls of docs/security.md, in its order. */
enum sbx_wall {
	SBX_WALL_IDS,
	SBX_WALL_NAMESPACES,
	SBX_WALL_INIT,
	SBX_WALL_ROOT,
	SBX_WALL_DEVICES,
	SBX_WALL_CAPABILITIES,
	SBX_WALL_CALLS,
	SBX_WALL_NETWORK,
	SBX_WALL_BRIDGE,
	SBX_WALL_LIMITS,
	SBX_WALL_FILES,
	SBX_WALL_MARKS,
	SBX_WALL_DAEMON,
	SBX_WALLS,
};

struct sbx_probe {
	const char *feature; /* static, as is all text but detail */
	const char *why;     /* what it is needed for */
	const char *instead; /* what is done without it; NULL: nothing can be done */
	uint32_t walls;      /* 1 << enum sbx_wall each: they do not stand without it */
	enum sbx_probe_state state;
	char detail[200]; /* version, numbers, or the kernel's reason; may be empty */
};

/* "present", "instead", "missing". */
const char *sbx_probe_state_name(enum sbx_probe_state state);

/* One wall on this host. */
struct sbx_wall_state {
	const char *wall;  /* its heading in docs/security.md */
	const char *stops; /* what it keeps sessions from */
	bool in_force;
	char why[400]; /* what it stands on, or what is missing and what follows from that */
};
/* From the answers of sbx_probe_all(). */
void sbx_probe_walls(
	const struct sbx_probe *probes, size_t n, struct sbx_wall_state ret[static SBX_WALLS]);

/*
 * Tries everything, in a child process with namespaces of its own; nothing is left behind but a
 * scratch directory below state_fd that is removed again. state_fd: where sandboxes are kept (the
 * state root), for what depends on its file system. Takes some ten milliseconds. Needs root:
 * without it most rows are missing with EPERM as their reason. policy: of system calls; NULL: the
 * installed default.
 */
int sbx_probe_all(int state_fd, const char *policy, struct sbx_probe ret[static SBX_PROBES_MAX],
	size_t *ret_n, struct sbx_err *err);

#endif
