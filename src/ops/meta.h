/* SPDX-License-Identifier: MIT */
/*
 * What belongs to a file besides its content: mode, owner, mtime and extended attributes. Names
 * are single components in a directory that we hold ("." is the directory itself); nothing is
 * opened and no link followed.
 */
#ifndef SBX_OPS_META_H
#define SBX_OPS_META_H

#include <sys/stat.h>

#include "sbx/err.h"

/*
 * Ours, on a renamed directory of a tree that is not sealed yet: the path that it had in the base.
 * A publication that is cut short, rejected or tried again still finds the owners of its lines.
 */
#define SBX_XATTR_ORIGIN "trusted.sbx.origin"

struct sbx_xattr {
	char *name;
	char *value;
	size_t size;
};

struct sbx_meta {
	struct stat st;
	struct sbx_xattr *xattrs; /* sorted by name, without those that sbx_xattr_is_private() */
	size_t n_xattrs;
};
#define SBX_META_INIT ((struct sbx_meta){0})
void sbx_meta_done(struct sbx_meta *meta);
#define SBX_META SBX_CLEANUP(sbx_meta_done)

/*
 * Whether an attribute is bookkeeping: overlayfs' own marks, forgeries of them that a command
 * made, and SELinux labels, which the host decides. They are no part of what is published.
 */
bool sbx_xattr_is_private(const char *name);

enum sbx_meta_flags {
	/* removes overlay marks (but opaque and redirect of directories) from the file */
	SBX_META_STRIP = 1 << 0,
};
/* st is taken over when it is known already, else NULL. -errno. */
int sbx_meta_read(int dir_fd, const char *name, const struct stat *st, enum sbx_meta_flags flags,
	struct sbx_meta *ret);

/* Removes overlay marks from a regular file that is open; whether no attribute is left. */
int sbx_meta_strip_fd(int fd, bool *ret_is_bare);

/* Mode, owner and xattrs; not the mtime. */
bool sbx_meta_equal(const struct sbx_meta *a, const struct sbx_meta *b);
/* -errno. No link is followed. */
int sbx_mtime_set(int dir_fd, const char *name, const struct timespec *mtime);
bool sbx_mtime_equal(const struct stat *a, const struct stat *b);

/*
 * Three-way: each of mode, uid, gid and every xattr by itself. Of two mtimes that both differ from
 * the base's the newer wins. base may be NULL: made on both sides. Returns 1 when both sides
 * changed one of them to different things (ret is not set then), 0, or -ENOMEM.
 */
int sbx_meta_merge(const struct sbx_meta *base, const struct sbx_meta *head,
	const struct sbx_meta *ours, struct sbx_meta *ret);

/* Makes the file's metadata be that. The mode of a symbolic link cannot be changed. -errno. */
int sbx_meta_apply(int dir_fd, const char *name, const struct sbx_meta *meta);

/* One attribute by name: its size, or -errno (-ENODATA: none). value may be NULL with size 0. */
ssize_t sbx_xattr_get(int dir_fd, const char *name, const char *xattr, void *value, size_t size);
int sbx_xattr_remove(int dir_fd, const char *name, const char *xattr); /* none is success */

#endif
