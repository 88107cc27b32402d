/* SPDX-License-Identifier: MIT */
/*
 * What the default policy answers, call by call. Read by the unit test, which asks in a child of
 * its own, and by the system test, which asks inside a session. Arguments are harmless where the
 * call is permitted; where it is refused they would give another error without the filter.
 */
#ifndef SBX_TEST_FILTER_CASES_H
#define SBX_TEST_FILTER_CASES_H

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sbx/util.h"

#define FILTER_OK       0
#define FILTER_AF_ALG   38
#define FILTER_AF_VSOCK 40
#define FILTER_HIGH     (1L << 32) /* a bit that the kernel cuts off where it takes an int */

struct filter_case {
	const char *name;
	long number;
	long args[4];
	int want; /* errno, or FILTER_OK */
};

static const struct filter_case filter_cases[] = {
	{"getpid", SYS_getpid, {0}, FILTER_OK},
	{"close of nothing", SYS_close, {-1}, EBADF},
	{"openat of nothing", SYS_openat, {-1, (long)"x"}, EBADF},
	{"statx of nothing", SYS_statx, {-1, (long)"x"}, EBADF},
	{"faccessat2 of nothing", SYS_faccessat2, {-1, (long)"x", 0, 0}, EBADF},
	{"openat2 of nothing", SYS_openat2, {-1, (long)"x", 0, 0}, EINVAL},
	{"close_range", SYS_close_range, {1000000, 1000001, 0}, FILTER_OK},
	{"membarrier query", SYS_membarrier, {0}, FILTER_OK},
	{"seccomp query", SYS_seccomp, {2, 0, 0}, EFAULT},
	{"name_to_handle_at", SYS_name_to_handle_at, {-1, (long)"x", 0, 0}, EBADF},
	{"chroot to nothing", SYS_chroot, {(long)"/does/not/exist"}, ENOENT},
	{"ptrace of nobody", SYS_ptrace, {16, 0x7fffffff, 0, 0}, ESRCH},
	{"pidfd_open of nobody", SYS_pidfd_open, {0x7fffffff, 0}, ESRCH},
	{"prlimit64 of oneself", SYS_prlimit64, {0, 7, 0, 0}, FILTER_OK},
	{"prlimit64 of pid 1", SYS_prlimit64, {1, 7, 0, 0}, EPERM},

	{"clone3", SYS_clone3, {0, 0}, ENOSYS},
	{"clone in a user namespace", SYS_clone, {CLONE_NEWUSER | CLONE_THREAD}, EPERM},
	{"clone in a mount namespace", SYS_clone, {CLONE_NEWNS | CLONE_THREAD}, EPERM},
	{"clone in a pid namespace", SYS_clone, {CLONE_NEWPID | CLONE_THREAD}, EPERM},
	{"clone in a net namespace", SYS_clone, {CLONE_NEWNET | CLONE_THREAD}, EPERM},
	{"clone in an ipc namespace", SYS_clone, {CLONE_NEWIPC | CLONE_THREAD}, EPERM},
	{"clone in a uts namespace", SYS_clone, {CLONE_NEWUTS | CLONE_THREAD}, EPERM},
	{"clone in a cgroup namespace", SYS_clone, {CLONE_NEWCGROUP | CLONE_THREAD}, EPERM},
	{"clone otherwise", SYS_clone, {CLONE_THREAD}, EINVAL},
	{"unshare nothing", SYS_unshare, {0}, FILTER_OK},
	{"unshare the directory", SYS_unshare, {CLONE_FS}, FILTER_OK},
	{"unshare the user namespace", SYS_unshare, {CLONE_NEWUSER}, EPERM},
	{"unshare the mount namespace", SYS_unshare, {CLONE_NEWNS | CLONE_SIGHAND}, EPERM},
	{"unshare the time namespace", SYS_unshare, {0x80 | CLONE_SIGHAND}, EPERM},
	{"setns", SYS_setns, {-1, 0}, EPERM},

	{"mount", SYS_mount, {0, 0, 0, 0}, EPERM},
	{"umount2", SYS_umount2, {0, 0}, EPERM},
	{"pivot_root", SYS_pivot_root, {0, 0}, EPERM},
	{"open_tree", SYS_open_tree, {-1, (long)"x", 0}, EPERM},
	{"move_mount", SYS_move_mount, {-1, (long)"x", -1, (long)"x"}, EPERM},
	{"fsopen", SYS_fsopen, {0, 0}, EPERM},
	{"fsconfig", SYS_fsconfig, {-1, 0, 0, 0}, EPERM},
	{"fsmount", SYS_fsmount, {-1, 0, 0}, EPERM},
	{"fspick", SYS_fspick, {-1, (long)"x", 0}, EPERM},
	{"mount_setattr", SYS_mount_setattr, {-1, (long)"x", 0, 0}, EPERM},
	{"open_by_handle_at", SYS_open_by_handle_at, {-1, 0, 0}, EPERM},

	{"io_uring_setup", SYS_io_uring_setup, {0, 0}, ENOSYS},
	{"bpf", SYS_bpf, {-1, 0, 0}, EPERM},
	{"userfaultfd", SYS_userfaultfd, {-1}, EPERM},
	{"perf_event_open", SYS_perf_event_open, {0, 0, 0, 0}, EPERM},
	{"add_key", SYS_add_key, {0, 0, 0, 0}, EPERM},
	{"request_key", SYS_request_key, {0, 0, 0, 0}, EPERM},
	{"keyctl", SYS_keyctl, {-1, 0, 0, 0}, EPERM},
	{"init_module", SYS_init_module, {0, 0, 0}, EPERM},
	{"finit_module", SYS_finit_module, {-1, 0, 0}, EPERM},
	{"delete_module", SYS_delete_module, {0, 0}, EPERM},
	{"kexec_load", SYS_kexec_load, {0, 0, 0, 0}, EPERM},
	{"acct", SYS_acct, {(long)"/does/not/exist"}, EPERM},
	{"swapon", SYS_swapon, {(long)"/does/not/exist", 0}, EPERM},
	{"reboot", SYS_reboot, {0, 0, 0, 0}, EPERM},
	{"settimeofday", SYS_settimeofday, {1, 1}, EPERM},
	{"clock_settime", SYS_clock_settime, {-1, 0}, EPERM},
	{"syslog", SYS_syslog, {-1, 0, 0}, EPERM},
	{"quotactl", SYS_quotactl, {-1, 0, 0, 0}, EPERM},
	{"sethostname", SYS_sethostname, {0, -1}, EPERM},

	{"ioctl TCGETS of nothing", SYS_ioctl, {-1, TCGETS, 0}, EBADF},
	{"ioctl TIOCSTI", SYS_ioctl, {-1, TIOCSTI, 0}, EPERM},
	{"ioctl TIOCSTI with a high bit", SYS_ioctl, {-1, TIOCSTI | FILTER_HIGH, 0}, EPERM},
	{"ioctl TIOCLINUX", SYS_ioctl, {-1, TIOCLINUX, 0}, EPERM},
	{"ioctl TIOCLINUX with a high bit", SYS_ioctl, {-1, TIOCLINUX | FILTER_HIGH, 0}, EPERM},

	{"socket unix", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, FILTER_OK},
	{"socket inet", SYS_socket, {AF_INET, SOCK_DGRAM, 0}, FILTER_OK},
	{"socket inet6", SYS_socket, {AF_INET6, SOCK_DGRAM, 0}, FILTER_OK},
	{"socket netlink route", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE}, FILTER_OK},
	{"socket netlink audit", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT},
		EPROTONOSUPPORT},
	{"socket netlink netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}, EPERM},
	{"socket packet", SYS_socket, {AF_PACKET, SOCK_RAW, 0}, EAFNOSUPPORT},
	{"socket alg", SYS_socket, {FILTER_AF_ALG, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
	{"socket vsock", SYS_socket, {FILTER_AF_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
	{"socket unix with a high bit", SYS_socket, {AF_UNIX | FILTER_HIGH, SOCK_STREAM, 0},
		EAFNOSUPPORT},
	{"socket appletalk", SYS_socket, {AF_APPLETALK, SOCK_DGRAM, 0}, EPERM},
	{"socketpair inet", SYS_socketpair, {AF_INET, SOCK_STREAM, 0, 0}, EAFNOSUPPORT},

	{"personality query", SYS_personality, {0xffffffff}, FILTER_OK},
	{"personality linux", SYS_personality, {0}, FILTER_OK},
	{"personality read-implies-exec", SYS_personality, {0x400000}, EPERM},

	{"a call of the future", 2000, {0}, ENOSYS},
#ifdef __x86_64__
	{"getpid of x32", 0x40000000 | SYS_getpid, {0}, ENOSYS},
	{"iopl", SYS_iopl, {3}, EPERM},
	{"ioperm", SYS_ioperm, {0, 1, 1}, EPERM},
#endif
};

#define FILTER_N_CASES SBX_N_ELEMENTS(filter_cases)

/* Asks the kernel: errno, or FILTER_OK. */
static inline int filter_ask(const struct filter_case *c)
{
	long r = syscall(c->number, c->args[0], c->args[1], c->args[2], c->args[3], 0, 0);

	return r < 0 ? errno : FILTER_OK;
}

#ifdef __x86_64__
/* getpid(2) by the 32-bit entry, as an i386 program calls it. */
static inline long filter_ask_i386(void)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return r;
}
#endif

#endif
