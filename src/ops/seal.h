/* SPDX-License-Identifier: MIT */
/* Making a layer whose tree stands complete: its ownership, its description, its durability. */
#ifndef SBX_OPS_SEAL_H
#define SBX_OPS_SEAL_H

#include "sbx/owners.h"
#include "sbx/store.h"

/*
 * Writes lines and layer.json of the layer in layer_fd, whose tree/ is complete and durable, and
 * makes them and the layer's name in layers_fd durable. Fills info's digest and counts of the
 * tree. Afterwards the layer can be named in head.log.
 */
int sbx_seal_layer(int layers_fd, int layer_fd, struct sbx_layer_info *info,
	struct sbx_owners_writer *writer, const struct sbx_owner_table *table, struct sbx_err *err);

/* Syncs path below tree_fd and every directory above it, the tree's root included. */
int sbx_seal_sync_path(int tree_fd, const char *path, struct sbx_err *err);

#endif
