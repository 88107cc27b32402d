/* SPDX-License-Identifier: MIT */
#include "changeset_diff.h"

#include "changeset_walk.h"
#include "filediff.h"
#include "place.h"

struct show {
	const struct sbx_changeset *set;
	struct sbx_filediff diff;
	struct sbx_buf path;
	struct sbx_err *err;
};

static int show_entry(void *data, struct sbx_trail *trail, uint32_t index)
{
	struct show *show = data;
	const struct sbx_entry *entry = &show->set->entries[index];
	const char *name = sbx_entry_name(show->set, index);
	bool has_new = entry->change != SBX_CHANGE_DELETE;
	struct sbx_place old, new;
	int r, has_old;

	if (entry->change == SBX_CHANGE_NONE)
		return 0;
	has_old = sbx_place_in_view(trail, SBX_TRAIL_BASE, name, &old);
	if (has_old < 0)
		return has_old;
	r = has_new ? sbx_place_in_tree(trail, name, &new) : 0;
	if (r == 0)
		r = sbx_changeset_path(show->set, index, &show->path);
	if (r == 0)
		r = sbx_filediff_add(&show->diff, show->path.data, has_old ? &old : NULL,
			has_new ? &new : NULL, show->err);
	return r == -ENOENT ? 0 : r; /* gone meanwhile */
}

int sbx_changeset_diff(const struct sbx_changeset *set, int tree_fd, struct sbx_view *base,
	struct json_object *ret_object, struct sbx_err *err)
{
	struct show show = {.set = set, .diff = SBX_FILEDIFF_INIT, .err = err};
	struct sbx_changeset_walk walk = {.visit = show_entry, .data = &show};
	SBX_TRAIL struct sbx_trail *trail = NULL;
	int r = sbx_trail_new(tree_fd, base, NULL, &trail);

	if (r == 0)
		r = sbx_changeset_walk(set, trail, &walk);
	if (r == 0)
		sbx_filediff_answer(&show.diff, ret_object);
	else
		(void)sbx_err_set(
			err, -r, "compare %s: %m", show.path.data ? show.path.data : "the changes");
	sbx_filediff_done(&show.diff);
	sbx_buf_done(&show.path);
	return r;
}

int sbx_changeset_show(
	const struct sbx_changeset *set, struct json_object *ret_object, struct sbx_err *err)
{
	struct sbx_counts counts;
	int r = sbx_changeset_list(set, ret_object);

	if (r < 0)
		return sbx_err_set(err, -r, "list the changes: %m");
	sbx_changeset_count(set, &counts);
	sbx_counts_to_json(&counts, ret_object);
	sbx_json_add(ret_object, "dropped",
		set->dropped ? json_object_get(set->dropped) : json_object_new_array());
	return 0;
}
