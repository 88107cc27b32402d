/* SPDX-License-Identifier: MIT */
/*
 * Patience: lines that occur once on both sides of a box are paired; of the pairs, the longest
 * sequence in order on both sides stays. Between these anchors the boxes are smaller, and further
 * lines occur once; where none does, Myers' algorithm takes over. Anchors keep a changed function
 * together where the shortest script would pair its braces with those of its neighbours.
 */
#include "diff_internal.h"

/* Each level looks at every line of the box anew, so there are only so many. */
#define ANCHOR_DEPTH_MAX 16

struct pair {
	uint32_t a;
	uint32_t b;
};

struct pairs {
	struct pair *items;
	uint32_t n;
};

static void pairs_done(struct pairs *pairs)
{
	sbx_free_pointer(&pairs->items);
}

struct boxes {
	struct diff_box *items;
	size_t n;
	size_t capacity;
};

static void boxes_done(struct boxes *boxes)
{
	sbx_free_pointer(&boxes->items);
}

static int boxes_add(struct boxes *boxes, const struct diff_box *box)
{
	if (boxes->n == boxes->capacity) {
		size_t capacity = boxes->capacity * 2 + 16;
		struct diff_box *items = reallocarray(boxes->items, capacity, sizeof(*items));

		if (!items)
			return -ENOMEM;
		boxes->items = items;
		boxes->capacity = capacity;
	}
	boxes->items[boxes->n++] = *box;
	return 0;
}

static inline bool is_unique(const struct diff_work *work, uint32_t class)
{
	return work->counts[class].a == 1 && work->counts[class].b == 1;
}

/* All pairs of lines that occur once on both sides, in the order of a. */
static int find_pairs(struct diff_work *work, const struct diff_box *box, struct pairs *ret)
{
	uint32_t n = 0;

	for (uint32_t i = box->a0; i < box->a1; i++)
		n += is_unique(work, work->a_class[i]);
	if (n == 0)
		return 0;
	ret->items = malloc(n * sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (uint32_t i = box->b0; i < box->b1; i++)
		if (work->b_class[i] != DIFF_CLASS_NONE)
			work->place_in_b[work->b_class[i]] = i;
	for (uint32_t i = box->a0; i < box->a1; i++)
		if (is_unique(work, work->a_class[i]))
			ret->items[ret->n++] = (struct pair){i, work->place_in_b[work->a_class[i]]};
	return 0;
}

/* First of the ends (items by growing b) that a pair with this b cannot follow. */
static uint32_t search(const struct pairs *pairs, const uint32_t *ends, uint32_t n_ends, uint32_t b)
{
	uint32_t low = 0;
	uint32_t high = n_ends;

	/* nearly always the pair continues the longest sequence */
	if (n_ends == 0 || pairs->items[ends[n_ends - 1]].b < b)
		return n_ends;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (pairs->items[ends[middle]].b < b)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Keeps of the pairs the longest sequence that grows in b too. */
static int keep_longest(struct pairs *pairs)
{
	/* ends[k]: the pair with the smallest b that ends a sequence of k + 1 pairs */
	SBX_FREE uint32_t *ends = malloc(pairs->n * sizeof(*ends));
	SBX_FREE uint32_t *before = malloc(pairs->n * sizeof(*before));
	uint32_t n_ends = 0;

	if (!ends || !before)
		return -ENOMEM;
	for (uint32_t i = 0; i < pairs->n; i++) {
		uint32_t k = search(pairs, ends, n_ends, pairs->items[i].b);

		before[i] = k > 0 ? ends[k - 1] : UINT32_MAX;
		ends[k] = i;
		n_ends = SBX_MAX(n_ends, k + 1);
	}
	/* from the back; the array of ends is free to take the sequence */
	for (uint32_t k = n_ends, i = ends[n_ends - 1]; k-- > 0; i = before[i])
		ends[k] = i;
	for (uint32_t k = 0; k < n_ends; k++)
		pairs->items[k] = pairs->items[ends[k]];
	pairs->n = n_ends;
	return 0;
}

/* Takes equal lines off both ends of a box; notes what is left, or marks a one-sided rest. */
static int add_gap(struct diff_work *work, struct diff_box box, struct boxes *ret)
{
	const uint32_t *a = work->a_class;
	const uint32_t *b = work->b_class;

	while (box.a0 < box.a1 && box.b0 < box.b1 && a[box.a0] == b[box.b0]) {
		box.a0++;
		box.b0++;
	}
	while (box.a0 < box.a1 && box.b0 < box.b1 && a[box.a1 - 1] == b[box.b1 - 1]) {
		box.a1--;
		box.b1--;
	}
	if (box.a0 == box.a1 || box.b0 == box.b1) {
		diff_mark(work, &box);
		return 0;
	}
	return boxes_add(ret, &box);
}

static int find_gaps(struct diff_work *work, const struct diff_box *box,
	const struct pairs *anchors, struct boxes *ret)
{
	struct diff_box gap = *box;

	for (uint32_t i = 0; i < anchors->n; i++) {
		const struct pair *anchor = &anchors->items[i];
		int r = 0;

		gap.a1 = anchor->a;
		gap.b1 = anchor->b;
		if (gap.a0 < gap.a1 || gap.b0 < gap.b1)
			r = add_gap(work, gap, ret);
		if (r < 0)
			return r;
		gap.a0 = anchor->a + 1;
		gap.b0 = anchor->b + 1;
	}
	gap.a1 = box->a1;
	gap.b1 = box->b1;
	return add_gap(work, gap, ret);
}

/* The gaps between the anchors of a box. *ret_anchored is false when it has none. */
static int split_at_anchors(
	struct diff_work *work, const struct diff_box *box, struct boxes *ret, bool *ret_anchored)
{
	SBX_CLEANUP(pairs_done) struct pairs pairs = {0};
	int r;

	r = find_pairs(work, box, &pairs);
	if (r < 0)
		return r;
	*ret_anchored = pairs.n > 0;
	if (pairs.n == 0)
		return 0;
	r = keep_longest(&pairs);
	return r < 0 ? r : find_gaps(work, box, &pairs, ret);
}

/* The counts are those of box. */
static int anchor(struct diff_work *work, const struct diff_box *box, int depth)
{
	SBX_CLEANUP(boxes_done) struct boxes gaps = {0};
	bool anchored = false;
	int r = 0;

	if (depth < ANCHOR_DEPTH_MAX)
		r = split_at_anchors(work, box, &gaps, &anchored);
	if (r < 0)
		return r;
	if (!anchored)
		return diff_myers(work, box);
	for (size_t i = 0; r == 0 && i < gaps.n; i++) {
		diff_count(work, &gaps.items[i]);
		r = anchor(work, &gaps.items[i], depth + 1);
	}
	return r;
}

int diff_anchored(struct diff_work *work, const struct diff_box *box)
{
	return anchor(work, box, 0);
}
