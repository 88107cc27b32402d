/* SPDX-License-Identifier: MIT */
/*
 * Where the inits of one slot are born: in the slot's control group, whichever kind it is.
 *
 * v2 does that by itself (CLONE_INTO_CGROUP). In v1 a process is born where its parent is, and
 * moving one afterwards makes every fork on the host wait for an RCU grace period
 * (cgroup_threadgroup_rwsem), some milliseconds each time. So a helper is moved, once: a process
 * that shares the spawner's memory and descriptors, sits in the group, and forks inits there on
 * request, as children of the spawner. It has no code of its own to run meanwhile and costs the
 * kernel's part of a process and a stack.
 *
 * The kernel kills all who share the memory of a process that it kills for a memory limit; so the
 * spawner, and the helper with it, are exempt from that where we may (CAP_SYS_RESOURCE), and inits
 * and their commands come first in any case.
 */
#ifndef SBX_SESSION_SEAT_H
#define SBX_SESSION_SEAT_H

#include <linux/sched.h>
#include <sys/types.h>

#include "sbx/cgroup.h"

struct sbx_seat;

/* Copies what it needs of entry. proc_fd: the host's /proc. */
int sbx_seat_new(int proc_fd, const struct sbx_cgroup_entry *entry, struct sbx_seat **ret,
	struct sbx_err *err);
/* NULL is fine. The group may be removed afterwards. */
void sbx_seat_free(struct sbx_seat *seat);

/*
 * clone3(2) with a copy of the memory: the child, the caller's, runs child(data), which must not
 * return. args: flags and pidfd only; exit_signal is SIGCHLD. seat may be NULL: in the caller's
 * own group. Returns the pid or -errno.
 */
pid_t sbx_seat_clone(struct sbx_seat *seat, struct clone_args *args,
	void (*child)(const void *data), const void *data);

#endif
