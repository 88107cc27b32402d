/* SPDX-License-Identifier: MIT */
/*
 * The session's commands run while we write among their files and may swap any of them. So each
 * directory is entered by one component at a time from the descriptor of the one above, nothing
 * is followed, and attributes go from descriptor to descriptor: neither the old file's name nor
 * the temporary one's is trusted to mean the same thing twice.
 */
#include "session_put.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "identity.h"
#include "meta.h"
#include "sbx/fs.h"
#include "sbx/id.h"
#include "target.h"

#define NEW_FILE_MODE 0644
#define NEW_DIR_MODE  0755

#define PROC_NAME_SIZE (sizeof("/proc/self/fd/") + 3 * sizeof(int))

/* parent_size: how much of path leads to name, which could not be entered in dir_fd. */
static int refuse_parent(int dir_fd, const char *name, const char *path, size_t parent_size, int r,
	struct sbx_err *err)
{
	struct stat st;
	const char *kind = "something else"; /* it was swapped before we looked; only a word */

	if (r != -ENOTDIR && r != -ELOOP)
		return sbx_err_set(err, -r, "make directory '%.*s': %m", (int)parent_size, path);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		kind = sbx_fs_kind_name(st.st_mode);
	return sbx_err_kind(err, SBX_KIND_INVALID, -r,
		"'%.*s' in the path '%s' is %s, not a directory; file tools follow no link",
		(int)parent_size, path, path, kind);
}

/* The directory name in dir_fd, made when missing; a descriptor or -errno. */
static int enter(int dir_fd, const char *name)
{
	int fd = sbx_fs_open_beneath(dir_fd, name, O_PATH | O_DIRECTORY, 0, 0);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dir_fd, name, NEW_DIR_MODE) < 0 && errno != EEXIST)
		return -errno;
	return sbx_fs_open_beneath(dir_fd, name, O_PATH | O_DIRECTORY, 0, 0);
}

/* Opens the directory that path's last component is in; *ret_name is that component. */
static int open_parent(
	int root_fd, const char *path, int *ret_fd, const char **ret_name, struct sbx_err *err)
{
	SBX_CLOSE int fd = sbx_fs_open_beneath(root_fd, "", O_PATH | O_DIRECTORY, 0, 0);
	const char *rest = path;

	if (fd < 0)
		return sbx_err_set(err, -fd, "open the session's workspace: %m");
	for (const char *slash; (slash = strchr(rest, '/')); rest = slash + 1) {
		char name[NAME_MAX + 1];
		int next;

		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - rest), rest);
		next = enter(fd, name);
		if (next < 0)
			return refuse_parent(fd, name, path, (size_t)(slash - path), next, err);
		sbx_fd_close(&fd);
		fd = next;
	}
	*ret_fd = sbx_fd_take(&fd);
	*ret_name = rest;
	return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       sbx_mtime_equal(a, b) && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* What is at name: -EBADF in *ret_fd when nothing is, else its O_PATH descriptor. */
static int look(int dir_fd, const char *name, const struct sbx_put *put, int *ret_fd,
	struct stat *ret_st, struct sbx_err *err)
{
	SBX_CLOSE int fd = sbx_fs_open_beneath(dir_fd, name, O_PATH, 0, 0);

	if (fd < 0 && fd != -ENOENT)
		return sbx_target_explain(put->path, fd, err);
	if (fd >= 0 && fstat(fd, ret_st) < 0)
		return sbx_err_set(err, errno, "stat '%s': %m", put->path);
	if (put->expected && (fd < 0 || !same_file(ret_st, put->expected)))
		return sbx_err_kind(err, SBX_KIND_CONFLICT, ESTALE,
			"'%s' was changed by a command while it was worked on; read it again and "
			"repeat the call",
			put->path);
	if (fd >= 0 && !S_ISREG(ret_st->st_mode))
		return sbx_target_refuse(put->path, fd, ret_st->st_mode, err);
	*ret_fd = fd >= 0 ? sbx_fd_take(&fd) : -EBADF;
	return 0;
}

static int copy_xattr(const char *from, const char *name, int to_fd)
{
	SBX_FREE char *value = NULL;
	ssize_t size = getxattr(from, name, NULL, 0);

	if (size < 0)
		return -errno;
	value = malloc((size_t)size + 1);
	if (!value)
		return -ENOMEM;
	size = getxattr(from, name, value, (size_t)size);
	if (size < 0 || fsetxattr(to_fd, name, value, (size_t)size, 0) < 0)
		return -errno;
	return 0;
}

static int copy_xattrs(int from_fd, int to_fd)
{
	char from[PROC_NAME_SIZE];
	SBX_FREE char *names = malloc(XATTR_LIST_MAX);
	ssize_t size;

	if (!names)
		return -ENOMEM;
	/* an O_PATH descriptor has no *xattr() calls of its own; its link in /proc is the file */
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d", from_fd);
	size = listxattr(from, names, XATTR_LIST_MAX);
	if (size < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *name = names; name < names + size; name += strlen(name) + 1) {
		int r = sbx_xattr_is_private(name) ? 0 : copy_xattr(from, name, to_fd);

		if (r < 0 && r != -ENODATA) /* removed meanwhile */
			return r;
	}
	return 0;
}

/* The order matters: a change of owner clears set-id bits and file capabilities. */
static int copy_attributes(int from_fd, const struct stat *st, int to_fd)
{
	if (fchown(to_fd, st->st_uid, st->st_gid) < 0 || fchmod(to_fd, st->st_mode & 07777) < 0)
		return -errno;
	return copy_xattrs(from_fd, to_fd);
}

/* Fills the new file that to_fd holds. old_fd: -EBADF when there was none. */
static int fill(int to_fd, const struct sbx_put *put, int old_fd, const struct stat *old_st)
{
	int r = sbx_fs_write_all(to_fd, put->data, put->size);

	if (r < 0 || old_fd < 0)
		return r;
	return copy_attributes(old_fd, old_st, to_fd);
}

static int replace(int dir_fd, const char *name, const struct sbx_put *put, int old_fd,
	const struct stat *old_st)
{
	char temporary[SBX_ID_SIZE];
	SBX_CLOSE int fd = -EBADF;
	int r;

	r = sbx_id_new(".sbx-tmp", temporary);
	if (r < 0)
		return r;
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		old_fd < 0 ? NEW_FILE_MODE : 0600);
	if (fd < 0)
		return -errno;
	r = fill(fd, put, old_fd, old_st);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temporary, 0); /* the first failure is what counts */
	return r;
}

int sbx_session_put(int root_fd, uid_t id_base, const struct sbx_put *put, bool *ret_created,
	struct sbx_err *err)
{
	SBX_IDENTITY struct sbx_identity identity = {0};
	SBX_CLOSE int dir_fd = -EBADF, old_fd = -EBADF;
	const char *name = NULL;
	struct stat st;
	int r;

	/* the session's file system is idmapped: the host's root has no id there (EOVERFLOW) */
	r = sbx_identity_assume(&identity, id_base, id_base, SBX_IDENTITY_PRIVILEGED, err);
	if (r < 0)
		return r;
	r = open_parent(root_fd, put->path, &dir_fd, &name, err);
	if (r < 0)
		return r;
	r = look(dir_fd, name, put, &old_fd, &st, err);
	if (r < 0)
		return r;
	r = replace(dir_fd, name, put, old_fd, &st);
	if (r < 0)
		return sbx_err_set(err, -r, "write '%s': %m", put->path);
	*ret_created = old_fd < 0;
	return 0;
}
