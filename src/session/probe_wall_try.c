/* SPDX-License-Identifier: MIT */
/* The tries of what a session's own processes go through: what they lose and what they get. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "filter.h"
#include "mount.h"
#include "probe_try.h"
#include "sbx/caps.h"
#include "sbx/fs.h"
#include "sbx/sys.h"
#include "userns.h"

#define LSM_LIST     "/sys/kernel/security/lsm"
#define LSM_MAX      512
#define LSM_USERNS   "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
#define MESSAGE_SIZE 200

/* Runs fn in a child made with these flags; what it says is wrong comes back, or nothing. */
static int in_child(uint64_t flags, int (*fn)(const void *data, struct sbx_err *err),
	const void *data, struct sbx_err *err)
{
	struct clone_args args = {.flags = flags, .exit_signal = SIGCHLD};
	SBX_CLOSE int read_fd = -EBADF, write_fd = -EBADF;
	char message[MESSAGE_SIZE] = "";
	int fds[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return sbx_err_set(err, errno, "make a pipe: %m");
	read_fd = fds[0];
	write_fd = fds[1];
	pid = sbx_sys_clone3(&args);
	if (pid < 0)
		return sbx_err_set(err, -pid, "clone3: %m");
	if (pid == 0) {
		struct sbx_err why = SBX_ERR_INIT;
		int r = fn(data, &why);

		if (r < 0)
			(void)!write(write_fd, why.message, strlen(why.message));
		_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	sbx_fd_close(&write_fd);
	n = read(read_fd, message, sizeof(message) - 1);
	if (waitpid(pid, fds, 0) != pid)
		return sbx_err_set(err, errno, "wait for a child: %m");
	if (WIFEXITED(fds[0]) && WEXITSTATUS(fds[0]) == EXIT_SUCCESS)
		return 0;
	return sbx_err_set(err, EPERM, "%s", n > 0 ? message : "the child of the probe died");
}

static int mount_proc(SBX_UNUSED const void *data, struct sbx_err *err)
{
	SBX_CLOSE int tree = -EBADF;
	int r = sbx_mount_new("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree, err);

	if (r < 0)
		return r;
	/* pid 1 of this namespace is us: another one is not shown */
	if (faccessat(tree, "1/stat", F_OK, 0) < 0 || faccessat(tree, "2", F_OK, 0) == 0)
		return sbx_err_set(err, EPROTO, "it shows processes of other namespaces");
	return 0;
}

int sbx_try_proc(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	return in_child(CLONE_NEWPID, mount_proc, NULL, err);
}

static int drop_all(SBX_UNUSED const void *data, struct sbx_err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sbx_err_set(err, errno, "no_new_privs: %m");
	return sbx_caps_keep_only(NULL, 0, err);
}

int sbx_try_drop_capabilities(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	return in_child(0, drop_all, NULL, err);
}

/* A session's own view of what it must not do, with root's rights still there. */
static int ask_filter(const void *data, struct sbx_err *err)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sbx_err_set(err, errno, "no_new_privs: %m");
	r = sbx_filter_enter(data, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWUSER) == 0 || errno != EPERM)
		return sbx_err_set(err, EPROTO, "it lets unshare(CLONE_NEWUSER) through");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 || errno != EPERM)
		return sbx_err_set(err, EPROTO, "it lets mount(2) through");
	return 0;
}

int sbx_try_policy(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
	int r = sbx_filter_load(context->policy, &filter, err);

	if (r < 0)
		return r;
	(void)snprintf(context->detail, sizeof(context->detail), "%u instructions", filter.n);
	return in_child(0, ask_filter, &filter, err);
}

/* As overlay.c mounts it: the scratch directories are the working directory's. */
static int mount_overlay(struct sbx_err *err)
{
	static const char options[] =
		"lowerdir=merged/lower,upperdir=merged/mapped/upper,workdir=merged/mapped/work";
	struct statvfs st;
	int r = 0;

	if (mount("overlay", "lower", "overlay", MS_NODEV, options) < 0)
		return sbx_err_set(err, errno, "mount an overlay of idmapped directories: %m");
	if (statvfs("lower", &st) < 0 || (st.f_flag & ST_RDONLY))
		r = sbx_err_set(err, EROFS,
			"an overlay of idmapped directories is read-only (the kernel log says "
			"why)");
	(void)umount2("lower", MNT_DETACH); /* it goes with the probe's mount namespace, too */
	return r;
}

static int become(uid_t id)
{
	(void)setfsgid(id);
	(void)setfsuid(id);
	return sbx_caps_raise(NULL);
}

int sbx_try_idmapped_overlay(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int tree = -EBADF;
	int r;

	if (context->user_ns < 0)
		return sbx_err_set(err, EPERM, "needs a user namespace");
	r = sbx_mount_clone(AT_FDCWD, ".", 0, &tree, err);
	if (r >= 0)
		r = sbx_mount_set(tree, MOUNT_ATTR_NODEV, context->user_ns, 0, err);
	if (r >= 0)
		r = sbx_mount_attach(tree, AT_FDCWD, "merged", err);
	if (r < 0)
		return r;
	if (become(SBX_TRY_ID_BASE) < 0)
		r = sbx_err_set(err, EPERM, "raise capabilities again");
	if (r >= 0)
		r = mount_overlay(err);
	if (become(0) < 0 && r >= 0)
		r = sbx_err_set(err, EPERM, "raise capabilities again");
	(void)umount2("merged", MNT_DETACH); /* it goes with the probe's mount namespace, too */
	return r;
}

/* sandboxd is root: what modules keep from ordinary users is no concern here, and what they keep
 * from root shows in the rows of what they keep. */
int sbx_try_lsm(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf list = SBX_BUF_INIT, restricts = SBX_BUF_INIT;
	int r = sbx_fs_read_at(AT_FDCWD, LSM_LIST, LSM_MAX, &list);

	if (r < 0)
		return sbx_err_set(err, -r, "read " LSM_LIST ": %m");
	if (list.data)
		list.data[strcspn(list.data, "\n")] = '\0';
	(void)snprintf(
		context->detail, sizeof(context->detail), "%.100s", list.data ? list.data : "");
	if (sbx_fs_read_at(AT_FDCWD, LSM_USERNS, 16, &restricts) == 0 && restricts.data &&
		restricts.data[0] == '1')
		(void)strcat(context->detail, /* 100 bytes are left */
			"; user namespaces are kept from ordinary users, not from sandboxd");
	return 0;
}
