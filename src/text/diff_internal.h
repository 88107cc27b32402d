/* SPDX-License-Identifier: MIT */
/* The parts of a comparison, in the order in which sbx_diff() runs them. */
#ifndef SBX_TEXT_DIFF_INTERNAL_H
#define SBX_TEXT_DIFF_INTERNAL_H

#include "sbx/diff.h"

#define DIFF_CLASS_NONE UINT32_MAX /* a line of b that a does not have */

/* A part of both texts: lines [a0, a1) of a against [b0, b1) of b. */
struct diff_box {
	uint32_t a0, a1;
	uint32_t b0, b1;
};

/* How often the lines of a class occur in the box looked at. */
struct diff_count {
	uint32_t a;
	uint32_t b;
};

struct diff_work {
	const struct sbx_lines *a;
	const struct sbx_lines *b;
	uint32_t *a_class; /* equal lines have one number; filled for the classified box only */
	uint32_t *b_class;
	struct diff_count *counts; /* by class */
	uint32_t *place_in_b;      /* by class: scratch of the anchors */
	uint32_t n_classes;
	uint8_t *a_changed; /* one byte a line, then a 0 */
	uint8_t *b_changed;
	uint64_t cost; /* steps so far; at SBX_DIFF_COST_MAX the exact work ends */
};

static inline bool diff_is_over(const struct diff_work *work)
{
	return work->cost >= SBX_DIFF_COST_MAX;
}

void diff_mark(struct diff_work *work, const struct diff_box *box);

/* Numbers the lines of the box and counts them. -ENOMEM. */
int diff_classify(struct diff_work *work, const struct diff_box *box);
/* Counts again, for a smaller box. */
void diff_count(struct diff_work *work, const struct diff_box *box);

/* Marks the changed lines of a box, anchored by lines that occur once on both sides. -ENOMEM. */
int diff_anchored(struct diff_work *work, const struct diff_box *box);
/* The same by Myers' algorithm alone. The counts must be those of box, or of one around it. */
int diff_myers(struct diff_work *work, const struct diff_box *box);

/* Turns the marks into regions, each slid to its place. -ENOMEM. */
int diff_regions(struct diff_work *work, struct sbx_diff *ret);

#endif
