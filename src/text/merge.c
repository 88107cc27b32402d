/* SPDX-License-Identifier: MIT */
#include "merge_internal.h"

#include <string.h>

#define MARKER_SIZE 7 /* what every tool that resolves conflicts looks for */

static int append_span(const struct merge_work *work, const struct merge_piece *piece,
	enum merge_side side, struct sbx_buf *out)
{
	const struct sbx_lines *lines = &work->lines[side];
	const struct merge_span *span = &piece->spans[side];
	uint32_t start = lines->offsets[span->start];

	return sbx_buf_append(
		out, lines->data + start, lines->offsets[span->start + span->count] - start);
}

static int write_merged(const struct merge_work *work, struct sbx_merge *merge)
{
	int r = sbx_buf_reserve(&merge->merged, work->lines[MERGE_OURS].size);

	merge->clean = true;
	for (size_t i = 0; r == 0 && i < work->n_pieces; i++)
		r = append_span(work, &work->pieces[i], work->pieces[i].from, &merge->merged);
	return r;
}

static struct sbx_merge_range range_of(const struct merge_piece *piece, enum merge_side side)
{
	return (struct sbx_merge_range){
		.start = piece->spans[side].start + 1,
		.count = piece->spans[side].count,
	};
}

static int list_conflicts(const struct merge_work *work, size_t n, struct sbx_merge *merge)
{
	merge->conflicts = calloc(n, sizeof(*merge->conflicts));
	if (!merge->conflicts)
		return -ENOMEM;
	for (size_t i = 0; i < work->n_pieces; i++) {
		const struct merge_piece *piece = &work->pieces[i];

		if (!piece->conflict)
			continue;
		merge->conflicts[merge->n_conflicts++] = (struct sbx_merge_conflict){
			.base = range_of(piece, MERGE_BASE),
			.ours = range_of(piece, MERGE_OURS),
			.theirs = range_of(piece, MERGE_THEIRS),
		};
	}
	return 0;
}

int sbx_merge(const struct sbx_merge_text *base, const struct sbx_merge_text *ours,
	const struct sbx_merge_text *theirs, struct sbx_merge *ret, struct sbx_err *err)
{
	SBX_CLEANUP(merge_work_done) struct merge_work work = {0};
	SBX_MERGE struct sbx_merge merge = SBX_MERGE_INIT;
	size_t n_conflicts = 0;
	int r;

	r = merge_work_init(&work, base, ours, theirs, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < work.n_pieces; i++)
		n_conflicts += work.pieces[i].conflict;
	r = n_conflicts ? list_conflicts(&work, n_conflicts, &merge) : write_merged(&work, &merge);
	if (r < 0)
		return sbx_err_set(err, -r, "write a merged text: %m");
	*ret = merge;
	merge = SBX_MERGE_INIT;
	return 0;
}

void sbx_merge_done(struct sbx_merge *merge)
{
	sbx_buf_done(&merge->merged);
	sbx_free_pointer(&merge->conflicts);
	merge->n_conflicts = 0;
}

/* How lines end around a conflict: as the first line that one of the versions has in it. */
static const char *line_end(const struct merge_work *work, const struct merge_piece *piece)
{
	static const enum merge_side order[] = {MERGE_OURS, MERGE_THEIRS, MERGE_BASE};

	for (size_t i = 0; i < SBX_N_ELEMENTS(order); i++) {
		const struct sbx_lines *lines = &work->lines[order[i]];
		uint32_t line = piece->spans[order[i]].start;
		size_t size;

		if (piece->spans[order[i]].count == 0)
			continue;
		size = sbx_line_size(lines, line);
		if (size >= 2 && !memcmp(sbx_line_data(lines, line) + size - 2, "\r\n", 2))
			return "\r\n";
		return "\n";
	}
	return "\n";
}

static int append_marker(
	struct sbx_buf *out, size_t out_start, char c, const char *label, const char *end)
{
	char marker[MARKER_SIZE];
	int r = 0;

	memset(marker, c, sizeof(marker));
	if (out->size > out_start && out->data[out->size - 1] != '\n')
		r = sbx_buf_append_string(out, end);
	if (r == 0)
		r = sbx_buf_append(out, marker, sizeof(marker));
	if (r == 0 && label)
		r = sbx_buf_append_string(out, " ");
	if (r == 0 && label)
		r = sbx_buf_append_string(out, label);
	return r < 0 ? r : sbx_buf_append_string(out, end);
}

static int append_conflict(const struct merge_work *work, const struct merge_piece *piece,
	const char *const labels[MERGE_N_SIDES], size_t out_start, struct sbx_buf *out)
{
	static const struct {
		enum merge_side side;
		char marker;
	} parts[] = {
		/* in the order in which readers of such files expect them */
		{MERGE_OURS, '<'},
		{MERGE_BASE, '|'},
		{MERGE_THEIRS, '='},
	};
	const char *end = line_end(work, piece);
	int r = 0;

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(parts); i++) {
		bool separator = parts[i].side == MERGE_THEIRS; /* their label comes at the end */

		r = append_marker(out, out_start, parts[i].marker,
			separator ? NULL : labels[parts[i].side], end);
		if (r == 0)
			r = append_span(work, piece, parts[i].side, out);
	}
	return r < 0 ? r : append_marker(out, out_start, '>', labels[MERGE_THEIRS], end);
}

int sbx_merge_markers(const struct sbx_merge_text *base, const struct sbx_merge_text *ours,
	const struct sbx_merge_text *theirs, struct sbx_buf *out, struct sbx_err *err)
{
	SBX_CLEANUP(merge_work_done) struct merge_work work = {0};
	const char *const labels[MERGE_N_SIDES] = {base->label, ours->label, theirs->label};
	size_t out_start = out->size;
	int r;

	r = merge_work_init(&work, base, ours, theirs, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < work.n_pieces; i++) {
		const struct merge_piece *piece = &work.pieces[i];

		r = piece->conflict ? append_conflict(&work, piece, labels, out_start, out)
				    : append_span(&work, piece, piece->from, out);
	}
	return r < 0 ? sbx_err_set(err, -r, "write a merged text: %m") : 0;
}
