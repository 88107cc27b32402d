/* SPDX-License-Identifier: MIT */
#include "changeset.h"

#include <string.h>

void sbx_changeset_done(struct sbx_changeset *set)
{
	for (size_t i = 0; i < set->n_renames; i++) {
		sbx_free_pointer(&set->renames[i].path);
		sbx_free_pointer(&set->renames[i].origin);
	}
	sbx_free_pointer(&set->renames);
	sbx_free_pointer(&set->entries);
	sbx_buf_done(&set->names);
	sbx_ignore_free(set->ignore);
	sbx_json_put(&set->dropped);
	*set = SBX_CHANGESET_INIT;
}

static int grow(struct sbx_changeset *set)
{
	size_t capacity = SBX_MAX(set->capacity + set->capacity / 2, (size_t)64);
	struct sbx_entry *entries;

	if (set->n < set->capacity)
		return 0;
	entries = reallocarray(set->entries, capacity, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	set->entries = entries;
	set->capacity = capacity;
	return 0;
}

int sbx_changeset_add(struct sbx_changeset *set, uint32_t parent, const char *name,
	const struct sbx_entry *entry, uint32_t *ret_index, struct sbx_err *err)
{
	size_t name_offset = set->names.size;
	struct sbx_entry *added;

	if (set->n >= SBX_CHANGESET_ENTRIES_MAX)
		return sbx_err_set(err, E2BIG,
			"more than %d paths in one publication; publish in smaller steps",
			SBX_CHANGESET_ENTRIES_MAX);
	if (name_offset + strlen(name) + 1 > SBX_CHANGESET_NAMES_MAX)
		return sbx_err_set(err, E2BIG,
			"more than %u bytes of names in one publication; publish in smaller steps",
			SBX_CHANGESET_NAMES_MAX);
	if (grow(set) < 0 || sbx_buf_append(&set->names, name, strlen(name) + 1) < 0)
		return sbx_err_set(err, ENOMEM, "list the changed paths: %m");
	added = &set->entries[set->n];
	*added = *entry;
	added->name = (uint32_t)name_offset;
	added->parent = set->n ? parent : 0;
	added->end = (uint32_t)set->n + 1;
	*ret_index = (uint32_t)set->n++;
	return 0;
}

void sbx_changeset_pop(struct sbx_changeset *set)
{
	set->n--;
	set->names.size = set->entries[set->n].name;
}

int sbx_changeset_path(const struct sbx_changeset *set, uint32_t index, struct sbx_buf *ret)
{
	size_t size = 0, at;
	int r;

	for (uint32_t i = index; i; i = set->entries[i].parent)
		size += strlen(sbx_entry_name(set, i)) + 1;
	sbx_buf_clear(ret);
	r = sbx_buf_reserve(ret, size);
	if (r < 0)
		return r;
	ret->size = at = size ? size - 1 : 0;
	ret->data[at] = '\0';
	for (uint32_t i = index; i; i = set->entries[i].parent) {
		const char *name = sbx_entry_name(set, i);
		size_t length = strlen(name);

		at -= length;
		memcpy(ret->data + at, name, length);
		if (at)
			ret->data[--at] = '/';
	}
	return 0;
}

void sbx_changeset_act(struct sbx_changeset *set, uint32_t index, enum sbx_entry_flags action)
{
	set->entries[index].flags |= (uint16_t)action;
	for (uint32_t i = index;; i = set->entries[i].parent) {
		if (set->entries[i].flags & SBX_ENTRY_ACTION)
			return;
		set->entries[i].flags |= SBX_ENTRY_ACTION;
		if (!i)
			return;
	}
}

int sbx_changeset_renamed(struct sbx_changeset *set, const char *path, const char *origin)
{
	SBX_FREE char *path_copy = strdup(path);
	SBX_FREE char *origin_copy = strdup(origin);
	struct sbx_rename *renames;

	if (set->n_renames >= SBX_CHANGESET_RENAMES_MAX)
		return 0;
	renames = reallocarray(set->renames, set->n_renames + 1, sizeof(*renames));
	if (renames)
		set->renames = renames;
	if (!renames || !path_copy || !origin_copy)
		return -ENOMEM;
	renames[set->n_renames++] =
		(struct sbx_rename){.path = sbx_take(&path_copy), .origin = sbx_take(&origin_copy)};
	return 0;
}

const char *sbx_changeset_origin(const struct sbx_changeset *set, const char *path)
{
	for (size_t i = 0; i < set->n_renames; i++)
		if (!strcmp(set->renames[i].path, path))
			return set->renames[i].origin;
	return NULL;
}

int sbx_changeset_dropped(struct sbx_changeset *set, const char *path, mode_t mode)
{
	struct json_object *item;

	if (!set->dropped)
		set->dropped = json_object_new_array();
	if (!set->dropped)
		return -ENOMEM;
	if (set->n_dropped++ >= SBX_CHANGESET_DROPPED_MAX)
		return 0;
	item = json_object_new_object();
	if (!item)
		return -ENOMEM;
	sbx_json_add_path(item, "path", path);
	sbx_json_add_string(item, "kind", S_ISSOCK(mode) ? "socket" : "device");
	if (json_object_array_add(set->dropped, item) < 0) {
		json_object_put(item);
		return -ENOMEM;
	}
	return 0;
}

static uint64_t *counter_of(struct sbx_counts *counts, enum sbx_change change)
{
	switch (change) {
	case SBX_CHANGE_ADD:
		return &counts->added;
	case SBX_CHANGE_DELETE:
		return &counts->deleted;
	case SBX_CHANGE_MODIFY:
	case SBX_CHANGE_REPLACE:
	case SBX_CHANGE_METADATA:
		return &counts->modified;
	case SBX_CHANGE_NONE:
		break;
	}
	return NULL;
}

void sbx_changeset_count(const struct sbx_changeset *set, struct sbx_counts *ret)
{
	struct sbx_counts counts = {0};

	for (size_t i = 0; i < set->n; i++) {
		const struct sbx_entry *entry = &set->entries[i];
		uint64_t *counter = counter_of(&counts, (enum sbx_change)entry->change);

		if (entry->flags & SBX_ENTRY_DROP) {
			i = entry->end - 1; /* with everything below */
			continue;
		}
		if (!counter)
			continue;
		++*counter;
		counts.merged += !!(entry->flags & SBX_ENTRY_MERGED);
		counts.ignored += !!(entry->flags & SBX_ENTRY_IGNORED);
	}
	*ret = counts;
}

void sbx_counts_to_json(const struct sbx_counts *counts, struct json_object *ret_object)
{
	sbx_json_add_int(ret_object, "added", (int64_t)counts->added);
	sbx_json_add_int(ret_object, "modified", (int64_t)counts->modified);
	sbx_json_add_int(ret_object, "deleted", (int64_t)counts->deleted);
	sbx_json_add_int(ret_object, "merged", (int64_t)counts->merged);
	sbx_json_add_int(ret_object, "ignored", (int64_t)counts->ignored);
}

const char *sbx_change_name(enum sbx_change change)
{
	static const char *const names[] = {
		[SBX_CHANGE_NONE] = "none",
		[SBX_CHANGE_ADD] = "add",
		[SBX_CHANGE_MODIFY] = "modify",
		[SBX_CHANGE_DELETE] = "delete",
		[SBX_CHANGE_REPLACE] = "replace",
		[SBX_CHANGE_METADATA] = "metadata",
	};

	return names[change];
}

const char *sbx_mode_name(mode_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	if (S_ISLNK(mode))
		return "symlink";
	return S_ISFIFO(mode) ? "fifo" : "other";
}

static int list_entry(const struct sbx_changeset *set, uint32_t index, struct sbx_buf *path,
	struct json_object *list)
{
	const struct sbx_entry *entry = &set->entries[index];
	const char *origin = NULL;
	struct json_object *item;
	int r;

	r = sbx_changeset_path(set, index, path);
	if (r < 0)
		return r;
	item = json_object_new_object();
	if (!item)
		return -ENOMEM;
	sbx_json_add_path(item, "path", index ? path->data : ".");
	sbx_json_add_string(item, "change", sbx_change_name((enum sbx_change)entry->change));
	sbx_json_add_string(item, "kind", entry->mode ? sbx_mode_name(entry->mode) : NULL);
	if (entry->flags & SBX_ENTRY_RENAMED)
		origin = sbx_changeset_origin(set, path->data);
	if (origin)
		sbx_json_add_path(item, "renamed_from", origin);
	if (json_object_array_add(list, item) < 0) {
		json_object_put(item);
		return -ENOMEM;
	}
	return 0;
}

int sbx_changeset_list(const struct sbx_changeset *set, struct json_object *ret_object)
{
	SBX_JSON struct json_object *list = json_object_new_array();
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	int64_t n_paths = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->n; i++) {
		if (set->entries[i].change == SBX_CHANGE_NONE)
			continue;
		if (n_paths++ < SBX_CHANGESET_LISTED_MAX && list_entry(set, i, &path, list) < 0)
			return -ENOMEM;
	}
	sbx_json_add_int(ret_object, "n_paths", n_paths);
	sbx_json_add(ret_object, "paths", sbx_take(&list));
	return 0;
}
