/* SPDX-License-Identifier: MIT */
/*
 * Walks a view as walk.h walks a tree: names in byte order, any depth, a bounded number of open
 * descriptors, a mirror in step. Directories whose descriptors were given up are found again, layer
 * by layer, through ".." of one below.
 */
#ifndef SBX_STORE_VIEW_WALK_H
#define SBX_STORE_VIEW_WALK_H

#include "view_internal.h"
#include "walk.h"

#define VIEW_WALK_OPEN_FDS 256 /* and one for each layer; unless one directory takes more */

struct view_walk_item {
	struct sbx_view_dir *dir; /* holds the entry; for WALK_LEAVE: is the directory itself */
	int mirror_fd;            /* the same directory of the mirror, or -EBADF */
	const char *name;         /* last component; "" for the root */
	const char *path;         /* from the root of the view; may be longer than PATH_MAX */
	bool is_whiteout;         /* then node is not filled */
	bool is_covered;          /* nothing that is below the view's layers can show in dir */
	struct sbx_node node;
};

struct view_walk;
/*
 * view and mirror_fd (-EBADF: none) are borrowed. with_whiteouts: names that a whiteout of the view
 * hides are entries too.
 */
int view_walk_new(struct sbx_view *view, int mirror_fd, bool with_whiteouts, struct view_walk **ret,
	struct sbx_err *err);
void view_walk_free(struct view_walk *walk);
static inline void view_walk_freep(struct view_walk **walk)
{
	view_walk_free(*walk);
}
#define VIEW_WALK SBX_CLEANUP(view_walk_freep)

/* The next event (WALK_ENTRY, WALK_LEAVE), WALK_END or -errno. *ret is valid until the next. */
int view_walk_next(struct view_walk *walk, struct view_walk_item *ret, struct sbx_err *err);
/* Descends into the directory that the last WALK_ENTRY was, and its mirror if there is one. */
int view_walk_enter(struct view_walk *walk, struct sbx_err *err);

#endif
