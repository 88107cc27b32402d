/* SPDX-License-Identifier: MIT */
/*
 * Finding rows. The start of row r is behind newline r (counted from 1). The marks tell in which
 * block that is, by binary search; the block is then scanned. With a hole, the marks before and
 * behind it are searched apart.
 */
#include <string.h>

#include "transcript_internal.h"

#define SCAN_STEP 512 /* bytes */

bool transcript_is_dropped(const struct sbx_transcript *t, uint64_t row)
{
	return t->hole.is_there && row > t->hole.a && row < t->hole.b;
}

uint64_t transcript_n_rows(const struct sbx_transcript *t)
{
	uint64_t n = t->n_newlines + t->header.lost_rows;

	return n + (t->header.lost_bytes ? t->header.lost_open != 0 : !t->ends_row);
}

/* The offset of newline nth (from 1) in data, which has that many; counting is faster than looking.
 */
static size_t nth_newline(const char *data, size_t size, uint64_t nth)
{
	const char *p = data, *end = data + size;

	while ((size_t)(end - p) > SCAN_STEP) {
		size_t n = transcript_count_newlines(p, SCAN_STEP);

		if (n >= nth)
			break;
		nth -= n;
		p += SCAN_STEP;
	}
	for (;; p++) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (--nth == 0)
			return (size_t)(p - data);
	}
}

/* Scans from block first on, which seen newlines precede, for newline nth. */
static int scan_for_newline(struct sbx_transcript *t, uint64_t first, uint64_t seen, uint64_t nth,
	uint64_t *ret, struct sbx_err *err)
{
	for (uint64_t at = first * TRANSCRIPT_BLOCK; at < t->size;) {
		size_t n = (size_t)SBX_MIN(t->size - at, (uint64_t)SBX_RENDER_WINDOW);
		size_t n_newlines;
		int r;

		r = transcript_pread(t->fd, t->scratch, n, at, TRANSCRIPT_NAME, err);
		if (r < 0)
			return r;
		n_newlines = transcript_count_newlines(t->scratch, n);
		if (seen + n_newlines >= nth) {
			*ret = at + nth_newline(t->scratch, n, nth - seen);
			return 0;
		}
		seen += n_newlines;
		at += n;
	}
	return sbx_err_set(err, EBADMSG, TRANSCRIPT_INDEX " counts more rows than there are");
}

/* The raw offset of newline nth (from 1), which is there and not in the hole. */
static int find_newline(struct sbx_transcript *t, uint64_t nth, uint64_t *ret, struct sbx_err *err)
{
	uint64_t low = 0, high = t->n_marks, seen;
	int r;

	if (t->hole.is_there && nth > t->hole.a)
		low = t->header.hole_end / TRANSCRIPT_BLOCK;
	else if (t->hole.is_there)
		high = t->header.hole_start / TRANSCRIPT_BLOCK;
	/* the last mark of [low, high] with fewer than nth newlines before it; low has */
	while (low < high) {
		uint64_t middle = high - (high - low) / 2;

		r = transcript_mark(t, middle, &seen, err);
		if (r < 0)
			return r;
		if (seen < nth)
			low = middle;
		else
			high = middle - 1;
	}
	r = transcript_mark(t, low, &seen, err);
	return r < 0 ? r : scan_for_newline(t, low, seen, nth, ret, err);
}

/* Where row starts, for a row some of whose bytes are there. */
static int find_start(struct sbx_transcript *t, uint64_t row, uint64_t *ret, struct sbx_err *err)
{
	uint64_t newline;
	int r;

	if (row == 0) {
		*ret = 0;
		return 0;
	}
	if (t->hole.is_there && row == t->hole.b && t->hole.b > t->hole.a) {
		*ret = t->header.hole_end;
		return 0;
	}
	r = find_newline(t, row, &newline, err);
	if (r >= 0)
		*ret = newline + 1;
	return r;
}

int transcript_row_offset(
	struct sbx_transcript *t, uint64_t row, uint64_t *ret, struct sbx_err *err)
{
	if (row > t->n_newlines) {
		*ret = t->size;
		return 0;
	}
	if (transcript_is_dropped(t, row)) {
		*ret = t->header.hole_end;
		return 0;
	}
	return find_start(t, row, ret, err);
}

int transcript_row_at(struct sbx_transcript *t, uint64_t at, uint64_t *ret_row, struct sbx_err *err)
{
	uint64_t k, seen, from;
	int r;

	at = SBX_MIN(at, t->size);
	if (at < t->header.hole_end && at > t->header.hole_start)
		at = t->header.hole_end;
	k = SBX_MIN(at / TRANSCRIPT_BLOCK, t->n_marks);
	r = transcript_mark(t, k, &seen, err);
	if (r < 0)
		return r;
	for (from = k * TRANSCRIPT_BLOCK; from < at;) {
		size_t n = (size_t)SBX_MIN(at - from, (uint64_t)SBX_RENDER_WINDOW);

		r = transcript_pread(t->fd, t->scratch, n, from, TRANSCRIPT_NAME, err);
		if (r < 0)
			return r;
		seen += transcript_count_newlines(t->scratch, n);
		from += n;
	}
	*ret_row = at ? seen + 1 : 0;
	return 0;
}

/* Reads so that the buffer starts at raw offset at, or has at and n bytes behind it already. */
static int fill_buffer(struct sbx_transcript *t, uint64_t at, uint64_t n, struct sbx_err *err)
{
	uint64_t end = at < t->header.hole_start ? t->header.hole_start : t->size;
	int r;

	n = SBX_MIN(n, end - at);
	if (at >= t->buffer_at && at + n <= t->buffer_at + t->buffer_n)
		return 0;
	t->buffer_n = 0;
	n = SBX_MIN(end - at, (uint64_t)TRANSCRIPT_BUFFER);
	r = transcript_pread(t->fd, t->buffer, (size_t)n, at, TRANSCRIPT_NAME, err);
	if (r < 0)
		return r;
	t->buffer_at = at;
	t->buffer_n = (size_t)n;
	return 0;
}

/* What the row that starts at raw offset at is: where it ends, and what of it is not there. */
struct extent {
	uint64_t end; /* raw offset: its newline, the start of the hole, or the end of the file */
	bool complete;
	enum sbx_render_flags lost;
};

static int find_end_by_marks(
	struct sbx_transcript *t, uint64_t row, struct extent *ret, struct sbx_err *err)
{
	ret->complete = row < t->n_newlines;
	ret->end = t->size;
	return ret->complete ? find_newline(t, row + 1, &ret->end, err) : 0;
}

static int find_end(struct sbx_transcript *t, uint64_t row, uint64_t at, struct extent *ret,
	struct sbx_err *err)
{
	const char *from, *newline;
	size_t n;
	int r;

	if (t->hole.is_there && row == t->hole.a && at <= t->header.hole_start) {
		if (t->hole.b == t->hole.a)
			return find_end_by_marks(t, row, ret, err);
		*ret = (struct extent){t->header.hole_start, true, SBX_RENDER_END_LOST};
		return 0;
	}
	r = fill_buffer(t, at, 1, err);
	for (int i = 0; r >= 0 && i < 2; i++) {
		from = t->buffer + (at - t->buffer_at);
		n = t->buffer_n - (size_t)(at - t->buffer_at);
		newline = memchr(from, '\n', n);
		if (newline) {
			ret->end = at + (uint64_t)(newline - from);
			ret->complete = true;
			return 0;
		}
		r = fill_buffer(t, at, TRANSCRIPT_BUFFER, err);
	}
	return r < 0 ? r : find_end_by_marks(t, row, ret, err);
}

/* Puts the bytes of a row into ret: all, or its two ends when it is long. */
static int load_row(struct sbx_transcript *t, uint64_t at, const struct extent *extent,
	struct sbx_render_row *ret, struct sbx_err *err)
{
	uint64_t hole_start = t->header.hole_start, hole_end = t->header.hole_end;
	uint64_t head_n = extent->end - at, tail_n = 0;
	bool spans_hole = at <= hole_start && extent->end >= hole_end && hole_end > hole_start;
	int r;

	if (spans_hole || head_n > SBX_RENDER_RAW_MAX) {
		head_n = SBX_MIN(head_n, (uint64_t)SBX_RENDER_WINDOW);
		tail_n = head_n;
	}
	if (spans_hole) {
		head_n = SBX_MIN(head_n, hole_start - at);
		tail_n = SBX_MIN(tail_n, extent->end - hole_end);
	}
	r = head_n ? fill_buffer(t, at, head_n, err) : 0;
	if (r >= 0)
		r = transcript_pread(t->fd, t->scratch, (size_t)tail_n, extent->end - tail_n,
			TRANSCRIPT_NAME, err);
	if (r < 0)
		return r;
	*ret = (struct sbx_render_row){
		.head = head_n ? t->buffer + (at - t->buffer_at) : "",
		.head_n = (size_t)head_n,
		.tail = t->scratch,
		.tail_n = (size_t)tail_n,
		.size = extent->end - at,
		.flags = extent->lost,
	};
	if (spans_hole && tail_n == 0)
		ret->flags |= SBX_RENDER_END_LOST;
	return 0;
}

/* A row that has bytes in the file. */
static int next_stored(struct sbx_transcript *t, struct transcript_cursor *cursor,
	struct transcript_row *ret, struct sbx_err *err)
{
	struct extent extent = {0};
	uint64_t at = cursor->at;
	int r = 0;

	if (!cursor->is_located)
		r = find_start(t, cursor->row, &at, err);
	if (r >= 0)
		r = find_end(t, cursor->row, at, &extent, err);
	if (r < 0)
		return r;
	if (t->hole.is_there && at == t->header.hole_end && t->hole.b > t->hole.a &&
		!t->header.hole_ends_row)
		extent.lost |= SBX_RENDER_START_LOST;
	if (!extent.complete && t->header.lost_bytes) {
		extent.lost |= SBX_RENDER_END_LOST;
		extent.complete = t->header.lost_rows > 0;
	}
	r = load_row(t, at, &extent, &ret->raw, err);
	if (r < 0)
		return r;
	ret->text = NULL;
	ret->complete = extent.complete;
	cursor->at = extent.end + 1;
	cursor->is_located = !extent.lost;
	cursor->row++;
	return 0;
}

static void next_missing(struct sbx_transcript *t, struct transcript_cursor *cursor,
	const char *text, struct transcript_row *ret)
{
	*ret = (struct transcript_row){.text = text, .complete = true};
	cursor->row++;
	cursor->is_located = false;
	if (cursor->row == transcript_n_rows(t) && t->header.lost_bytes)
		ret->complete = !t->header.lost_open;
}

int transcript_next(struct sbx_transcript *t, struct transcript_cursor *cursor,
	struct transcript_row *ret, struct sbx_err *err)
{
	if (cursor->row > t->n_newlines || (cursor->row == t->n_newlines && t->ends_row))
		next_missing(t, cursor, SBX_TRANSCRIPT_ROW_LOST, ret);
	else if (transcript_is_dropped(t, cursor->row))
		next_missing(t, cursor, SBX_TRANSCRIPT_ROW_DROPPED, ret);
	else
		return next_stored(t, cursor, ret, err);
	return 0;
}
