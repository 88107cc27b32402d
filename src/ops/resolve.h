/* SPDX-License-Identifier: MIT */
/*
 * A captured changeset against a head that moved on since its base.
 *
 * Planning compares, path by path, base, head and ours; it decides (flags on the entries), merges
 * texts into files of a staging directory, and lists every conflict. It changes nothing in the
 * tree. Only when there is no conflict does applying make the tree a layer on top of the head.
 * Cost follows the changeset and, below directories that it deletes, what the newer layers touched.
 *
 * Beyond the table of DESIGN (delete/delete, same directory made twice, ... are no conflicts):
 *   - mode, uid, gid and each xattr merge by themselves; set to two different values: a conflict
 *   - of two new mtimes the newer wins; a file of which only the mtime changed yields to any change
 *   - a directory keeps the head's metadata unless our side changed them
 *   - ignored paths are not compared: ours is applied as it is
 */
#ifndef SBX_OPS_RESOLVE_H
#define SBX_OPS_RESOLVE_H

#include "changeset.h"
#include "conflict.h"
#include "sbx/view.h"

struct sbx_resolve {
	struct sbx_changeset *set;
	int tree_fd;  /* the captured tree */
	int stage_fd; /* an empty directory of our own on the same file system */
	int layers_fd;
	struct sbx_view *base;
	struct sbx_view *head;
	const struct sbx_stack *base_stack;
	const struct sbx_stack *head_stack;
	const char *ours_owner;
};

/* ret's list is empty when it can be applied. The caller ends ret; resolve must outlive it. */
int sbx_resolve_plan(
	const struct sbx_resolve *resolve, struct sbx_conflicts *ret, struct sbx_err *err);
/*
 * Carries the plan out. An error leaves the tree between the two, which is still our side's work
 * and can be captured against the base again.
 */
int sbx_resolve_apply(const struct sbx_resolve *resolve, struct sbx_err *err);

#endif
