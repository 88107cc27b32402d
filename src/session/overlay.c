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

static void upper_path(uint32_t slot, const char *name, char ret[static 32])
{
	(void)snprintf(ret, 32, "/s/%u%s", slot, name);
}

void sbx_overlay_path(uint32_t slot, char ret[static SBX_OVERLAY_PATH_SIZE])
{
	(void)snprintf(ret, SBX_OVERLAY_PATH_SIZE, "/o/%u", slot);
}

static int attach_upper(
	struct sbx_spawn *spawn, uint32_t slot, const char *session_dir, struct sbx_err *err)
{
	SBX_CLOSE int dir = -EBADF, tree = -EBADF;
	char path[32];
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

static int mount_modern(uint32_t slot, const uint32_t *layers, size_t n_layers, const char *target,
	struct sbx_err *err)
{
	struct sbx_mount_option options[SBX_SPAWN_LAYERS_MAX + 2 + SBX_N_ELEMENTS(fixed_options)];
	char names[SBX_SPAWN_LAYERS_MAX][12];
	char upper[32], work[32];
	SBX_CLOSE int tree = -EBADF;
	size_t n = 0;
	int r;

	for (size_t i = n_layers; i > 0; i--) { /* the first one given is the topmost */
		(void)snprintf(names[i - 1], sizeof(names[0]), "/l/%u", layers[i - 1]);
		options[n++] = (struct sbx_mount_option){"lowerdir+", names[i - 1]};
	}
	upper_path(slot, "/upper", upper);
	upper_path(slot, "/work", work);
	options[n++] = (struct sbx_mount_option){"upperdir", upper};
	options[n++] = (struct sbx_mount_option){"workdir", work};
	memcpy(options + n, fixed_options, sizeof(fixed_options));
	n += SBX_N_ELEMENTS(fixed_options);
	r = sbx_mount_new("overlay", options, n, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree, err);
	if (r < 0)
		return r;
	return sbx_mount_attach(tree, AT_FDCWD, target, err);
}

static int classic_string(
	uint32_t slot, const uint32_t *layers, size_t n_layers, struct sbx_buf *ret)
{
	int r = sbx_buf_append_string(ret, "lowerdir=");

	for (size_t i = n_layers; i > 0 && r >= 0; i--)
		r = sbx_buf_printf(ret, i < n_layers ? ":%u" : "%u", layers[i - 1]);
	if (r >= 0)
		r = sbx_buf_printf(ret, ",upperdir=/s/%u/upper,workdir=/s/%u/work", slot, slot);
	for (size_t i = 0; i < SBX_N_ELEMENTS(fixed_options) && r >= 0; i++) {
		const struct sbx_mount_option *o = &fixed_options[i];

		r = o->value ? sbx_buf_printf(ret, ",%s=%s", o->key, o->value)
			     : sbx_buf_printf(ret, ",%s", o->key);
	}
	return r;
}

static int mount_classic(uint32_t slot, const uint32_t *layers, size_t n_layers, const char *target,
	struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	int r = classic_string(slot, layers, n_layers, &text);

	if (r < 0)
		return sbx_err_set(err, -r, "mount overlay: %m");
	if (chdir("/l") < 0)
		return sbx_err_set(err, errno, "go to the layers: %m");
	r = mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, text.data) < 0 ? -errno : 0;
	if (chdir("/") < 0)
		return sbx_err_set(err, errno, "come back from the layers: %m");
	if (r < 0)
		return sbx_err_set(err, -r, "mount overlay: %m");
	return 0;
}

/* Kernels before 6.5 refuse lowerdir+ at create, 6.5 to 6.7 when it is set; both with EINVAL,
 * which a real mistake gives as well: then the classic way fails too and its error is told. */
static int mount_either(struct sbx_spawn *spawn, uint32_t slot, const uint32_t *layers,
	size_t n_layers, const char *target, struct sbx_err *err)
{
	int r = -EINVAL;

	if (!spawn->overlay_classic)
		r = mount_modern(slot, layers, n_layers, target, err);
	if (r != -EINVAL)
		return r;
	r = mount_classic(slot, layers, n_layers, target, err);
	if (r == 0)
		spawn->overlay_classic = true;
	return r;
}

static int mount_as_sandbox_root(struct sbx_spawn *spawn, uint32_t slot, const uint32_t *layers,
	size_t n_layers, const char *target, struct sbx_err *err)
{
	uid_t id = spawn->config->id_base;
	int r;

	(void)setfsgid(id);
	(void)setfsuid(id);
	r = sbx_caps_raise(err);
	if (r == 0)
		r = mount_either(spawn, slot, layers, n_layers, target, err);
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

int sbx_overlay_mount(struct sbx_spawn *spawn, uint32_t slot, const char *session_dir,
	const uint32_t *layers, size_t n_layers, struct sbx_err *err)
{
	char target[SBX_OVERLAY_PATH_SIZE], parent[32];
	int r;

	sbx_overlay_path(slot, target);
	upper_path(slot, "", parent);
	if (mkdir(target, 0700) < 0 && errno != EEXIST)
		return sbx_err_set(err, errno, "make %s: %m", target);
	r = attach_upper(spawn, slot, session_dir, err);
	if (r < 0)
		return r;
	r = mount_as_sandbox_root(spawn, slot, layers, n_layers, target, err);
	if (r == 0) {
		r = check_writable(target, err);
		if (r < 0)
			(void)umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW); /* told already */
	}
	/* the overlay has its own private clone of it from here on */
	if (umount2(parent, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && r == 0)
		r = sbx_err_set(err, errno, "detach the upper's parent: %m");
	return r;
}

int sbx_overlay_unmount(uint32_t slot, struct sbx_err *err)
{
	char target[SBX_OVERLAY_PATH_SIZE];

	sbx_overlay_path(slot, target);
	if (umount2(target, UMOUNT_NOFOLLOW) < 0)
		return sbx_err_set(err, errno,
			errno == EBUSY ? "a file of the session is still open outside"
				       : "unmount the overlay: %m");
	return 0;
}
