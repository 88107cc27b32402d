/* SPDX-License-Identifier: MIT */
/*
 * Walks a tree by descriptor, names in byte order, at any depth with a bounded number of open
 * descriptors. No symbolic link is followed and no other file system entered. A second tree, the
 * mirror, can be walked in step: the directories of the same names in it, which the caller makes
 * as it meets them.
 *
 * A directory is read whole when it is entered, so names that come later are not seen. Descriptors
 * of the upper levels are given up when the walk is deep and found again through "..", checked by
 * device and inode.
 */
#ifndef SBX_STORE_WALK_H
#define SBX_STORE_WALK_H

#include <sys/stat.h>

#include "sbx/buf.h"
#include "sbx/err.h"

#define WALK_OPEN_LEVELS 64 /* descriptors held: this many, twice with a mirror */

enum walk_event {
	WALK_END = 0,
	WALK_ENTRY,    /* anything but a directory; or a directory, before it may be entered */
	WALK_LEAVE,    /* a directory that was entered, after all that is in it; last: the root */
	WALK_VANISHED, /* an entry that was listed and is not there any more */
};

struct walk_item {
	int dir_fd;       /* holds the entry; for WALK_LEAVE: is the directory itself */
	int mirror_fd;    /* the same directory of the mirror, or -EBADF */
	const char *name; /* last component; "" for the root */
	const char *path; /* from the root of the walk, "" for it; may be longer than PATH_MAX */
	struct stat st;   /* of the entry; for WALK_LEAVE: when it was entered */
};

struct walk;
/* The descriptors are borrowed. mirror_fd: -EBADF for none. */
int walk_new(int root_fd, int mirror_fd, struct walk **ret, struct sbx_err *err);
void walk_free(struct walk *walk);
static inline void walk_freep(struct walk **walk)
{
	walk_free(*walk);
}
#define WALK SBX_CLEANUP(walk_freep)

/*
 * The next event (a positive enum walk_event), WALK_END or -errno (-ESTALE: a directory was moved
 * away while the walk was below it). *ret is valid until the next call.
 */
int walk_next(struct walk *walk, struct walk_item *ret, struct sbx_err *err);
/*
 * Descends into the directory that the last WALK_ENTRY was. -ENOENT, -ENOTDIR, -ELOOP, -EXDEV: it
 * is not that directory any more, or another file system's; the walk can go on.
 */
int walk_enter(struct walk *walk, struct sbx_err *err);

#endif
