/* SPDX-License-Identifier: MIT */
/*
 * Regions that ours and theirs changed are walked together by their place in base. Regions that
 * overlap or touch form a group. A group of one side alone is that side's; a group in which both
 * sides come to the same bytes is either's: so far, this is git's rule. Any other group is parted
 * where two regions merely are neighbours (see may_part), and what then still has both sides in it
 * is a conflict.
 */
#include "merge_internal.h"

#include <string.h>

/* Where the walk is: regions used up, and the distance of each side's lines from base's. */
struct walk {
	struct merge_work *work;
	size_t at[MERGE_N_SIDES];
	int64_t shift[MERGE_N_SIDES];
	uint32_t base; /* lines of base that are in pieces */
};

/* Touching regions: those of each side from the walk's place up to end[side]. */
struct group {
	size_t end[MERGE_N_SIDES];
	uint32_t low; /* of base: [low, high) */
	uint32_t high;
};

void merge_work_done(struct merge_work *work)
{
	for (int side = 0; side < MERGE_N_SIDES; side++) {
		sbx_lines_done(&work->lines[side]);
		sbx_diff_done(&work->diffs[side]);
	}
	sbx_free_pointer(&work->pieces);
}

static const struct sbx_diff_region *region_at(
	const struct walk *walk, enum merge_side side, size_t at)
{
	const struct sbx_diff *diff = &walk->work->diffs[side];

	return at < diff->n_regions ? &diff->regions[at] : NULL;
}

static uint32_t region_end(const struct sbx_diff_region *region)
{
	return region->a_start + region->a_count;
}

/* The side whose region at its place in at comes first; both at one line: ours. BASE: no more. */
static enum merge_side first_side(const struct walk *walk, const size_t at[MERGE_N_SIDES])
{
	const struct sbx_diff_region *ours = region_at(walk, MERGE_OURS, at[MERGE_OURS]);
	const struct sbx_diff_region *theirs = region_at(walk, MERGE_THEIRS, at[MERGE_THEIRS]);

	if (!ours && !theirs)
		return MERGE_BASE;
	if (!theirs || (ours && ours->a_start <= theirs->a_start))
		return MERGE_OURS;
	return MERGE_THEIRS;
}

static bool grows(const struct sbx_diff_region *region)
{
	return region->b_count > region->a_count;
}

/*
 * Whether first (of one side) and next (of the other), which starts where first ends, are edits of
 * different base lines. Pure insertions have no base line of their own. When both grow, each may
 * hold an addition at the line between them; when one grows and the other deletes, the addition
 * may belong to what was deleted.
 */
static bool may_part(const struct sbx_diff_region *first, const struct sbx_diff_region *next)
{
	if (first->a_count == 0 || next->a_count == 0)
		return false;
	if (grows(first))
		return !grows(next) && next->b_count > 0;
	return !grows(next) || first->b_count > 0;
}

static enum merge_side other_side(enum merge_side side)
{
	return side == MERGE_OURS ? MERGE_THEIRS : MERGE_OURS;
}

/* Whether the group ends before next (a region of side), which starts at or before its end. */
static bool parts_before(const struct walk *walk, const struct group *group, enum merge_side side,
	const struct sbx_diff_region *next)
{
	enum merge_side other = other_side(side);
	const struct sbx_diff_region *last;

	/* regions of one side never touch, so what ends at next's start is the other's last one */
	if (next->a_start < group->high || group->end[other] == walk->at[other])
		return false;
	last = region_at(walk, other, group->end[other] - 1);
	return region_end(last) == next->a_start && may_part(last, next);
}

static void group_init(struct group *group, const struct walk *walk)
{
	const struct sbx_diff_region *region;
	enum merge_side side = first_side(walk, walk->at);

	memcpy(group->end, walk->at, sizeof(group->end));
	region = region_at(walk, side, group->end[side]++);
	group->low = region->a_start;
	group->high = region_end(region);
}

/* The regions from the walk's place on that touch each other, up to limit if there is one. */
static struct group next_group(const struct walk *walk, const struct group *limit)
{
	struct group group;

	group_init(&group, walk);
	for (;;) {
		enum merge_side side = first_side(walk, group.end);
		const struct sbx_diff_region *next = region_at(walk, side, group.end[side]);

		if (!next || next->a_start > group.high)
			return group;
		if (limit && parts_before(walk, &group, side, next))
			return group;
		group.high = SBX_MAX(group.high, region_end(next));
		group.end[side]++;
	}
}

static bool has(const struct walk *walk, const struct group *group, enum merge_side side)
{
	return group->end[side] > walk->at[side];
}

/* How the side's lines shift against base's over the group. */
static int64_t growth(const struct walk *walk, const struct group *group, enum merge_side side)
{
	int64_t sum = 0;

	for (size_t i = walk->at[side]; i < group->end[side]; i++) {
		const struct sbx_diff_region *region = region_at(walk, side, i);

		sum += (int64_t)region->b_count - region->a_count;
	}
	return sum;
}

static struct merge_piece piece_of(const struct walk *walk, const struct group *group)
{
	struct merge_piece piece = {0};

	for (int side = 0; side < MERGE_N_SIDES; side++) {
		piece.spans[side].start = (uint32_t)(group->low + walk->shift[side]);
		piece.spans[side].count =
			(uint32_t)(group->high - group->low + growth(walk, group, side));
	}
	return piece;
}

static size_t span_bytes(
	const struct sbx_lines *lines, const struct merge_span *span, const char **ret_data)
{
	*ret_data = lines->data + lines->offsets[span->start];
	return lines->offsets[span->start + span->count] - lines->offsets[span->start];
}

static bool sides_agree(const struct merge_work *work, const struct merge_piece *piece)
{
	const char *ours;
	const char *theirs;
	size_t size;

	size = span_bytes(&work->lines[MERGE_OURS], &piece->spans[MERGE_OURS], &ours);
	return size == span_bytes(
			       &work->lines[MERGE_THEIRS], &piece->spans[MERGE_THEIRS], &theirs) &&
	       !memcmp(ours, theirs, size);
}

static int add_piece(struct merge_work *work, const struct merge_piece *piece)
{
	if (work->n_pieces == work->capacity) {
		size_t capacity = work->capacity * 2 + 16;
		struct merge_piece *pieces = reallocarray(work->pieces, capacity, sizeof(*pieces));

		if (!pieces)
			return -ENOMEM;
		work->pieces = pieces;
		work->capacity = capacity;
	}
	work->pieces[work->n_pieces++] = *piece;
	return 0;
}

/* The unchanged lines of base from the walk's place up to line end. */
static int add_common(struct walk *walk, uint32_t end)
{
	struct group group = {.low = walk->base, .high = end};
	struct merge_piece piece;

	if (walk->base == end)
		return 0;
	memcpy(group.end, walk->at, sizeof(group.end));
	piece = piece_of(walk, &group);
	walk->base = end;
	return add_piece(walk->work, &piece);
}

static int add_group(struct walk *walk, const struct group *group, bool agreed)
{
	struct merge_piece piece;

	piece = piece_of(walk, group);
	piece.from = has(walk, group, MERGE_OURS) ? MERGE_OURS : MERGE_THEIRS;
	piece.conflict = has(walk, group, MERGE_OURS) && has(walk, group, MERGE_THEIRS) && !agreed;
	for (int side = 0; side < MERGE_N_SIDES; side++) {
		walk->shift[side] += growth(walk, group, side);
		walk->at[side] = group->end[side];
	}
	walk->base = group->high;
	return add_piece(walk->work, &piece);
}

static bool group_agrees(const struct walk *walk, const struct group *group)
{
	struct merge_piece piece = piece_of(walk, group);

	return sides_agree(walk->work, &piece);
}

/* The parts of a group on which the sides differ. */
static int add_parts(struct walk *walk, const struct group *whole)
{
	int r = 0;

	while (r == 0 && memcmp(walk->at, whole->end, sizeof(walk->at))) {
		struct group part = next_group(walk, whole);

		r = add_group(walk, &part, group_agrees(walk, &part));
	}
	return r;
}

static int find_pieces(struct merge_work *work)
{
	struct walk walk = {.work = work};
	int r = 0;

	while (r == 0 && first_side(&walk, walk.at) != MERGE_BASE) {
		struct group group = next_group(&walk, NULL);

		r = add_common(&walk, group.low);
		if (r == 0 && group_agrees(&walk, &group))
			r = add_group(&walk, &group, true);
		else if (r == 0)
			r = add_parts(&walk, &group);
	}
	return r < 0 ? r : add_common(&walk, work->lines[MERGE_BASE].n);
}

int merge_work_init(struct merge_work *work, const struct sbx_merge_text *base,
	const struct sbx_merge_text *ours, const struct sbx_merge_text *theirs, struct sbx_err *err)
{
	const struct sbx_merge_text *texts[MERGE_N_SIDES] = {base, ours, theirs};
	int r = 0;

	for (int side = 0; r == 0 && side < MERGE_N_SIDES; side++)
		r = sbx_lines_split(
			texts[side]->data, texts[side]->size, 0, &work->lines[side], err);
	for (int side = MERGE_OURS; r == 0 && side < MERGE_N_SIDES; side++)
		r = sbx_diff(&work->lines[MERGE_BASE], &work->lines[side], SBX_DIFF_PLAIN,
			&work->diffs[side], err);
	if (r < 0)
		return r;
	r = find_pieces(work);
	return r < 0 ? sbx_err_set(err, -r, "merge two texts: %m") : 0;
}
