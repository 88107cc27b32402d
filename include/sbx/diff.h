/* SPDX-License-Identifier: MIT */
/*
 * What lies between two texts, as a list of changed regions. Lines that occur once on both sides
 * anchor the comparison, Myers' O(ND) algorithm works between the anchors. Deterministic; memory
 * grows with the number of lines, time with lines times changes up to SBX_DIFF_COST_MAX, beyond
 * which the rest is called changed as a whole: coarser, never wrong.
 */
#ifndef SBX_DIFF_H
#define SBX_DIFF_H

#include "sbx/buf.h"
#include "sbx/lines.h"

/* Steps (a pair of lines looked at) of one comparison: about a second on a machine of today. */
#define SBX_DIFF_COST_MAX (UINT64_C(1) << 28)

enum sbx_diff_flags {
	/*
	 * No anchors: the same regions that git's default algorithm finds, by which merges are
	 * measured.
	 */
	SBX_DIFF_PLAIN = 1 << 0,
};

/*
 * Lines [a_start, a_start + a_count) of a became [b_start, b_start + b_count) of b, counted from
 * 0. At least one of the counts is not 0, and between two regions lies at least one equal line.
 */
struct sbx_diff_region {
	uint32_t a_start;
	uint32_t a_count;
	uint32_t b_start;
	uint32_t b_count;
};

struct sbx_diff {
	struct sbx_diff_region *regions; /* in order */
	size_t n_regions;
	bool coarse; /* SBX_DIFF_COST_MAX was reached */
};

/*
 * Compares a with b; both were split with the same flags, which decide what equal means. A region
 * that could lie at several places (one of several equal lines was added or removed) lies at the
 * last of them, or beside a change of the other text if there is one.
 * -ENOMEM is the only failure.
 */
int sbx_diff(const struct sbx_lines *a, const struct sbx_lines *b, enum sbx_diff_flags flags,
	struct sbx_diff *ret, struct sbx_err *err);
void sbx_diff_done(struct sbx_diff *diff);
#define SBX_DIFF      SBX_CLEANUP(sbx_diff_done)
#define SBX_DIFF_INIT ((struct sbx_diff){0})

/*
 * Appends a unified diff that patch and git apply accept, or nothing when a equals b. The names go
 * into the header as given (with their "a/" and "b/"), quoted as git does when they hold control
 * characters, quotes or backslashes; NULL stands for /dev/null. context is in lines.
 */
int sbx_diff_unified(const struct sbx_lines *a, const struct sbx_lines *b, const char *a_name,
	const char *b_name, uint32_t context, struct sbx_buf *out, struct sbx_err *err);

#endif
