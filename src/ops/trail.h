/* SPDX-License-Identifier: MIT */
/*
 * One way down a captured tree, with the same directory of the base and of the head at hand at each
 * step. Goes as deep as a command cares to make directories (no path is ever handed to the kernel)
 * and holds few descriptors: those of the last steps and of the roots. What was let go is opened
 * again from the root when the way leads back to it; the tree has no other writer.
 */
#ifndef SBX_OPS_TRAIL_H
#define SBX_OPS_TRAIL_H

#include "sbx/buf.h"
#include "sbx/view.h"

enum sbx_trail_column {
	SBX_TRAIL_BASE,   /* what the base has at the same path */
	SBX_TRAIL_HEAD,   /* what the head has there */
	SBX_TRAIL_ORIGIN, /* what the base has where renamed directories came from */
	SBX_TRAIL_N_VIEWS,
};

struct sbx_trail;
/*
 * tree_fd (-EBADF: there is no tree) and the views (NULL: an empty one) are borrowed until the
 * trail ends. It starts at the root.
 */
int sbx_trail_new(
	int tree_fd, struct sbx_view *base, struct sbx_view *head, struct sbx_trail **ret);
void sbx_trail_free(struct sbx_trail *trail);
static inline void sbx_trail_freep(struct sbx_trail **trail)
{
	sbx_trail_free(*trail);
}
#define SBX_TRAIL SBX_CLEANUP(sbx_trail_freep)

/*
 * One step down. Whether there is such a directory shows when it is asked for. origin is NULL, or
 * the path of the directory that the origin column has here, which must exist. -ENOMEM; -ELOOP when
 * the way is over SBX_CHANGESET_DEPTH_MAX steps long.
 */
int sbx_trail_enter(struct sbx_trail *trail, const char *name, const char *origin);
void sbx_trail_leave(struct sbx_trail *trail);
size_t sbx_trail_depth(const struct sbx_trail *trail); /* 0 at the root */

/*
 * The present directory of the tree: a descriptor, borrowed until the next step, or -errno
 * (-ENOENT, -ENOTDIR or -ELOOP: the name is none; -EXDEV: a mount).
 */
int sbx_trail_tree(struct sbx_trail *trail);
/* The present directory of a view, borrowed until the next step; *ret is NULL when it shows none.
 */
int sbx_trail_view(
	struct sbx_trail *trail, enum sbx_trail_column column, struct sbx_view_dir **ret);
/* From now on this column shows nothing here and further down. */
void sbx_trail_blind(struct sbx_trail *trail, enum sbx_trail_column column);
/* The same for one name in it: 1 and the node, 0 when it shows none, or -errno. */
int sbx_trail_lookup(struct sbx_trail *trail, enum sbx_trail_column column, const char *name,
	struct sbx_node *ret);

/* Replaces *ret by the path of name here ("" or NULL: the present directory). */
int sbx_trail_path(const struct sbx_trail *trail, const char *name, struct sbx_buf *ret);
/* Replaces *ret by the path that the origin column has for it. */
int sbx_trail_origin(const struct sbx_trail *trail, const char *name, struct sbx_buf *ret);

#endif
