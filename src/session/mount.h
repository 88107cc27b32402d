/* SPDX-License-Identifier: MIT */
/*
 * Mounts as descriptors: fsopen(2), open_tree(2), mount_setattr(2), move_mount(2). Everything that
 * the spawner mounts goes through here, and nothing here looks at a name that a command could have
 * made. Kernel floor 6.1: all of these calls exist.
 */
#ifndef SBX_SESSION_MOUNT_H
#define SBX_SESSION_MOUNT_H

#include <sys/mount.h>
#include <sys/types.h>

#include "sbx/err.h"

struct sbx_mount_option {
	const char *key;
	const char *value; /* NULL: a flag */
};

/* A mount of a new file system, attached nowhere yet. The kernel's own words about a refusal
 * end up in err. attributes: MOUNT_ATTR_*. */
int sbx_mount_new(const char *type, const struct sbx_mount_option *options, size_t n_options,
	unsigned int attributes, int *ret_tree, struct sbx_err *err);
/* A tmpfs whose root belongs to uid, gid. size_bytes also bounds the number of inodes. */
int sbx_mount_tmpfs(uint64_t size_bytes, mode_t mode, uid_t id, unsigned int attributes,
	int *ret_tree, struct sbx_err *err);

/* A private copy of the mount at dir_fd/path ("" for dir_fd itself), attached nowhere yet. dir_fd
 * must belong to a mount of the caller's mount namespace (kernels before 6.15 insist). */
enum sbx_mount_clone_flags {
	SBX_MOUNT_RECURSIVE = 1 << 0, /* with the mounts below it */
};
int sbx_mount_clone(int dir_fd, const char *path, enum sbx_mount_clone_flags flags, int *ret_tree,
	struct sbx_err *err);

/* Sets attributes on a tree (and, with SBX_MOUNT_RECURSIVE, on all below), makes it private, and,
 * unless user_ns is -EBADF, maps its ids by that user namespace. */
int sbx_mount_set(int tree, unsigned int attributes, int user_ns, enum sbx_mount_clone_flags flags,
	struct sbx_err *err);

/* Attaches a tree to dir_fd/path, which must exist; a symbolic link there is covered, not
 * followed. dir_fd: AT_FDCWD, or a directory of an attached mount. */
int sbx_mount_attach(int tree, int dir_fd, const char *path, struct sbx_err *err);

/* The same below a directory of an attached mount whose content is not ours: path must be a
 * directory there, and no component of it a symbolic link. Mounts below are crossed. */
int sbx_mount_attach_beneath(int tree, int root_fd, const char *path, struct sbx_err *err);

/* Where a new root is attached until it becomes the root: a directory that every root file system
 * has that can run us. Its content is covered meanwhile. */
#define SBX_MOUNT_STAGE "/proc"

/* Makes tree, attached to SBX_MOUNT_STAGE, the root of the calling process's mount namespace and
 * lets go of all else in it. */
int sbx_mount_enter_root(int tree, struct sbx_err *err);

/* mkdir -p of an absolute path, mode 0755, below the directory root_fd. The file system must be
 * ours alone: no component may be a link. */
int sbx_mount_make_dirs(int root_fd, const char *path, struct sbx_err *err);

#endif
