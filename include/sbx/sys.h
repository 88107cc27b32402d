/* SPDX-License-Identifier: MIT */
/* The one home of syscall(): calls that glibc 2.36 does not wrap. All return -errno on failure. */
#ifndef SBX_SYS_H
#define SBX_SYS_H

#include <linux/openat2.h>
#include <linux/sched.h>
#include <sys/types.h>

#include "sbx/util.h"

int sbx_sys_openat2(int dir_fd, const char *path, const struct open_how *how);
/*
 * clone3(2) without CLONE_VM: returns twice like fork(2); 0 in the child. ret_pidfd is filled in
 * the parent when args->flags has CLONE_PIDFD.
 */
pid_t sbx_sys_clone3(struct clone_args *args);
int sbx_sys_pidfd_open(pid_t pid);
int sbx_sys_pidfd_signal(int pidfd, int sig);
int sbx_sys_pivot_root(const char *new_root, const char *put_old);
int sbx_sys_close_range(unsigned int first, unsigned int last, unsigned int flags);

#endif
