/* SPDX-License-Identifier: MIT */
/*
 * attack [NAME]: tries one thing that a session must not be able to do, with arguments that would
 * be good for root on the host, and prints how the kernel answered: the name of the error, or
 * "allowed". Without a name it lists all. Compiled by the test with the host's compiler. Should a
 * wall be missing, the host still takes no harm: times, images and modules are ones that the kernel
 * finds bad.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* not in every C library's headers */
#define CALL_CLONE3         435
#define CALL_OPEN_TREE      428
#define CALL_MOVE_MOUNT     429
#define CALL_FSOPEN         430
#define CALL_FSMOUNT        432
#define CALL_FSPICK         433
#define CALL_PIDFD_OPEN     434
#define CALL_PIDFD_GETFD    438
#define CALL_MOUNT_SETATTR  442
#define CALL_STATMOUNT      457
#define CALL_OPEN_TREE_ATTR 467
#define HIGH_BIT            (1L << 32)
#define CLONE_CALL          -1 /* instead of a call's number: clone() with these flags */

#define S(text)              ((long)(text))
#define DEVICE(major, minor) ((major) << 8 | (minor)) /* of small numbers */

static const char zero_page[4096];
static const unsigned long mount_attr[4] = {1 /* MOUNT_ATTR_RDONLY */};
static const unsigned long clone3_user[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};

/* One call and its arguments. Those that stand for "this very program" or the like are steps. */
static const struct call {
	const char *name;
	long number;
	long args[6];
} calls[] = {
	{"mount-tmpfs", SYS_mount, {S("t"), S("/mnt"), S("tmpfs"), 0, 0}},
	{"mount-proc", SYS_mount, {S("p"), S("/mnt"), S("proc"), 0, 0}},
	{"mount-sysfs", SYS_mount, {S("s"), S("/mnt"), S("sysfs"), 0, 0}},
	{"mount-cgroup", SYS_mount, {S("c"), S("/mnt"), S("cgroup"), 0, S("memory")}},
	{"mount-cgroup2", SYS_mount, {S("c"), S("/mnt"), S("cgroup2"), 0, 0}},
	{"mount-overlay", SYS_mount, {S("o"), S("/mnt"), S("overlay"), 0, S("lowerdir=/usr:/etc")}},
	{"bind-over-proc", SYS_mount, {S("/tmp"), S("/proc"), 0, MS_BIND, 0}},
	{"remount-usr", SYS_mount, {0, S("/usr"), 0, MS_REMOUNT | MS_BIND, 0}},
	{"make-root-shared", SYS_mount, {0, S("/"), 0, MS_SHARED | MS_REC, 0}},
	{"unmask-keys", SYS_umount2, {S("/proc/keys"), MNT_DETACH}},
	{"umount-workspace", SYS_umount2, {S("/workspace"), MNT_DETACH}},
	{"pivot-root", SYS_pivot_root, {S("/tmp"), S("/tmp")}},
	{"open-tree", CALL_OPEN_TREE, {AT_FDCWD, S("/"), 1}},
	{"open-tree-attr", CALL_OPEN_TREE_ATTR, {AT_FDCWD, S("/"), 1, S(mount_attr), 32}},
	{"move-mount", CALL_MOVE_MOUNT, {AT_FDCWD, S("/tmp"), AT_FDCWD, S("/mnt"), 0}},
	{"fsopen", CALL_FSOPEN, {S("tmpfs"), 0}},
	{"fsmount", CALL_FSMOUNT, {0, 0, 0}},
	{"fspick", CALL_FSPICK, {AT_FDCWD, S("/"), 0}},
	{"mount-setattr", CALL_MOUNT_SETATTR, {AT_FDCWD, S("/usr"), 0, S(mount_attr), 32}},
	{"statmount", CALL_STATMOUNT, {S(zero_page), 0, 0, 0}},

	{"unshare-user", SYS_unshare, {CLONE_NEWUSER}},
	{"unshare-mount", SYS_unshare, {CLONE_NEWNS}},
	{"unshare-pid", SYS_unshare, {CLONE_NEWPID}},
	{"unshare-net", SYS_unshare, {CLONE_NEWNET}},
	{"unshare-ipc", SYS_unshare, {CLONE_NEWIPC}},
	{"unshare-uts", SYS_unshare, {CLONE_NEWUTS}},
	{"unshare-cgroup", SYS_unshare, {CLONE_NEWCGROUP}},
	{"unshare-time", SYS_unshare, {0x80}},
	{"clone-user", CLONE_CALL, {CLONE_NEWUSER}},
	{"clone-mount", CLONE_CALL, {CLONE_NEWNS}},
	{"clone-pid", CLONE_CALL, {CLONE_NEWPID}},
	{"clone-net", CLONE_CALL, {CLONE_NEWNET}},
	{"clone-user-mount", CLONE_CALL, {CLONE_NEWUSER | CLONE_NEWNS}},
	{"clone3-user", CALL_CLONE3, {S(clone3_user), sizeof(clone3_user)}},
	{"sethostname", SYS_sethostname, {S("x"), 1}},

	{"add-key", SYS_add_key, {S("user"), S("sbx"), S("x"), 1, -3}},
	{"request-key", SYS_request_key, {S("user"), S("sbx"), 0, -3}},
	{"keyctl-session", SYS_keyctl, {0, -3, 1}},
	{"bpf-map", SYS_bpf, {0, S(zero_page), 64}},
	{"io-uring-setup", SYS_io_uring_setup, {1, S(zero_page)}},
	{"io-uring-enter", SYS_io_uring_enter, {0, 0, 0, 0, 0, 0}},
	{"io-uring-register", SYS_io_uring_register, {0, 0, 0, 0}},
	{"userfaultfd", SYS_userfaultfd, {O_CLOEXEC}},
	{"perf-event-open", SYS_perf_event_open, {S(zero_page), 0, -1, -1, 0}},
	{"init-module", SYS_init_module, {S(zero_page), sizeof(zero_page), S("")}},
	{"finit-module", SYS_finit_module, {0, S(""), 0}},
	{"delete-module", SYS_delete_module, {S("sbx_none"), O_NONBLOCK}},
	{"kexec-load", SYS_kexec_load, {0, 0, 0, 0}},
	{"reboot", SYS_reboot, {0xfee1dead, 672274793, 0, 0}},
	{"swapon", SYS_swapon, {S("/dev/zero"), 0}},
	{"acct", SYS_acct, {S("/tmp/acct")}},
	{"syslog", SYS_syslog, {3, S(zero_page), 16}},
	{"set-clock", SYS_clock_settime, {0, 1}},
	{"settimeofday", SYS_settimeofday, {1, 1}},
	{"quotactl", SYS_quotactl, {0, 0, 0, 0}},
	{"fanotify", SYS_fanotify_init, {0, O_RDONLY}},
	{"handle-open", SYS_open_by_handle_at, {AT_FDCWD, S(zero_page), O_RDONLY}},
	{"personality-uname26", SYS_personality, {0x0020000}},
	{"personality-32bit", SYS_personality, {0x0000008}},
	{"personality-read-exec", SYS_personality, {0x0400000}},

	{"socket-packet", SYS_socket, {17, SOCK_RAW, 0}},
	{"socket-vsock", SYS_socket, {40, SOCK_STREAM, 0}},
	{"socket-alg", SYS_socket, {38, SOCK_SEQPACKET, 0}},
	{"socket-xdp", SYS_socket, {44, SOCK_RAW, 0}},
	{"socket-tipc", SYS_socket, {30, SOCK_STREAM, 0}},
	{"socket-rds", SYS_socket, {21, SOCK_SEQPACKET, 0}},
	{"socket-raw-ipv4", SYS_socket, {AF_INET, SOCK_RAW, 255}},
	{"socket-raw-ipv6", SYS_socket, {AF_INET6, SOCK_RAW, 58}},
	{"socket-netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, 12}},
	{"socket-uevent", SYS_socket, {AF_NETLINK, SOCK_RAW, 15}},

	{"tiocsti", SYS_ioctl, {0, TIOCSTI, S("x")}},
	{"tiocsti-high-bit", SYS_ioctl, {0, TIOCSTI | HIGH_BIT, S("x")}},
	{"tioclinux", SYS_ioctl, {0, TIOCLINUX, S("\2")}},
	{"tioclinux-high-bit", SYS_ioctl, {0, TIOCLINUX | HIGH_BIT, S("\2")}},
	{"tioccons", SYS_ioctl, {0, TIOCCONS, 0}},

	{"attach-init", SYS_ptrace, {PTRACE_ATTACH, 1, 0, 0}},
	{"seize-init", SYS_ptrace, {PTRACE_SEIZE, 1, 0, 0}},
	{"limit-init", SYS_prlimit64, {1, RLIMIT_NOFILE, S(zero_page), 0}},
	{"device-mem", SYS_mknod, {S("/tmp/mem"), S_IFCHR | 0666, DEVICE(1, 1)}},
	{"device-disk", SYS_mknod, {S("/tmp/disk"), S_IFBLK | 0666, DEVICE(8, 0)}},
	{"device-in-workspace", SYS_mknod, {S("disk"), S_IFBLK | 0666, DEVICE(254, 0)}},
	{"device-in-shm", SYS_mknod, {S("/dev/shm/kmsg"), S_IFCHR | 0666, DEVICE(1, 11)}},
	{"mark-trusted", SYS_setxattr, {S("."), S("trusted.overlay.opaque"), S("y"), 1, 0}},
	{"mark-security", SYS_setxattr, {S("."), S("security.ima"), S("x"), 1, 0}},
#ifdef __x86_64__
	{"x32-getpid", 0x40000000 | SYS_getpid, {0}},
	{"x32-mount", 0x40000000 | SYS_mount, {S("t"), S("/mnt"), S("tmpfs"), 0, 0}},
	{"iopl", SYS_iopl, {3}},
	{"ioperm", SYS_ioperm, {0x80, 1, 1}},
	{"modify-ldt", SYS_modify_ldt, {0, S(zero_page), 16}},
#endif
	{"call-of-the-future", 4000, {0}},
};

static int ask(const struct call *call)
{
	const long *a = call->args;
	long number = call->number == CLONE_CALL ? SYS_clone : call->number;
	long r;

	if (call->number == CLONE_CALL)
		r = syscall(number, a[0] | SIGCHLD, 0, 0, 0, 0);
	else
		r = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (r == 0 && (call->number == CLONE_CALL || call->number == CALL_CLONE3))
		_exit(0); /* maybe the child; the parent prints */
	return r < 0 ? errno : 0;
}

#ifdef __x86_64__
/* A kernel without the 32-bit entry answers by a signal: as good a refusal as the filter's. */
static void no_entry(int number)
{
	static const char word[] = "ENOSYS\n";

	(void)!write(STDOUT_FILENO, word, sizeof(word) - 1); /* what it says is checked */
	_exit(number == SIGSEGV ? 0 : 1);
}

/* The 32-bit entry has numbers of its own: a filter for the 64-bit ones alone is walked around. */
static int i386_call(long number, long argument)
{
	long r;

	(void)signal(SIGSEGV, no_entry); /* cannot fail */
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(number), "b"(argument)
			 : "memory", "r8", "r9", "r10", "r11");
	return r < 0 ? (int)-r : 0;
}

static int i386_getpid(void)
{
	return i386_call(20, 0);
}

static int i386_unshare_user(void)
{
	return i386_call(310, CLONE_NEWUSER);
}
#endif

/* A handle made here for a file that is reachable, as the "shocker" exploit begins. */
static int handle_of_root(void)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} h = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
	int mount_id, fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || name_to_handle_at(fd, "", &h.handle, &mount_id, AT_EMPTY_PATH) < 0)
		return errno;
	return open_by_handle_at(fd, &h.handle, O_RDONLY) < 0 ? errno : 0;
}

static int enter_own_namespace(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	return setns(fd, 0) < 0 ? errno : 0;
}

static int setns_user(void)
{
	return enter_own_namespace("/proc/self/ns/user");
}

static int setns_mount_of_init(void)
{
	return enter_own_namespace("/proc/1/ns/mnt");
}

static int read_init_memory(void)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {(void *)(uintptr_t)0x400000, 1};

	return process_vm_readv(1, &local, 1, &remote, 1, 0) < 0 ? errno : 0;
}

static int steal_descriptor_of_init(void)
{
	long fd = syscall(CALL_PIDFD_OPEN, 1, 0);

	if (fd < 0)
		return errno;
	return syscall(CALL_PIDFD_GETFD, fd, 0, 0) < 0 ? errno : 0;
}

/* Takes up again every capability that there is. */
static int raise_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct all[2] = {
		{~0u, ~0u, ~0u},
		{0x1ff, 0x1ff, 0x1ff},
	};

	return syscall(SYS_capset, &header, all) < 0 ? errno : 0;
}

static const struct step {
	const char *name;
	int (*run)(void);
} steps[] = {
#ifdef __x86_64__
	{"i386-getpid", i386_getpid},
	{"i386-unshare-user", i386_unshare_user},
#endif
	{"handle-of-usr", handle_of_root},
	{"setns-user", setns_user},
	{"setns-init-mount", setns_mount_of_init},
	{"read-init-memory", read_init_memory},
	{"steal-init-descriptor", steal_descriptor_of_init},
	{"raise-capabilities", raise_capabilities},
};

#define N(table) (sizeof(table) / sizeof(*(table)))

static void list(void)
{
	for (size_t i = 0; i < N(calls); i++)
		puts(calls[i].name);
	for (size_t i = 0; i < N(steps); i++)
		puts(steps[i].name);
}

static void say(int e)
{
	puts(e ? strerrorname_np(e) : "allowed");
}

static int attack(const char *name)
{
	for (size_t i = 0; i < N(calls); i++)
		if (!strcmp(name, calls[i].name)) {
			say(ask(&calls[i]));
			return 0;
		}
	for (size_t i = 0; i < N(steps); i++)
		if (!strcmp(name, steps[i].name)) {
			say(steps[i].run());
			return 0;
		}
	(void)fprintf(stderr, "attack %s: not known\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return attack(argv[1]);
	list();
	return 0;
}
