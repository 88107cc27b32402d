/* SPDX-License-Identifier: MIT */
#include "probe_try.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "mount.h"
#include "sbx/cgroup.h"
#include "sbx/fs.h"
#include "sbx/sys.h"
#include "userns.h"

#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

#define STATUS_MAX 16384
#define SMALL      (UINT64_C(1) << 20)

static const char *const cgroup2_roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

int sbx_try_kernel(struct sbx_probe_context *context, struct sbx_err *err)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (uname(&name) < 0)
		return sbx_err_set(err, errno, "uname: %m");
	(void)snprintf(context->detail, sizeof(context->detail), "%.64s", name.release);
	if (sscanf(name.release, "%d.%d", &major, &minor) != 2 || major < KERNEL_MAJOR ||
		(major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		return sbx_err_set(err, ENOSYS, "this is kernel %.64s", name.release);
	return 0;
}

int sbx_try_capabilities(struct sbx_probe_context *context, struct sbx_err *err)
{
	static const struct {
		int cap;
		const char *name;
	} needed[] = {
		{CAP_SYS_ADMIN, "cap_sys_admin"},
		{CAP_NET_ADMIN, "cap_net_admin"},
		{CAP_MKNOD, "cap_mknod"},
		{CAP_CHOWN, "cap_chown"},
		{CAP_DAC_OVERRIDE, "cap_dac_override"},
		{CAP_SETUID, "cap_setuid"},
		{CAP_SETGID, "cap_setgid"},
		{CAP_SYS_CHROOT, "cap_sys_chroot"},
		{CAP_SETPCAP, "cap_setpcap"},
	};
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	unsigned long long held = 0;
	const char *line;
	int r = sbx_fs_read_at(context->proc_fd, "self/status", STATUS_MAX, &text);

	if (r < 0)
		return sbx_err_set(err, -r, "read /proc/self/status: %m");
	line = strstr(text.data, "\nCapEff:");
	if (!line || sscanf(line, "\nCapEff: %llx", &held) != 1)
		return sbx_err_set(err, EPROTO, "/proc/self/status does not tell CapEff");
	for (size_t i = 0; i < SBX_N_ELEMENTS(needed); i++)
		if (!(held & (1ULL << needed[i].cap)))
			return sbx_err_set(err, EPERM,
				"%s is not held: run it as root, outside of another container",
				needed[i].name);
	return 0;
}

int sbx_try_user_namespace(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	if (sbx_fs_read_at(context->proc_fd, "sys/user/max_user_namespaces", 64, &text) == 0)
		(void)snprintf(context->detail, sizeof(context->detail),
			"user.max_user_namespaces is %ld", strtol(text.data, NULL, 10));
	return sbx_userns_new(context->proc_fd, SBX_TRY_ID_BASE, &context->user_ns, err);
}

int sbx_try_mount_namespace(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return sbx_err_set(err, errno, "make a mount namespace: %m");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return sbx_err_set(err, errno, "make mounts private: %m");
	return 0;
}

int sbx_try_other_namespaces(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	/* the pid namespace is for children; the next one in it will be its pid 1 and end it */
	if (unshare(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
		return sbx_err_set(err, errno, "make namespaces: %m");
	return 0;
}

int sbx_try_mount_descriptors(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int tmpfs = -EBADF, clone = -EBADF;
	int r;

	r = sbx_mount_tmpfs(SMALL, 0755, 0, MOUNT_ATTR_NOSUID, &tmpfs, err);
	if (r >= 0)
		r = sbx_mount_clone(AT_FDCWD, "/", 0, &clone, err);
	if (r >= 0)
		r = sbx_mount_set(clone, MOUNT_ATTR_RDONLY, -EBADF, 0, err);
	return r;
}

/* An overlay on the scratch directories: the working directory is theirs. */
static int try_overlay(
	const struct sbx_mount_option *options, size_t n_options, struct sbx_err *err)
{
	SBX_CLOSE int tree = -EBADF;

	return sbx_mount_new("overlay", options, n_options, MOUNT_ATTR_NODEV, &tree, err);
}

int sbx_try_overlay(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	static const struct sbx_mount_option options[] = {
		{"lowerdir", "lower"},
		{"upperdir", "upper"},
		{"workdir", "work"},
		{"redirect_dir", "on"},
		{"volatile", NULL},
	};

	return try_overlay(options, SBX_N_ELEMENTS(options), err);
}

int sbx_try_lowerdir_plus(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	static const struct sbx_mount_option options[] = {
		{"lowerdir+", "lower"},
		{"lowerdir+", "merged"},
	};

	return try_overlay(options, SBX_N_ELEMENTS(options), err);
}

/* By way of the working directory: scratch_fd was opened before the mount namespace was made,
 * but unshare(2) moved the working directory along. */
int sbx_try_idmap(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int tree = -EBADF;
	int r;

	if (context->user_ns < 0)
		return sbx_err_set(err, EPERM, "needs a user namespace");
	r = sbx_mount_clone(AT_FDCWD, ".", 0, &tree, err);
	if (r >= 0)
		r = sbx_mount_set(tree, MOUNT_ATTR_NODEV, context->user_ns, 0, err);
	return r;
}

int sbx_try_trusted(struct sbx_probe_context *context, struct sbx_err *err)
{
	if (fsetxattr(context->scratch_fd, "trusted.overlay.probe", "y", 1, 0) < 0)
		return sbx_err_set(err, errno, "set a trusted attribute: %m");
	return 0;
}

int sbx_try_reflink(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int from = -EBADF, to = -EBADF;
	int r = sbx_fs_write_at(context->scratch_fd, "from", 0600, "x", 1, 0);

	if (r < 0)
		return sbx_err_set(err, -r, "write a scratch file: %m");
	from = openat(context->scratch_fd, "from", O_RDONLY | O_CLOEXEC);
	to = openat(context->scratch_fd, "to", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (from < 0 || to < 0)
		return sbx_err_set(err, errno, "open scratch files: %m");
	if (ioctl(to, FICLONE, from) < 0)
		return sbx_err_set(err, errno, "clone a file: %m");
	return 0;
}

int sbx_try_clone3(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int pidfd = -EBADF;
	int raw = -EBADF;
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_PIDFD,
		.exit_signal = SIGCHLD,
		.pidfd = (uintptr_t)&raw,
	};
	siginfo_t info;
	pid_t pid = sbx_sys_clone3(&args);

	if (pid < 0)
		return sbx_err_set(err, -pid, "clone3: %m");
	if (pid == 0)
		_exit(EXIT_SUCCESS);
	pidfd = raw;
	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
		return sbx_err_set(err, errno, "wait on a pidfd: %m");
	return 0;
}

int sbx_try_openat2(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int fd = sbx_fs_open_beneath(context->scratch_fd, "lower", O_PATH, 0, 0);

	return fd < 0 ? sbx_err_set(err, -fd, "openat2: %m") : 0;
}

int sbx_try_seccomp(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	/* EFAULT: the kernel wanted to read the filter, so it has filters (seccomp(2)) */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno != EFAULT)
		return sbx_err_set(err, errno, "seccomp: %m");
	return 0;
}

int sbx_try_sealing(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int fd = memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return sbx_err_set(err, errno, "seal a memfd: %m");
	return 0;
}

int sbx_try_devpts(struct sbx_probe_context *context, struct sbx_err *err)
{
	static const struct sbx_mount_option options[] = {{"ptmxmode", "0666"}};
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_CLOSE int tree = -EBADF;

	if (sbx_fs_read_at(context->proc_fd, "sys/kernel/pty/max", 64, &text) == 0)
		(void)snprintf(context->detail, sizeof(context->detail),
			"%ld terminals on this host (kernel.pty.max)", strtol(text.data, NULL, 10));
	return sbx_mount_new("devpts", options, SBX_N_ELEMENTS(options), 0, &tree, err);
}

int sbx_try_bash(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	if (access("/bin/bash", X_OK) < 0)
		return sbx_err_set(err, errno, "/bin/bash: %m");
	return 0;
}

static const char *find_cgroup2(void)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(cgroup2_roots); i++) {
		struct statfs st;

		if (statfs(cgroup2_roots[i], &st) == 0 && st.f_type == CGROUP2_SUPER_MAGIC)
			return cgroup2_roots[i];
	}
	return NULL;
}

int sbx_try_cgroup2(struct sbx_probe_context *context, struct sbx_err *err)
{
	static const char *const wanted[] = {"memory", "pids", "cpu"};
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	const char *root = find_cgroup2();
	char path[64];
	int r;

	if (!root)
		return sbx_err_set(err, ENOENT, "cgroup v2 is not mounted");
	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
	r = sbx_fs_read_at(AT_FDCWD, path, 4096, &text);
	if (r < 0)
		return sbx_err_set(err, -r, "read %s: %m", path);
	for (size_t i = 0; i < SBX_N_ELEMENTS(wanted); i++)
		if (!text.data || !strstr(text.data, wanted[i]))
			return sbx_err_set(err, ENOENT, "%s is mounted without the controller %s",
				root, wanted[i]);
	(void)snprintf(context->detail, sizeof(context->detail), "%s", root);
	return 0;
}

/* In a trial group, which is removed again. */
int sbx_try_limits(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct sbx_cgroup_host *host = NULL;
	const char *why = NULL;
	int r = sbx_cgroup_host_open(
		context->scratch_fd, "doctor", &(struct sbx_cgroup_limits){0}, &host, err);

	for (size_t i = 0; r == 0 && !why && i < SBX_CGROUP_RESOURCES; i++) {
		why = sbx_cgroup_host_missing(host, (enum sbx_cgroup_resource)i);
		if (why)
			r = sbx_err_set(err, EOPNOTSUPP, "%s: %s",
				sbx_cgroup_resource_name((enum sbx_cgroup_resource)i), why);
	}
	if (r == 0 && sbx_cgroup_host_describe(host, &text) == 0)
		(void)snprintf(context->detail, sizeof(context->detail), "%s", text.data);
	sbx_cgroup_host_free(host);
	return r;
}

/* The root has no such file: any cgroup below it tells. */
int sbx_try_cgroup_kill(struct sbx_probe_context *context, struct sbx_err *err)
{
	const char *root = find_cgroup2();
	DIR *dir = root ? opendir(root) : NULL;
	struct dirent *entry;
	bool found = false;

	(void)context;
	if (!dir)
		return sbx_err_set(err, ENOENT, "cgroup v2 is not mounted");
	while (!found && (entry = readdir(dir))) {
		char name[NAME_MAX + sizeof("/cgroup.kill")];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/cgroup.kill", entry->d_name);
		found = faccessat(dirfd(dir), name, F_OK, 0) == 0;
	}
	(void)closedir(dir); /* only read from */
	return found ? 0 : sbx_err_set(err, ENOENT, "no cgroup below %s has it", root);
}
