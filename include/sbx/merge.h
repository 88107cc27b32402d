/* SPDX-License-Identifier: MIT */
/*
 * Three-way merge by lines. Where git merge-file is clean, this is clean with the same bytes.
 * Beyond that, edits of different base lines merge although the lines are neighbours, which git
 * calls a conflict. It is never clean where a line that a side wrote would be missing from the
 * result: a deletion against an addition at or in the deleted lines, and two different additions
 * at one point, are conflicts. Neighbours are no conflict unless both became more lines than they
 * were, or one did and the other was deleted: the added lines could belong between or to both.
 */
#ifndef SBX_MERGE_H
#define SBX_MERGE_H

#include "sbx/buf.h"
#include "sbx/err.h"

/* One version of the text. Borrowed. data may be NULL when size is 0. */
struct sbx_merge_text {
	const void *data;
	size_t size;
	const char *label; /* for markers, may be NULL */
};

/* A part of one version. start counts from 1; with count 0 it is the line before which it lies. */
struct sbx_merge_range {
	uint32_t start;
	uint32_t count;
};

/* What ours and theirs did differently to one part of base. */
struct sbx_merge_conflict {
	struct sbx_merge_range base;
	struct sbx_merge_range ours;
	struct sbx_merge_range theirs;
};

struct sbx_merge {
	bool clean;
	struct sbx_buf merged;                /* when clean, exactly the file's bytes */
	struct sbx_merge_conflict *conflicts; /* else at least one, in order */
	size_t n_conflicts;
};

/*
 * Merges what ours and theirs did to base. A conflict is a result (*ret with clean false), not a
 * failure. -EFBIG for texts over the limits of sbx/lines.h, -ENOMEM. Binary contents are the
 * caller's to keep out: see sbx_text_is_binary().
 */
int sbx_merge(const struct sbx_merge_text *base, const struct sbx_merge_text *ours,
	const struct sbx_merge_text *theirs, struct sbx_merge *ret, struct sbx_err *err);
void sbx_merge_done(struct sbx_merge *merge);
#define SBX_MERGE      SBX_CLEANUP(sbx_merge_done)
#define SBX_MERGE_INIT ((struct sbx_merge){0})

/*
 * Appends the merged text with each conflict between markers, base included (as git's diff3
 * style), for people to resolve. Every marker starts a line, ends as the lines around it end (LF
 * or CRLF), and has the label of its version. Errors as sbx_merge().
 */
int sbx_merge_markers(const struct sbx_merge_text *base, const struct sbx_merge_text *ours,
	const struct sbx_merge_text *theirs, struct sbx_buf *out, struct sbx_err *err);

#endif
