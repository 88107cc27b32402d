/* SPDX-License-Identifier: MIT */
/*
 * The host's side of "bridge": the bridge sbx0, which all sandboxes of a network namespace share,
 * and a block of its pool of addresses for each sandbox that runs. Nothing is kept in files: what
 * is taken is what the kernel has, and whatever a killed process had is free again.
 */
#ifndef SBX_SESSION_BRIDGE_H
#define SBX_SESSION_BRIDGE_H

#include "sbx/network.h"

struct sbx_bridge;

/* In the host's network namespace. Makes what is not there. allow and resolver stay the caller's
 * and must outlive it. */
int sbx_bridge_open(const struct sbx_allow *allow, size_t n_allow,
	const struct sbx_resolver *resolver, struct sbx_bridge **ret, struct sbx_err *err);
void sbx_bridge_free(struct sbx_bridge *bridge); /* NULL is fine */

/* Puts up again what an administrator has removed: the bridge (*ret_moved: ports that were made
 * before are none of it) or the rules that nobody owns. */
int sbx_bridge_check(struct sbx_bridge *bridge, bool *ret_moved, struct sbx_err *err);
/* Gives the calling process's fresh network namespace, also open as net_ns, its way out: eth0. It
 * goes with the namespace. proc_fd: /proc. */
int sbx_bridge_connect(struct sbx_bridge *bridge, int net_ns, int proc_fd, struct sbx_err *err);

#endif
