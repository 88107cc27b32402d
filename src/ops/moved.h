/* SPDX-License-Identifier: MIT */
/*
 * Where a tree went. A publication renames sessions/<x>/upper to layers/<id>/tree; until head.log
 * names the layer, nothing refers to it there, and the next sweep would remove the work. So a mark
 * is left behind first: the symbolic link sessions/<x>/moved, whose target "layers/<id>" (or
 * "rejects/<id>") is no path but two words. A link is made whole or not at all, and in the same
 * journal as the rename that follows.
 *
 * The place that a tree was moved from is called its home: a session, a reject that is retried, or
 * a prepared layer that becomes a reject. Marks may form a chain of at most SBX_MOVED_CHAIN_MAX.
 */
#ifndef SBX_OPS_MOVED_H
#define SBX_OPS_MOVED_H

#include "sbx/job.h"
#include "sbx/view.h"

#define SBX_MOVED_MARK      "moved"
#define SBX_MOVED_CHAIN_MAX 4

#define SBX_UPPER_NAME "upper" /* the tree of a session */

enum sbx_moved_kind {
	SBX_MOVED_TO_LAYER,
	SBX_MOVED_TO_REJECT,
};

/*
 * Moves home_fd/tree_name to <layers or rejects>/<id>/tree, whose directory exists, with the mark
 * set before. Nothing is synced.
 */
int sbx_moved_move(struct sbx_job_context *context, int home_fd, const char *tree_name,
	enum sbx_moved_kind kind, const char *id, struct sbx_err *err);

enum sbx_moved_state {
	SBX_MOVED_NOT,       /* the tree is at home */
	SBX_MOVED_BACK,      /* it was brought back */
	SBX_MOVED_COMMITTED, /* the head has it as a layer */
	SBX_MOVED_REJECTED,  /* it is a complete reject */
	SBX_MOVED_GONE,      /* nowhere: committed, and squashed since, or never there */
};
/*
 * Brings a tree home that was moved, unless it arrived: in a layer of the head, or in a reject that
 * has its reject.json. head NULL: none of the layers can be in the head. The layer's directory that
 * is left is removed.
 */
int sbx_moved_recover(struct sbx_job_context *context, int home_fd, const char *tree_name,
	const struct sbx_stack *head, enum sbx_moved_state *ret, struct sbx_err *err);

#endif
