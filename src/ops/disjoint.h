/* SPDX-License-Identifier: MIT */
#ifndef SBX_OPS_DISJOINT_H
#define SBX_OPS_DISJOINT_H

#include "sbx/view.h"

/*
 * Whether a prepared layer says nothing about any path that a layer of head, but not of base, says
 * something about: then it fits on the head as it is. Cost follows the smaller of the two in each
 * directory that both have. Directories that both have keep the newer mtime, so this may touch the
 * mtimes of the layer's directories. 1, 0 or -errno.
 */
int sbx_layers_disjoint(int layers_fd, const char *layer_id, const struct sbx_stack *base,
	const struct sbx_stack *head, struct sbx_err *err);

#endif
