/* SPDX-License-Identifier: MIT */
#include "seal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"

static int sync_fd(int fd, const char *what, struct sbx_err *err)
{
	if (fsync(fd) < 0)
		return sbx_err_set(err, errno, "sync %s: %m", what);
	return 0;
}

static int sync_file(int dir_fd, const char *name, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return sbx_err_set(err, errno, "open '%s' to sync it: %m", name);
	return sync_fd(fd, name, err);
}

int sbx_seal_sync_path(int tree_fd, const char *path, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(tree_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *rest = path;

	if (fd < 0)
		return sbx_err_set(err, errno, "open the layer's tree: %m");
	for (;;) {
		const char *end = strchrnul(rest, '/');
		char name[NAME_MAX + 1];
		int next;

		if (fsync(fd) < 0)
			return sbx_err_set(err, errno, "sync a directory of '%s': %m", path);
		(void)snprintf(name, sizeof(name), "%.*s", (int)(end - rest), rest);
		if (!*end)
			return sync_file(fd, name, err);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (next < 0)
			return sbx_err_set(err, errno, "open a directory of '%s': %m", path);
		sbx_fd_close(&fd);
		fd = next;
		rest = end + 1;
	}
}

static int describe_tree(int layer_fd, struct sbx_layer_info *info, struct sbx_err *err)
{
	SBX_CLOSE int tree_fd =
		openat(layer_fd, SBX_LAYER_TREE, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (tree_fd < 0)
		return sbx_err_set(err, errno, "open the tree of layer %s: %m", info->id);
	return sbx_layer_digest(tree_fd, info->tree_digest, &info->n_entries, &info->n_bytes, err);
}

int sbx_seal_layer(int layers_fd, int layer_fd, struct sbx_layer_info *info,
	struct sbx_owners_writer *writer, const struct sbx_owner_table *table, struct sbx_err *err)
{
	int r;

	r = describe_tree(layer_fd, info, err);
	if (r == 0)
		r = sbx_owners_writer_write(writer, table, layer_fd, SBX_LAYER_LINES, err);
	if (r == 0)
		r = sbx_layer_info_save(layer_fd, info, err);
	if (r == 0)
		r = sync_file(layer_fd, SBX_LAYER_LINES, err);
	if (r == 0)
		r = sync_file(layer_fd, SBX_LAYER_JSON, err);
	if (r == 0)
		r = sync_fd(layer_fd, "the layer's directory", err);
	if (r == 0)
		r = sync_fd(layers_fd, "the directory of layers", err);
	return r;
}
