/* SPDX-License-Identifier: MIT */
#include "sbx/sys.h"

#include <sys/syscall.h>
#include <unistd.h>

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

int sbx_sys_openat2(int dir_fd, const char *path, const struct open_how *how)
{
	return result(syscall(SYS_openat2, dir_fd, path, how, sizeof(*how)));
}

pid_t sbx_sys_clone3(struct clone_args *args)
{
	return result(syscall(SYS_clone3, args, sizeof(*args)));
}

int sbx_sys_pidfd_open(pid_t pid)
{
	return result(syscall(SYS_pidfd_open, pid, 0));
}

int sbx_sys_pidfd_signal(int pidfd, int sig)
{
	return result(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int sbx_sys_pivot_root(const char *new_root, const char *put_old)
{
	return result(syscall(SYS_pivot_root, new_root, put_old));
}

int sbx_sys_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return result(syscall(SYS_close_range, first, last, flags));
}
