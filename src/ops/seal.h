/* SPDX-License-Identifier: MIT */
/* Making a layer of one path whose files stand complete: its description and its durability. */
#ifndef SBX_OPS_SEAL_H
#define SBX_OPS_SEAL_H

#include "sbx/store.h"

/*
 * Describes the layer in layer_fd, whose tree/ (path and the directories on the way to it) and
 * lines are complete: fills info's digest and counts of the tree and writes layer.json. Then makes
 * all of it and the layer's name in layers_fd durable, so that head.log can name the layer.
 */
int sbx_seal_layer(int layers_fd, int layer_fd, const char *path, struct sbx_layer_info *info,
	struct sbx_err *err);

#endif
