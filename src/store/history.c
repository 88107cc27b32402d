/* SPDX-License-Identifier: MIT */
/*
 * How far back older versions can be asked for. A squash takes layers out of the head that the
 * versions before it still need; the further back, the more of them there are.
 */
#include <fcntl.h>

#include "head_log.h"
#include "sbx/json.h"
#include "sbx/store.h"
#include "walk.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define BLOCK_SIZE     512u /* of st_blocks, inode(7) */
#define ENTRY_WEIGHT   512u /* about what an inode and its name take */

static int weigh_tree(int tree_fd, uint64_t *ret_bytes, struct sbx_err *err)
{
	WALK struct walk *walk = NULL;
	struct walk_item item;
	uint64_t bytes = 0;
	int r = walk_new(tree_fd, -EBADF, &walk, err);

	while (r == 0 && (r = walk_next(walk, &item, err)) > 0) {
		if (r == WALK_ENTRY) {
			bytes += ENTRY_WEIGHT + (uint64_t)item.st.st_blocks * BLOCK_SIZE /
							SBX_MAX(item.st.st_nlink, (nlink_t)1);
			if (S_ISDIR(item.st.st_mode) && (r = walk_enter(walk, err)) < 0)
				return r;
		}
		r = 0;
	}
	if (r == 0)
		*ret_bytes = bytes;
	return r;
}

/* A layer that is not there any more weighs nothing. */
static int weigh(int layers_fd, const char *id, uint64_t *ret_bytes, struct sbx_err *err)
{
	SBX_CLOSE int layer_fd = openat(layers_fd, id, OPEN_DIR_FLAGS);
	SBX_CLOSE int tree_fd = layer_fd < 0 ? -EBADF : openat(layer_fd, "tree", OPEN_DIR_FLAGS);

	*ret_bytes = 0;
	if (tree_fd < 0)
		return errno == ENOENT ? 0 : sbx_err_set(err, errno, "open layer %s: %m", id);
	return sbx_err_wrap(err, weigh_tree(tree_fd, ret_bytes, err), "weigh layer %s", id);
}

static int weigh_once(int layers_fd, const char *id, struct json_object *weights,
	uint64_t *ret_bytes, struct sbx_err *err)
{
	int64_t known = sbx_json_int(weights, id, -1);
	int r;

	if (known >= 0) {
		*ret_bytes = (uint64_t)known;
		return 0;
	}
	r = weigh(layers_fd, id, ret_bytes, err);
	if (r == 0)
		sbx_json_add_int(weights, id, (int64_t)*ret_bytes);
	return r;
}

int sbx_history_oldest(int layers_fd, const struct sbx_head_log *log, uint64_t max,
	struct json_object *weights, uint64_t *ret_oldest, struct sbx_err *err)
{
	const struct sbx_stack *layers;
	uint64_t version, sum = 0;

	for (size_t i = 0; head_log_removal(log, i, &version, &layers); i++)
		for (size_t k = 0; k < layers->n; k++) {
			uint64_t bytes = 0;
			int r = weigh_once(layers_fd, layers->ids[k], weights, &bytes, err);

			if (r < 0)
				return r;
			sum += bytes;
			if (sum > max) {
				*ret_oldest = version;
				return 0;
			}
		}
	*ret_oldest = 0;
	return 0;
}
