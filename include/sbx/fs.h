/* SPDX-License-Identifier: MIT */
/*
 * Files by descriptor. Everything that a sandboxed command could have made is opened here, beneath
 * a directory that we hold, without following a symbolic link, and then used by descriptor only
 * (openat2(2): RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS).
 */
#ifndef SBX_FS_H
#define SBX_FS_H

#include <sys/stat.h>
#include <sys/types.h>

#include "sbx/buf.h"
#include "sbx/err.h"

#define SBX_PATH_MAX 4095 /* bytes of a path relative to the workspace root */

/*
 * Opens path beneath root_fd; no component may be a symbolic link, and a mount point below root_fd
 * is not crossed unless SBX_FS_CROSS is given. flags are open(2)'s; O_CLOEXEC, O_NOFOLLOW and
 * O_NONBLOCK|O_NOCTTY (for non-O_PATH opens) are added, so that a FIFO or device never blocks.
 * Returns the descriptor or -errno (-ELOOP for a symlink in the path, -EAGAIN for a leased
 * file or a path that somebody keeps renaming).
 */
enum sbx_fs_open_flags {
	SBX_FS_CROSS = 1 << 0,
};
int sbx_fs_open_beneath(
	int root_fd, const char *path, int flags, mode_t mode, enum sbx_fs_open_flags how);

/* Reads a whole regular file of at most max bytes (-EFBIG otherwise) from offset 0. */
int sbx_fs_read_fd(int fd, size_t max, struct sbx_buf *ret);
/* The same by name in a directory of our own (never one that a command wrote). */
int sbx_fs_read_at(int dir_fd, const char *name, size_t max, struct sbx_buf *ret);
/* write(2) until all is written; -errno. */
int sbx_fs_write_all(int fd, const void *data, size_t size);

/*
 * Replaces dir_fd/name by the bytes: temporary file, optional fsync of file and directory
 * (SBX_FS_DURABLE), rename. Either the old or the new content is there at any time.
 */
enum sbx_fs_write_flags {
	SBX_FS_DURABLE = 1 << 0,
};
int sbx_fs_write_at(int dir_fd, const char *name, mode_t mode, const void *data, size_t size,
	enum sbx_fs_write_flags flags);

/* Opens or makes a directory of our own: mkdirat (existing is fine), then open. */
int sbx_fs_ensure_dir(int dir_fd, const char *name, mode_t mode, int *ret_fd);

/*
 * Removes dir_fd/name, whatever it is, with everything below: by descriptor, without following
 * links or crossing a mount, any depth and any mode, with a bounded number of open descriptors.
 * A missing name is success.
 */
int sbx_fs_remove_tree(int dir_fd, const char *name);

/*
 * The contract's path rules. Takes a path as a caller gave it and the absolute workspace root
 * ("/workspace"); yields the path relative to the root ("" for the root itself), "." and empty
 * components dropped. "..", a NUL (size differs from strlen), an absolute path elsewhere, a
 * component over 255 bytes or a path over SBX_PATH_MAX are SBX_KIND_INVALID with the path named.
 */
int sbx_fs_normalize(const char *path, size_t size, const char *root_at,
	char ret_path[static SBX_PATH_MAX + 1], struct sbx_err *err);

/* Whether the directory above_fd is below_fd or one of those that hold it: 1, 0, -errno. */
int sbx_fs_holds(int above_fd, int below_fd);

/* "a regular file", "a symbolic link", ...: for messages. */
const char *sbx_fs_kind_name(mode_t mode);

#endif
