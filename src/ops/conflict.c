/* SPDX-License-Identifier: MIT */
#include "conflict.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "sbx/fs.h"
#include "sbx/owners.h"
#include "sbx/store.h"

void sbx_conflicts_done(struct sbx_conflicts *conflicts)
{
	for (size_t i = 0; conflicts->owners && i < conflicts->head_stack->n; i++)
		sbx_free_pointer(&conflicts->owners[i]);
	sbx_free_pointer(&conflicts->owners);
	sbx_json_put(&conflicts->list);
}

static const char *kind_name(enum sbx_conflict_kind kind)
{
	static const char *const names[] = {
		[SBX_CONFLICT_CONTENT] = "content",
		[SBX_CONFLICT_DELETE_MODIFY] = "delete_modify",
		[SBX_CONFLICT_MODIFY_DELETE] = "modify_delete",
		[SBX_CONFLICT_BINARY] = "binary",
		[SBX_CONFLICT_TYPE] = "type",
		[SBX_CONFLICT_SYMLINK] = "symlink",
		[SBX_CONFLICT_ADD_ADD] = "add_add",
		[SBX_CONFLICT_METADATA] = "metadata",
	};

	return names[kind];
}

/* Whether a layer says something about the path: 1, 0 or -errno. */
static int layer_touches(struct sbx_conflicts *conflicts, size_t layer, const char *path)
{
	SBX_BUF struct sbx_buf name = SBX_BUF_INIT;
	SBX_CLOSE int fd = -EBADF;
	int r;

	r = sbx_buf_printf(
		&name, "%s/" SBX_LAYER_TREE "/%s", conflicts->head_stack->ids[layer], path);
	if (r < 0)
		return r;
	fd = sbx_fs_open_beneath(conflicts->layers_fd, name.data, O_PATH, 0, 0);
	if (fd >= 0)
		return 1;
	/* a whiteout or a file in the place of a directory above it */
	return fd == -ENOTDIR || fd == -ELOOP;
}

/* The newest layer since the base that deleted the path, or one of those that could have. */
static size_t deleting_layer(struct sbx_conflicts *conflicts, const char *path)
{
	size_t newest = SBX_CONFLICT_NO_LAYER;

	for (size_t i = conflicts->head_stack->n; i-- > 0;) {
		if (!conflicts->newer[i])
			continue;
		if (newest == SBX_CONFLICT_NO_LAYER)
			newest = i; /* an opaque directory above has no name of its own to find */
		if (layer_touches(conflicts, i, path) > 0)
			return i;
	}
	return newest;
}

static int load_owner(struct sbx_conflicts *conflicts, size_t layer, char **ret)
{
	struct sbx_layer_info info;
	SBX_CLOSE int fd = sbx_fs_open_beneath(conflicts->layers_fd,
		conflicts->head_stack->ids[layer], O_RDONLY | O_DIRECTORY, 0, 0);

	if (fd < 0 || sbx_layer_info_load(fd, &info, NULL) < 0)
		return -ENOENT;
	*ret = info.owner ? sbx_take(&info.owner) : NULL;
	sbx_layer_info_done(&info);
	return *ret ? 0 : -ENOENT;
}

static const char *layer_owner(struct sbx_conflicts *conflicts, size_t layer)
{
	if (layer >= conflicts->head_stack->n)
		return "unknown";
	if (!conflicts->owners)
		conflicts->owners = calloc(conflicts->head_stack->n, sizeof(*conflicts->owners));
	if (!conflicts->owners)
		return "unknown";
	if (!conflicts->owners[layer] &&
		load_owner(conflicts, layer, &conflicts->owners[layer]) < 0)
		return "unknown"; /* a damaged layer.json must not hide the conflict */
	return conflicts->owners[layer];
}

/* Who owns line number line (from 1) of the head's content, as far as a record tells. */
static const char *line_owner(struct sbx_conflicts *conflicts, const char *path, uint32_t line)
{
	const struct sbx_owners *from;
	struct sbx_owner_record record;
	uint32_t end = 0;

	if (sbx_owners_lookup(conflicts->head, path, &record, &from, NULL) < 0)
		return NULL;
	for (uint32_t i = 0; i < record.n_runs; i++) {
		end += record.runs[i].count;
		if (line <= end)
			return sbx_owners_name(from, record.runs[i].owner);
	}
	return NULL;
}

/* The owner of the first conflicting line that theirs still has, else of the layer. */
static const char *theirs_owner(struct sbx_conflicts *conflicts, const char *path, size_t layer,
	const struct sbx_merge *merge)
{
	for (size_t i = 0; merge && i < merge->n_conflicts; i++) {
		const struct sbx_merge_range *range = &merge->conflicts[i].theirs;
		const char *owner = range->count ? line_owner(conflicts, path, range->start) : NULL;

		if (owner && strcmp(owner, SBX_OWNER_ORIGINAL) != 0)
			return owner;
	}
	if (layer == SBX_CONFLICT_NO_LAYER)
		layer = deleting_layer(conflicts, path);
	return layer_owner(conflicts, layer);
}

static void add_ranges(struct json_object *item, const char *key, const struct sbx_merge *merge,
	const struct sbx_merge_range *(*side)(const struct sbx_merge_conflict *))
{
	struct json_object *ranges = json_object_new_array();
	size_t n = merge ? SBX_MIN(merge->n_conflicts, (size_t)SBX_CONFLICT_RANGES_MAX) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct sbx_merge_range *range = side(&merge->conflicts[i]);
		struct json_object *object = json_object_new_object();

		sbx_json_add_int(object, "start_line", range->start);
		sbx_json_add_int(object, "line_count", range->count);
		sbx_answer_push(ranges, object);
	}
	sbx_json_add(item, key, ranges);
}

static const struct sbx_merge_range *side_base(const struct sbx_merge_conflict *conflict)
{
	return &conflict->base;
}

static const struct sbx_merge_range *side_ours(const struct sbx_merge_conflict *conflict)
{
	return &conflict->ours;
}

static const struct sbx_merge_range *side_theirs(const struct sbx_merge_conflict *conflict)
{
	return &conflict->theirs;
}

int sbx_conflicts_add(struct sbx_conflicts *conflicts, const char *path,
	enum sbx_conflict_kind kind, size_t layer, const struct sbx_merge *merge)
{
	struct json_object *item;

	if (!conflicts->list)
		conflicts->list = json_object_new_array();
	if (!conflicts->list)
		return -ENOMEM;
	if (conflicts->n++ >= SBX_CONFLICTS_MAX)
		return 0;
	item = json_object_new_object();
	if (!item)
		return -ENOMEM;
	sbx_json_add_path(item, "path", *path ? path : ".");
	sbx_json_add_string(item, "kind", kind_name(kind));
	sbx_json_add_string(item, "ours_owner", conflicts->ours_owner);
	sbx_json_add_string(item, "theirs_owner", theirs_owner(conflicts, path, layer, merge));
	add_ranges(item, "base_ranges", merge, side_base);
	add_ranges(item, "ours_ranges", merge, side_ours);
	add_ranges(item, "theirs_ranges", merge, side_theirs);
	sbx_answer_push(conflicts->list, item);
	return 0;
}
