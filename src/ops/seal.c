/* SPDX-License-Identifier: MIT */
/*
 * All is written before the first sync: a journaling file system then needs one commit for all of
 * it, and the syncs that follow find their work done.
 */
#include "seal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "publication.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int describe_tree(int layer_fd, struct sbx_layer_info *info, struct sbx_err *err)
{
	SBX_CLOSE int tree_fd = openat(layer_fd, SBX_LAYER_TREE, OPEN_DIR_FLAGS);

	if (tree_fd < 0)
		return sbx_err_set(err, errno, "open the tree of layer %s: %m", info->id);
	return sbx_layer_digest(tree_fd, info->tree_digest, &info->n_entries, &info->n_bytes, err);
}

/* Syncs path below the layer's tree and every directory above it, the tree's root included. */
static int sync_path(int layer_fd, const char *path, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(layer_fd, SBX_LAYER_TREE, OPEN_DIR_FLAGS);
	const char *rest = path;

	if (fd < 0)
		return sbx_err_set(err, errno, "open the layer's tree: %m");
	for (;;) {
		const char *end = strchrnul(rest, '/');
		int r = sbx_publish_sync_name(fd, ".", err);
		char name[NAME_MAX + 1];
		int next;

		(void)snprintf(name, sizeof(name), "%.*s", (int)(end - rest), rest);
		if (r < 0 || !*end)
			return r < 0 ? r : sbx_publish_sync_name(fd, name, err);
		next = openat(fd, name, OPEN_DIR_FLAGS);
		if (next < 0)
			return sbx_err_set(err, errno, "open a directory of '%s': %m", path);
		sbx_fd_close(&fd);
		fd = next;
		rest = end + 1;
	}
}

int sbx_seal_layer(int layers_fd, int layer_fd, const char *path, struct sbx_layer_info *info,
	struct sbx_err *err)
{
	int r = describe_tree(layer_fd, info, err);

	if (r == 0)
		r = sbx_layer_info_save(layer_fd, info, err);
	if (r == 0)
		r = sync_path(layer_fd, path, err);
	if (r == 0)
		r = sbx_publish_sync_name(layer_fd, SBX_LAYER_LINES, err);
	if (r == 0)
		r = sbx_publish_sync_name(layer_fd, SBX_LAYER_JSON, err);
	if (r == 0)
		r = sbx_publish_sync_name(layer_fd, ".", err);
	if (r == 0)
		r = sbx_publish_sync_name(layers_fd, ".", err);
	return r;
}
