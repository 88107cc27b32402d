/* SPDX-License-Identifier: MIT */
/*
 * The namespaces of a slot. The spawner enters them while it makes them and comes back. If it
 * cannot come back it is of no use to anybody and exits: sandboxd sees that.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "mount.h"
#include "netpool.h"
#include "overlay.h"
#include "rootfs.h"
#include "sbx/init.h"
#include "slot.h"

#define TTY_GROUP 5 /* "tty" in every distribution's /etc/group */

static const struct {
	const char *path;
	mode_t mode;
	bool host_only; /* a root file system of its own is private as it is, and may have things
			   there: toolchains live in /root of many images */
} private_tmpfs[] = {
	{"/tmp", 01777, false},
	{"/var/tmp", 01777, true},
	{"/run", 0755, false},
	{"/dev/shm", 01777, false},
	{"/root", 0700, true},
};

/* Clones of the slot's, to be attached in the session. */
struct overlays {
	int workspace;
	int root; /* -EBADF: its root is the template's */
};

static void overlays_done(struct overlays *overlays)
{
	sbx_fd_close(&overlays->workspace);
	sbx_fd_close(&overlays->root);
}

static int clone_overlays(const struct sbx_spawn *spawn, const struct sbx_slot *slot,
	struct overlays *ret, struct sbx_err *err)
{
	char path[SBX_OVERLAY_PATH_SIZE];
	int r;

	sbx_overlay_path(slot->number, path);
	r = sbx_mount_clone(AT_FDCWD, path, 0, &ret->workspace, err);
	if (r < 0 || !sbx_spawn_has_rootfs(spawn))
		return r;
	sbx_overlay_root_path(slot->number, path);
	return sbx_mount_clone(AT_FDCWD, path, 0, &ret->root, err);
}

void sbx_ns_set_done(struct sbx_ns_set *set)
{
	sbx_fd_close(&set->mnt);
	sbx_fd_close(&set->ipc);
	sbx_fd_close(&set->uts);
	sbx_fd_close(&set->net);
}

/* The root of a session with a root file system of its own: the overlay of it, with the template's
 * /dev and its empty /sys. What was the root until then goes. */
static int enter_own_root(int overlay, struct sbx_err *err)
{
	SBX_CLOSE int dev = -EBADF, sys = -EBADF;
	int r;

	r = sbx_mount_clone(AT_FDCWD, "/dev", 0, &dev, err);
	if (r >= 0)
		r = sbx_mount_clone(AT_FDCWD, "/sys", 0, &sys, err);
	if (r >= 0)
		r = sbx_mount_attach(overlay, AT_FDCWD, "/" SBX_ROOTFS_STAGE, err);
	if (r >= 0)
		r = sbx_mount_attach_beneath(dev, overlay, "dev", err);
	if (r >= 0)
		r = sbx_mount_attach_beneath(sys, overlay, "sys", err);
	return r < 0 ? r : sbx_mount_enter_root(overlay, err);
}

static int attach_tmpfs(const struct sbx_spawn *spawn, int root, struct sbx_err *err)
{
	const struct sbx_spawner_config *config = spawn->config;

	for (size_t i = 0; i < SBX_N_ELEMENTS(private_tmpfs); i++) {
		SBX_CLOSE int tree = -EBADF;
		int r;

		if (private_tmpfs[i].host_only && sbx_spawn_has_rootfs(spawn))
			continue;
		r = sbx_mount_tmpfs(config->tmp_bytes, private_tmpfs[i].mode, config->id_base,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree, err);
		if (r >= 0)
			r = sbx_mount_attach_beneath(tree, root, private_tmpfs[i].path, err);
		if (r < 0)
			return sbx_err_wrap(err, r, "%s", private_tmpfs[i].path);
	}
	return 0;
}

static int attach_devpts(const struct sbx_spawn *spawn, int root, struct sbx_err *err)
{
	SBX_CLOSE int tree = -EBADF;
	char gid[16], max[16];
	const struct sbx_mount_option options[] = {
		{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", gid},
		{"max", max}, /* all sessions of the host share kernel.pty.max */
	};
	int r;

	(void)snprintf(gid, sizeof(gid), "%u", spawn->config->id_base + TTY_GROUP);
	(void)snprintf(max, sizeof(max), "%d", 2 * SBX_INIT_COMMANDS_MAX);
	r = sbx_mount_new("devpts", options, SBX_N_ELEMENTS(options),
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &tree, err);
	if (r < 0)
		return r;
	return sbx_mount_attach_beneath(tree, root, "/dev/pts", err);
}

/* root_at is in the template, unless one of the private tmpfs covers it. */
static int attach_workspace(
	const struct sbx_spawn *spawn, int root, int overlay, struct sbx_err *err)
{
	const char *root_at = spawn->config->root_at;
	int r;

	if (faccessat(AT_FDCWD, root_at, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		r = sbx_mount_make_dirs(root, root_at, err);
		if (r < 0)
			return r;
	}
	return sbx_mount_attach_beneath(overlay, root, root_at, err);
}

static int fill_mounts(
	const struct sbx_spawn *spawn, const struct overlays *overlays, struct sbx_err *err)
{
	SBX_CLOSE int root = -EBADF;
	int r = 0;

	if (overlays->root >= 0)
		r = enter_own_root(overlays->root, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "the session's root");
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return sbx_err_set(err, errno, "open the session's root: %m");
	r = attach_tmpfs(spawn, root, err);
	if (r >= 0)
		r = attach_devpts(spawn, root, err);
	if (r >= 0)
		r = attach_workspace(spawn, root, overlays->workspace, err);
	return r;
}

/* In the session's new namespaces. */
static int fill_namespaces(
	struct sbx_spawn *spawn, const struct overlays *overlays, struct sbx_err *err)
{
	const struct sbx_spawner_config *config = spawn->config;
	int r = fill_mounts(spawn, overlays, err);

	if (r < 0)
		return r;
	if (sethostname(config->sandbox_id, strlen(config->sandbox_id)) < 0)
		return sbx_err_set(err, errno, "set the host name: %m");
	return 0;
}

static int open_namespaces(
	const struct sbx_spawn *spawn, struct sbx_ns_set *ret, struct sbx_err *err)
{
	int r;

	r = sbx_spawn_open_ns(spawn, "mnt", &ret->mnt, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "ipc", &ret->ipc, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "uts", &ret->uts, err);
	return r;
}

static void come_home(const struct sbx_spawn *spawn)
{
	if (setns(spawn->home.mnt, CLONE_NEWNS) < 0 || setns(spawn->home.ipc, CLONE_NEWIPC) < 0 ||
		setns(spawn->home.uts, CLONE_NEWUTS) < 0)
		_exit(EXIT_FAILURE);
}

int sbx_slot_make_namespaces(struct sbx_spawn *spawn, struct sbx_slot *slot, struct sbx_err *err)
{
	SBX_CLEANUP(overlays_done) struct overlays overlays = {-EBADF, -EBADF};
	int r;

	r = clone_overlays(spawn, slot, &overlays, err);
	if (r >= 0 && spawn->config->network != SBX_NETWORK_HOST)
		r = sbx_netpool_take(spawn, &slot->ns.net, err);
	if (r < 0)
		return r;
	if (setns(spawn->template_ns, CLONE_NEWNS) < 0)
		return sbx_err_set(err, errno, "enter the template namespace: %m");
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		r = sbx_err_set(err, errno, "make the session's namespaces: %m");
	if (r >= 0)
		r = fill_namespaces(spawn, &overlays, err);
	if (r >= 0)
		r = open_namespaces(spawn, &slot->ns, err);
	come_home(spawn);
	return r;
}
