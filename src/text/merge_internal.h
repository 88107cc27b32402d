/* SPDX-License-Identifier: MIT */
/* A merge as a list of pieces, before it is written as bytes, conflicts or markers. */
#ifndef SBX_TEXT_MERGE_INTERNAL_H
#define SBX_TEXT_MERGE_INTERNAL_H

#include "sbx/diff.h"
#include "sbx/merge.h"

enum merge_side {
	MERGE_BASE,
	MERGE_OURS,
	MERGE_THEIRS,
	MERGE_N_SIDES,
};

/* Lines [start, start + count), counted from 0. */
struct merge_span {
	uint32_t start;
	uint32_t count;
};

/* One stretch of the result. from says whose lines it takes when it is no conflict. */
struct merge_piece {
	bool conflict;
	enum merge_side from;
	struct merge_span spans[MERGE_N_SIDES];
};

struct merge_work {
	struct sbx_lines lines[MERGE_N_SIDES];
	struct sbx_diff diffs[MERGE_N_SIDES]; /* of base against the side; that of base is empty */
	struct merge_piece *pieces;           /* they tile each of the three texts */
	size_t n_pieces;
	size_t capacity;
};

int merge_work_init(struct merge_work *work, const struct sbx_merge_text *base,
	const struct sbx_merge_text *ours, const struct sbx_merge_text *theirs,
	struct sbx_err *err);
void merge_work_done(struct merge_work *work);

#endif
