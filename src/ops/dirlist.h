/* SPDX-License-Identifier: MIT */
/* The names in a directory, sorted by bytes, in two allocations. */
#ifndef SBX_OPS_DIRLIST_H
#define SBX_OPS_DIRLIST_H

#include "sbx/buf.h"
#include "sbx/view.h"

struct sbx_dirlist_item {
	uint32_t name; /* offset into names */
	uint8_t type;  /* d_type: DT_REG, ..., DT_UNKNOWN */
	bool absent;   /* not in the directory itself: only the view has it */
};

struct sbx_dirlist {
	struct sbx_buf names;
	struct sbx_dirlist_item *items;
	size_t n;
	size_t capacity;
};
#define SBX_DIRLIST_INIT ((struct sbx_dirlist){0})
void sbx_dirlist_done(struct sbx_dirlist *list);
#define SBX_DIRLIST SBX_CLEANUP(sbx_dirlist_done)

static inline const char *sbx_dirlist_name(const struct sbx_dirlist *list, size_t i)
{
	return list->names.data + list->items[i].name;
}

/*
 * Reads the directory from its start. at_most ends the reading early, for those who only want to
 * know whether there is anything. -E2BIG over SBX_CHANGESET_ENTRIES_MAX names.
 */
int sbx_dirlist_read(int dir_fd, size_t at_most, struct sbx_dirlist *ret);
/* Adds, as absent, the names that the view shows and the list does not have. dir may be NULL. */
int sbx_dirlist_add_absent(struct sbx_dirlist *list, struct sbx_view_dir *dir);

#endif
