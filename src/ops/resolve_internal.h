/* SPDX-License-Identifier: MIT */
#ifndef SBX_OPS_RESOLVE_INTERNAL_H
#define SBX_OPS_RESOLVE_INTERNAL_H

#include "meta.h"
#include "place.h"
#include "resolve.h"
#include "trail.h"

/* One path as the three sides have it. */
struct sbx_sides {
	bool in_base;
	bool in_head;
	struct sbx_place base;
	struct sbx_place head;
};

struct sbx_plan {
	const struct sbx_resolve *resolve;
	struct sbx_changeset *set;
	struct sbx_trail *trail;
	struct sbx_conflicts *conflicts;
	bool *newer; /* for each layer of the head */
	struct sbx_buf path;
	struct sbx_err *err;
};

/* Fails with the path of name in the trail's present directory. */
int sbx_plan_fail(struct sbx_plan *plan, int r, const char *name);
int sbx_plan_conflict(struct sbx_plan *plan, const char *name, enum sbx_conflict_kind kind,
	const struct sbx_sides *sides);
/* Whether a newer layer has anything at or below a directory of the head. */
static inline bool sbx_plan_touched(const struct sbx_plan *plan, size_t layer)
{
	return plan->newer[layer];
}

/* resolve_file.c: our side has something at this name that is no directory. */
int sbx_plan_file(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides);

/*
 * resolve_foreign.c: what the head changed or added at or below name, where our side has deleted:
 * each such path becomes a conflict. Returns how many, or -errno.
 */
int sbx_plan_foreign(struct sbx_plan *plan, const char *name, enum sbx_conflict_kind kind);

/* Three-way metadata of one path: 0, 1 for a conflict, or -errno. Directories made on both sides
 * take the head's. */
int sbx_sides_merge_meta(
	const struct sbx_sides *sides, const struct sbx_place *ours, struct sbx_meta *ret);

/* The name of an entry's merged file in the staging directory. */
#define SBX_STAGE_NAME_SIZE 16
void sbx_stage_name(uint32_t index, char ret[static SBX_STAGE_NAME_SIZE]);

#endif
