/* SPDX-License-Identifier: MIT */
#include "rootfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "mount.h"
#include "sbx/fs.h"
#include "sbx/sys.h"
#include "userns.h"

#define PLACES_BYTES (4u << 20)          /* directories, and two files */
#define TRY_ID_BASE  (UINT32_C(1) << 20) /* any range will do: nothing is written with it */
#define SHELL        "bin/sh"            /* what a command is run by, at least */

/* Each is covered by a mount of the session's own. */
static const struct {
	const char *path;
	mode_t mode;
} mount_points[] = {
	{"proc", 0555},
	{"sys", 0555},
	{"dev", 0755},
	{"tmp", 01777},
	{"run", 0755},
};

static int open_directory(const char *path, int *ret_fd, struct sbx_err *err)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	if (path[0] != '/')
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"root file system %s: give its absolute path", path);
	fd = sbx_sys_openat2(AT_FDCWD, path, &how);
	if (fd == -ELOOP)
		return sbx_err_kind(err, SBX_KIND_INVALID, ELOOP,
			"root file system %s: it is, or is reached through, a symbolic link; give "
			"the path that 'realpath' prints",
			path);
	if (fd < 0)
		return sbx_err_kind(
			err, SBX_KIND_INVALID, -fd, "open the root file system %s: %m", path);
	*ret_fd = fd;
	return 0;
}

/* As a command's execve would look for it: links are followed, but never out of DIR. */
static int check_shell(int fd, const char *path, struct sbx_err *err)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	SBX_CLOSE int shell = sbx_sys_openat2(fd, SHELL, &how);
	struct stat st;

	if (shell >= 0 && fstat(shell, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111))
		return 0;
	return sbx_err_kind(err, SBX_KIND_INVALID, ENOEXEC,
		"root file system %s: there is no program /" SHELL " in it; unpack an image there, "
		"or make one with debootstrap",
		path);
}

static int check_apart(
	int fd, const char *path, int state_fd, enum sbx_rootfs_flags flags, struct sbx_err *err)
{
	int r = sbx_fs_holds(fd, state_fd);

	if (r > 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"root file system %s: it holds the state directory, which sessions must "
			"not see; choose another, or set SBX_STATE_DIR to a place outside of it",
			path);
	if (r == 0 && !(flags & SBX_ROOTFS_STATE_ABOVE))
		r = sbx_fs_holds(state_fd, fd);
	if (r > 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"root file system %s: it is inside the state directory; choose a place "
			"outside of it",
			path);
	return r < 0 ? sbx_err_set(err, -r, "look above %s: %m", path) : 0;
}

int sbx_rootfs_open(const char *path, int state_fd, enum sbx_rootfs_flags flags, int *ret_fd,
	struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	int r = open_directory(path, &fd, err);

	if (r >= 0)
		r = check_apart(fd, path, state_fd, flags, err);
	if (r >= 0)
		r = check_shell(fd, path, err);
	if (r < 0)
		return r;
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int sbx_rootfs_try(int rootfs_fd, const char *path, struct sbx_err *err)
{
	SBX_CLOSE int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	SBX_CLOSE int user_ns = -EBADF, tree = -EBADF;
	int r;

	if (proc < 0)
		return sbx_err_set(err, errno, "open /proc: %m");
	r = sbx_userns_new(proc, TRY_ID_BASE, &user_ns, err);
	if (r >= 0)
		r = sbx_mount_clone(rootfs_fd, "", 0, &tree, err);
	if (r >= 0)
		r = sbx_mount_set(tree, MOUNT_ATTR_RDONLY, user_ns, 0, err);
	return r < 0 ? sbx_err_wrap(err, r, "root file system %s", path) : 0;
}

/* A directory that DIR may have, too: then with its mode and owner there. */
static int place_directory(
	int root, int rootfs, const char *path, uid_t id_base, struct sbx_err *err)
{
	SBX_CLOSE int dir = sbx_fs_open_beneath(rootfs, path, O_PATH, 0, 0);
	struct stat st = {.st_mode = S_IFDIR | 0755};

	if (dir < 0 && dir != -ENOENT)
		return sbx_err_set(err, -dir, "open /%s of the root file system: %m", path);
	if (dir >= 0 && fstat(dir, &st) < 0)
		return sbx_err_set(err, errno, "stat /%s: %m", path);
	if (!S_ISDIR(st.st_mode))
		return sbx_err_kind(err, SBX_KIND_INVALID, ENOTDIR,
			"/%s of the root file system is %s, but must be a directory or absent",
			path, sbx_fs_kind_name(st.st_mode));
	/* ids beyond the session's range belong to nobody there; its root is the next best */
	if (st.st_uid >= SBX_USERNS_IDS || st.st_gid >= SBX_USERNS_IDS)
		st.st_uid = st.st_gid = 0;
	if ((mkdirat(root, path, 0755) < 0 && errno != EEXIST) ||
		fchownat(root, path, id_base + st.st_uid, id_base + st.st_gid,
			AT_SYMLINK_NOFOLLOW) < 0 ||
		fchmodat(root, path, st.st_mode & 07777, 0) < 0)
		return sbx_err_set(err, errno, "make directory /%s: %m", path);
	return 0;
}

static bool is_mount_point(const char *path)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(mount_points); i++)
		if (!strcmp(mount_points[i].path, path))
			return true;
	return false;
}

/* Whatever DIR has at the last component is covered by the workspace, a link as well. Below a
 * mount of the session's own the directories are made when that is there (slot_ns.c). */
static int place_workspace(
	const struct sbx_spawner_config *config, int root, int rootfs, struct sbx_err *err)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s", config->root_at + 1); /* sandbox.json's: it fits */
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = '\0';
		if (is_mount_point(path))
			return 0;
		r = place_directory(root, rootfs, path, config->id_base, err);
		*slash = '/';
		if (r < 0)
			return r;
	}
	return sbx_mount_make_dirs(root, config->root_at, err);
}

static int place_file(
	int root, const char *path, const struct sbx_buf *text, uid_t id, struct sbx_err *err)
{
	SBX_CLOSE int fd =
		openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	int r;

	if (fd < 0)
		return sbx_err_set(err, errno, "make /%s: %m", path);
	r = sbx_fs_write_all(fd, text->data, text->size);
	if (r >= 0 && fchown(fd, id, id) < 0)
		r = -errno;
	return r < 0 ? sbx_err_set(err, -r, "write /%s: %m", path) : 0;
}

int sbx_rootfs_places(const struct sbx_spawner_config *config, int rootfs,
	const struct sbx_buf *hosts, const struct sbx_buf *resolver, int *ret_tree,
	struct sbx_err *err)
{
	uid_t id = config->id_base;
	SBX_CLOSE int root = -EBADF;
	int r = sbx_mount_tmpfs(
		PLACES_BYTES, 0755, id, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &root, err);

	for (size_t i = 0; i < SBX_N_ELEMENTS(mount_points) && r >= 0; i++)
		if (mkdirat(root, mount_points[i].path, mount_points[i].mode) < 0 ||
			fchownat(root, mount_points[i].path, id, id, AT_SYMLINK_NOFOLLOW) < 0)
			r = sbx_err_set(err, errno, "make /%s: %m", mount_points[i].path);
	if (r >= 0)
		r = place_directory(root, rootfs, "etc", id, err);
	if (r >= 0)
		r = place_file(root, "etc/hosts", hosts, id, err);
	if (r >= 0 && resolver->size)
		r = place_file(root, "etc/resolv.conf", resolver, id, err);
	if (r >= 0)
		r = place_workspace(config, root, rootfs, err);
	if (r >= 0)
		r = sbx_mount_set(root, MOUNT_ATTR_RDONLY, -EBADF, 0, err);
	if (r < 0)
		return r;
	*ret_tree = sbx_fd_take(&root);
	return 0;
}
