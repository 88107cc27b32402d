/* SPDX-License-Identifier: MIT */
/*
 * Network namespaces ahead of need. Making one takes a good part of the time in which a slot is
 * made, above all with "bridge", where it waits for the kernel to take old ones apart: so one is
 * made while a command runs, when nobody waits for the spawner.
 */
#ifndef SBX_SESSION_NETPOOL_H
#define SBX_SESSION_NETPOOL_H

#include "spawn.h"

/* A namespace that is ready for a session and nobody else's; the caller closes it. */
int sbx_netpool_take(struct sbx_spawn *spawn, int *ret_ns, struct sbx_err *err);
/* Makes one that is ready, unless there is one. If that fails, take() fails or does it. */
void sbx_netpool_fill(struct sbx_spawn *spawn);

#endif
