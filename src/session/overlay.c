/* SPDX-License-Identifier: MIT */
/*
 * How the overlay must be mounted so that it works for a mapped root on 6.1 and later:
 *
 *   1. upper and work come from one idmapped clone of their parent, attached: overlayfs of 6.1 and
 *      6.12 refuses detached clones ("failed to clone upperpath").
 *   2. fsuid and fsgid are the sandbox's root while it is made, or work/work would belong to an id
 *      that the idmapped mount cannot store (EOVERFLOW) and the overlay would silently become
 *      read-only. setfsuid(2) away from 0 drops the file capabilities: they are raised again.
 *   3. lower layers by "lowerdir+" each; kernels before 6.8 do not know it, and take the classic
 *      string, which must fit a page: relative to /l, 450 layers do.
 *
 * Mounted by real root, so that the marks are trusted.overlay.*: a session cannot write them.
 */
#include "overlay.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "mount.h"
#include "rootfs.h"
#include "sbx/buf.h"
#include "sbx/caps.h"
#include "sbx/fs.h"

/* What every session's overlay has, whichever way it is mounted. */
static const struct sbx_mount_option fixed_options[] = {
	{"redirect_dir", "on"}, /* rename(2) of a lower directory works instead of EXDEV */
	{"metacopy", "off"},    /* stored layers must not depend on each other's data */
	{"index", "off"},       /* no file handles in the upper: it becomes a layer */
	{"volatile", NULL},     /* no sync at umount and fsync: publishing syncs */
};

#define LOWER_SIZE 12 /* a name below /l */
#define PATH_SIZE  32

/* One to be mounted. */
struct overlay {
	char lowers[SBX_SPAWN_LAYERS_MAX][LOWER_SIZE]; /* below /l, the topmost first */
	size_t n_lowers;
	char upper[PATH_SIZE], work[PATH_SIZE];
	char target[SBX_OVERLAY_PATH_SIZE];
};

static void upper_path(uint32_t slot, const char *name, char ret[static PATH_SIZE])
{
	(void)snprintf(ret, PATH_SIZE, "/s/%u%s", slot, name);
}

void sbx_overlay_path(uint32_t slot, char ret[static SBX_OVERLAY_PATH_SIZE])
{
	(void)snprintf(ret, SBX_OVERLAY_PATH_SIZE, "/o/%u", slot);
}

void sbx_overlay_root_path(uint32_t slot, char ret[static SBX_OVERLAY_PATH_SIZE])
{
	(void)snprintf(ret, SBX_OVERLAY_PATH_SIZE, "/r/%u", slot);
}

/* No file of it is ever open outside of the session. */
static int unmount_root(uint32_t slot, struct sbx_err *err)
{
	char target[SBX_OVERLAY_PATH_SIZE];

	sbx_overlay_root_path(slot, target);
	if (umount2(target, UMOUNT_NOFOLLOW) < 0)
		return sbx_err_set(err, errno, "unmount the session's root: %m");
	return 0;
}

static int attach_upper(
	struct sbx_spawn *spawn, uint32_t slot, const char *session_dir, struct sbx_err *err)
{
	SBX_CLOSE int dir = -EBADF, tree = -EBADF;
	char path[PATH_SIZE];
	int r;

	dir = sbx_fs_open_beneath(spawn->sessions_fd, session_dir, O_PATH | O_DIRECTORY, 0, 0);
	if (dir < 0)
		return sbx_err_set(err, -dir, "open session directory %s: %m", session_dir);
	r = sbx_mount_clone(dir, "", 0, &tree, err);
	if (r < 0)
		return r;
	r = sbx_mount_set(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, spawn->user_ns, 0, err);
	if (r < 0)
		return r;
	upper_path(slot, "", path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return sbx_err_set(err, errno, "make %s: %m", path);
	return sbx_mount_attach(tree, AT_FDCWD, path, err);
}

static int mount_modern(const struct overlay *o, struct sbx_err *err)
{
	struct sbx_mount_option options[SBX_SPAWN_LAYERS_MAX + 2 + SBX_N_ELEMENTS(fixed_options)];
	char paths[SBX_SPAWN_LAYERS_MAX][sizeof("/l/") + LOWER_SIZE];
	SBX_CLOSE int tree = -EBADF;
	size_t n = 0;
	int r;

	for (; n < o->n_lowers; n++) {
		(void)snprintf(paths[n], sizeof(paths[0]), "/l/%s", o->lowers[n]);
		options[n] = (struct sbx_mount_option){"lowerdir+", paths[n]};
	}
	options[n++] = (struct sbx_mount_option){"upperdir", o->upper};
	options[n++] = (struct sbx_mount_option){"workdir", o->work};
	memcpy(options + n, fixed_options, sizeof(fixed_options));
	n += SBX_N_ELEMENTS(fixed_options);
	r = sbx_mount_new("overlay", options, n, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree, err);
	if (r < 0)
		return r;
	return sbx_mount_attach(tree, AT_FDCWD, o->target, err);
}

static int classic_string(const struct overlay *o, struct sbx_buf *ret)
{
	int r = sbx_buf_append_string(ret, "lowerdir=");

	for (size_t i = 0; i < o->n_lowers && r >= 0; i++)
		r = sbx_buf_printf(ret, i ? ":%s" : "%s", o->lowers[i]);
	if (r >= 0)
		r = sbx_buf_printf(ret, ",upperdir=%s,workdir=%s", o->upper, o->work);
	for (size_t i = 0; i < SBX_N_ELEMENTS(fixed_options) && r >= 0; i++) {
		const struct sbx_mount_option *option = &fixed_options[i];

		r = option->value ? sbx_buf_printf(ret, ",%s=%s", option->key, option->value)
				  : sbx_buf_printf(ret, ",%s", option->key);
	}
	return r;
}

static int mount_classic(const struct overlay *o, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	int r = classic_string(o, &text);

	if (r < 0)
		return sbx_err_set(err, -r, "mount overlay: %m");
	if (chdir("/l") < 0)
		return sbx_err_set(err, errno, "go to the layers: %m");
	r = mount("overlay", o->target, "overlay", MS_NOSUID | MS_NODEV, text.data) < 0 ? -errno
											: 0;
	if (chdir("/") < 0)
		return sbx_err_set(err, errno, "come back from the layers: %m");
	if (r < 0)
		return sbx_err_set(err, -r, "mount overlay: %m");
	return 0;
}

/* Kernels before 6.5 refuse lowerdir+ at create, 6.5 to 6.7 when it is set; both with EINVAL,
 * which a real mistake gives as well: then the classic way fails too and its error is told. */
static int mount_either(struct sbx_spawn *spawn, const struct overlay *o, struct sbx_err *err)
{
	int r = -EINVAL;

	if (!spawn->overlay_classic)
		r = mount_modern(o, err);
	if (r != -EINVAL)
		return r;
	r = mount_classic(o, err);
	if (r == 0)
		spawn->overlay_classic = true;
	return r;
}

static int mount_as_sandbox_root(
	struct sbx_spawn *spawn, const struct overlay *o, struct sbx_err *err)
{
	uid_t id = spawn->config->id_base;
	int r;

	(void)setfsgid(id);
	(void)setfsuid(id);
	r = sbx_caps_raise(err);
	if (r == 0)
		r = mount_either(spawn, o, err);
	(void)setfsuid(0);
	(void)setfsgid(0);
	/* the only way to ask: a value that is no id changes nothing and returns the present one */
	if (setfsuid((uid_t)-1) != 0 || setfsgid((gid_t)-1) != 0)
		return sbx_err_set(err, EPERM, "could not become root again");
	return r;
}

static int check_writable(const char *target, struct sbx_err *err)
{
	struct statvfs st;

	if (statvfs(target, &st) < 0)
		return sbx_err_set(err, errno, "statvfs of the overlay: %m");
	if (st.f_flag & ST_RDONLY)
		return sbx_err_set(err, EROFS,
			"the kernel mounted the overlay read-only (it could not use the work "
			"directory; the kernel log says why)");
	return 0;
}

static int mount_one(struct sbx_spawn *spawn, const struct overlay *o, struct sbx_err *err)
{
	int r;

	if (mkdir(o->target, 0700) < 0 && errno != EEXIST)
		return sbx_err_set(err, errno, "make %s: %m", o->target);
	r = mount_as_sandbox_root(spawn, o, err);
	if (r < 0)
		return r;
	r = check_writable(o->target, err);
	if (r < 0)
		(void)umount2(o->target, MNT_DETACH | UMOUNT_NOFOLLOW); /* told already */
	return r;
}

static int mount_workspace(struct sbx_spawn *spawn, uint32_t slot, const uint32_t *layers,
	size_t n_layers, struct sbx_err *err)
{
	struct overlay o = {.n_lowers = n_layers};

	for (size_t i = 0; i < n_layers; i++) /* the first one given is the topmost */
		(void)snprintf(o.lowers[i], LOWER_SIZE, "%u", layers[n_layers - 1 - i]);
	upper_path(slot, "/upper", o.upper);
	upper_path(slot, "/work", o.work);
	sbx_overlay_path(slot, o.target);
	return mount_one(spawn, &o, err);
}

static int mount_root(struct sbx_spawn *spawn, uint32_t slot, struct sbx_err *err)
{
	struct overlay o = {
		.n_lowers = 2,
		.lowers = {SBX_ROOTFS_PLACES, SBX_ROOTFS_LAYER},
	};
	int r;

	if (!sbx_spawn_has_rootfs(spawn))
		return 0;
	upper_path(slot, "/root/upper", o.upper);
	upper_path(slot, "/root/work", o.work);
	sbx_overlay_root_path(slot, o.target);
	r = mount_one(spawn, &o, err);
	return r < 0 ? sbx_err_wrap(err, r, "root file system") : 0;
}

int sbx_overlay_mount(struct sbx_spawn *spawn, uint32_t slot, const char *session_dir,
	const uint32_t *layers, size_t n_layers, struct sbx_err *err)
{
	char parent[PATH_SIZE];
	int r;

	upper_path(slot, "", parent);
	r = attach_upper(spawn, slot, session_dir, err);
	if (r < 0)
		return r;
	r = mount_root(spawn, slot, err);
	if (r == 0) {
		r = mount_workspace(spawn, slot, layers, n_layers, err);
		if (r < 0 && sbx_spawn_has_rootfs(spawn))
			(void)unmount_root(slot, NULL); /* the first failure is told */
	}
	/* the overlays have private clones of it from here on */
	if (umount2(parent, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && r == 0)
		r = sbx_err_set(err, errno, "detach the upper's parent: %m");
	return r;
}

int sbx_overlay_unmount(const struct sbx_spawn *spawn, uint32_t slot, struct sbx_err *err)
{
	char target[SBX_OVERLAY_PATH_SIZE];

	sbx_overlay_path(slot, target);
	if (umount2(target, UMOUNT_NOFOLLOW) < 0)
		return sbx_err_set(err, errno,
			errno == EBUSY ? "a file of the session is still open outside"
				       : "unmount the overlay: %m");
	return sbx_spawn_has_rootfs(spawn) ? unmount_root(slot, err) : 0;
}
