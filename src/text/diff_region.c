/* SPDX-License-Identifier: MIT */
/*
 * From marked lines to regions. A group is a run of changed lines of one text; its place is the
 * number of unchanged lines before it, which is the same count in both texts, so groups of both
 * with one place form a region.
 *
 * A group whose first line equals the line behind it can slide down, and up likewise. Each is slid
 * up and down as far as it goes, swallowing groups that it meets; it stays lowest, or at the lowest
 * place where the other text has a group too. git does the same, and a merge depends on it.
 */
#include "diff_internal.h"

#include <string.h>

#define SLIDE_BYTES 64 /* compared bytes that count as one step */

struct group {
	uint32_t place;
	uint32_t count;
};

struct groups {
	struct group *items;
	size_t n;
};

static void groups_done(struct groups *groups)
{
	sbx_free_pointer(&groups->items);
}

/* The next group from line *at on, or false. *at moves behind it. */
static bool next_group(
	const uint8_t *changed, uint32_t n, uint32_t *at, uint32_t *ret_start, uint32_t *ret_count)
{
	const uint8_t *start = memchr(changed + *at, 1, n - *at);
	const uint8_t *end;

	if (!start)
		return false;
	end = memchr(start, 0, (size_t)(changed + n + 1 - start)); /* a 0 follows the last line */
	*ret_start = (uint32_t)(start - changed);
	*ret_count = (uint32_t)(end - start);
	*at = *ret_start + *ret_count;
	return true;
}

static int collect(const uint8_t *changed, uint32_t n, struct groups *ret)
{
	uint32_t n_changed = 0;
	uint32_t start;
	uint32_t count;

	for (uint32_t at = 0; next_group(changed, n, &at, &start, &count);)
		ret->n++;
	ret->items = malloc((ret->n + 1) * sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	ret->n = 0;
	for (uint32_t at = 0; next_group(changed, n, &at, &start, &count);) {
		ret->items[ret->n++] = (struct group){start - n_changed, count};
		n_changed += count;
	}
	return 0;
}

/* A group on its way; groups before it are settled. */
struct slide {
	struct diff_work *work;
	const struct sbx_lines *lines;
	struct groups *groups;
	size_t n_settled;   /* items[0 .. n_settled) */
	uint32_t n_changed; /* lines in them */
	size_t next;        /* items[next ..] are still to come */
	struct group group;
	uint32_t start; /* its first line */
	const struct groups *other;
	size_t other_at;
};

/* Whether the other text has a group at the place. Its index follows the slide to and fro. */
static bool other_has(struct slide *slide, uint32_t place)
{
	const struct group *items = slide->other->items;

	while (slide->other_at > 0 && items[slide->other_at - 1].place >= place)
		slide->other_at--;
	while (slide->other_at < slide->other->n && items[slide->other_at].place < place)
		slide->other_at++;
	return slide->other_at < slide->other->n && items[slide->other_at].place == place;
}

static bool may_slide(struct slide *slide, uint32_t i, uint32_t j)
{
	if (diff_is_over(slide->work) || !sbx_line_equal(slide->lines, i, slide->lines, j))
		return false;
	slide->work->cost += 1 + sbx_line_size(slide->lines, i) / SLIDE_BYTES;
	return true;
}

static bool slide_up(struct slide *slide)
{
	const struct group *before;

	if (slide->start == 0 ||
		!may_slide(slide, slide->start - 1, slide->start + slide->group.count - 1))
		return false;
	slide->group.place--;
	slide->start--;
	if (slide->n_settled == 0)
		return true;
	before = &slide->groups->items[slide->n_settled - 1];
	if (before->place == slide->group.place) {
		slide->group.count += before->count;
		slide->start -= before->count;
		slide->n_settled--;
		slide->n_changed -= before->count;
	}
	return true;
}

static bool slide_down(struct slide *slide)
{
	uint32_t end = slide->start + slide->group.count;
	const struct group *after;

	if (end == slide->lines->n || !may_slide(slide, slide->start, end))
		return false;
	slide->group.place++;
	slide->start++;
	if (slide->next == slide->groups->n)
		return true;
	after = &slide->groups->items[slide->next];
	if (after->place == slide->group.place) {
		slide->group.count += after->count;
		slide->next++;
	}
	return true;
}

static void settle(struct slide *slide)
{
	uint32_t count;
	uint32_t highest;
	int64_t beside; /* lowest place where the other text has a group, or -1 */

	do {
		count = slide->group.count;
		while (slide_up(slide))
			;
		highest = slide->group.place;
		beside = other_has(slide, highest) ? (int64_t)highest : -1;
		while (slide_down(slide))
			if (other_has(slide, slide->group.place))
				beside = slide->group.place;
	} while (count != slide->group.count);
	while (beside >= 0 && slide->group.place > beside && slide_up(slide))
		;
	slide->groups->items[slide->n_settled++] = slide->group;
	slide->n_changed += slide->group.count;
}

static void slide_groups(struct diff_work *work, const struct sbx_lines *lines,
	struct groups *groups, const struct groups *other)
{
	struct slide slide = {
		.work = work,
		.lines = lines,
		.groups = groups,
		.other = other,
	};

	while (slide.next < groups->n) {
		slide.group = groups->items[slide.next++];
		slide.start = slide.group.place + slide.n_changed;
		settle(&slide);
	}
	groups->n = slide.n_settled;
}

/* Both lists in the order of places; what has one place is one region. */
static void join(const struct groups *a, const struct groups *b, struct sbx_diff *ret)
{
	uint32_t a_changed = 0;
	uint32_t b_changed = 0;

	for (size_t i = 0, j = 0; i < a->n || j < b->n;) {
		uint32_t place = UINT32_MAX;
		struct sbx_diff_region region = {0};

		if (i < a->n)
			place = a->items[i].place;
		if (j < b->n)
			place = SBX_MIN(place, b->items[j].place);
		if (i < a->n && a->items[i].place == place)
			region.a_count = a->items[i++].count;
		if (j < b->n && b->items[j].place == place)
			region.b_count = b->items[j++].count;
		region.a_start = place + a_changed;
		region.b_start = place + b_changed;
		a_changed += region.a_count;
		b_changed += region.b_count;
		ret->regions[ret->n_regions++] = region;
	}
}

int diff_regions(struct diff_work *work, struct sbx_diff *ret)
{
	SBX_CLEANUP(groups_done) struct groups a = {0};
	SBX_CLEANUP(groups_done) struct groups b = {0};
	int r;

	r = collect(work->a_changed, work->a->n, &a);
	if (r == 0)
		r = collect(work->b_changed, work->b->n, &b);
	if (r < 0)
		return r;
	slide_groups(work, work->a, &a, &b);
	slide_groups(work, work->b, &b, &a);
	ret->regions = malloc((a.n + b.n + 1) * sizeof(*ret->regions));
	if (!ret->regions)
		return -ENOMEM;
	join(&a, &b, ret);
	return 0;
}
