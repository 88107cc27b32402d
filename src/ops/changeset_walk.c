/* SPDX-License-Identifier: MIT */
#include "changeset_walk.h"

/* Steps into a directory of the tree, to its origin if it was renamed. */
static int enter(const struct sbx_changeset *set, struct sbx_trail *trail, uint32_t index)
{
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	const char *origin = NULL;
	int r;

	if (set->entries[index].flags & SBX_ENTRY_RENAMED) {
		r = sbx_trail_path(trail, sbx_entry_name(set, index), &path);
		if (r < 0)
			return r;
		origin = sbx_changeset_origin(set, path.data);
	}
	return sbx_trail_enter(trail, sbx_entry_name(set, index), origin);
}

/* Goes up from index, and further while nothing is left below, until next is inside. */
static int leave_until(const struct sbx_changeset *set, struct sbx_trail *trail,
	const struct sbx_changeset_walk *walk, uint32_t *index, uint32_t next)
{
	while (*index && next >= set->entries[*index].end) {
		int r = walk->leave ? walk->leave(walk->data, trail, *index) : 0;

		if (r < 0)
			return r;
		sbx_trail_leave(trail);
		*index = set->entries[*index].parent;
	}
	return 0;
}

int sbx_changeset_walk(const struct sbx_changeset *set, struct sbx_trail *trail,
	const struct sbx_changeset_walk *walk)
{
	uint32_t dir = 0, i = 1;
	int r = 0;

	while (r >= 0 && i < set->n) {
		const struct sbx_entry *entry = &set->entries[i];

		r = leave_until(set, trail, walk, &dir, i);
		if (r < 0)
			return r;
		if (entry->flags & SBX_ENTRY_DROP) {
			i = entry->end;
			continue;
		}
		r = walk->visit(walk->data, trail, i);
		if (r >= 0 && S_ISDIR(entry->mode)) {
			r = enter(set, trail, i);
			dir = i;
		}
		i++;
	}
	if (r >= 0)
		r = leave_until(set, trail, walk, &dir, (uint32_t)set->n);
	if (r >= 0 && walk->leave)
		r = walk->leave(walk->data, trail, 0);
	return r;
}
