/* SPDX-License-Identifier: MIT */
/* The tree of a layer that holds one file. */
#ifndef SBX_OPS_LAYER_TREE_H
#define SBX_OPS_LAYER_TREE_H

#include "target.h"

/*
 * Fills tree_fd (layer_fd/tree, empty) with the file of the target's path and the directories on
 * the way to it (not synced). What the head has keeps its mode, owner and xattrs, its directories
 * also their mtimes; what is new belongs to in-session root. SBX_KIND_INVALID when the head has
 * something else than a directory on the way.
 */
int sbx_layer_tree_make(const struct sbx_job *job, const struct sbx_target *target, int layer_fd,
	int tree_fd, const void *data, size_t size, struct sbx_err *err);

#endif
