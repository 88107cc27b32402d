/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "transcript_internal.h"

#define OMITTED_ROOM   128 /* bytes for the row that names the omitted ones */
#define YIELD_HEAD_MAX ((SBX_TRANSCRIPT_YIELD_MAX - OMITTED_ROOM) / 2)

/* What a walk over rows may take, and what it took. */
struct walk {
	struct sbx_transcript *t;
	enum sbx_transcript_window_flags flags;
	struct transcript_cursor cursor; /* the first row, then the one after the last */
	uint64_t end;                    /* row to stop before */
	size_t max_bytes;                /* of output, but one row at least */
	struct sbx_buf *out;
	uint64_t n_raw;   /* raw bytes passed */
	uint64_t n_bytes; /* rendered, uncut */
	bool partial;     /* the last row has no newline */
};

struct passed {
	uint64_t n_bytes;
	uint64_t n_raw;
	bool complete;
};

/* Appends the row at the cursor. */
static int append_row(struct walk *walk, struct passed *ret, struct sbx_err *err)
{
	struct transcript_row row;
	uint64_t size;
	int r;

	r = transcript_next(walk->t, &walk->cursor, &row, err);
	if (r < 0)
		return r;
	if (row.text) {
		size = strlen(row.text);
		r = sbx_buf_append(walk->out, row.text, size);
	} else {
		if (!row.complete && !(walk->flags & SBX_TRANSCRIPT_CLOSED))
			row.raw.flags |= SBX_RENDER_OPEN;
		r = sbx_render_row(&walk->t->render, &row.raw, walk->out, &size);
	}
	if (r >= 0 && row.complete)
		r = sbx_buf_append(walk->out, "\n", 1);
	if (r < 0)
		return sbx_err_set(err, -r, "render a row: %m");
	*ret = (struct passed){
		.n_bytes = size + row.complete,
		.n_raw = 1 + (row.text ? 0 : SBX_MIN(row.raw.size, (uint64_t)SBX_RENDER_RAW_MAX)),
		.complete = row.complete,
	};
	return 0;
}

/* Appends rows until one of the limits is reached. */
static int walk_rows(struct walk *walk, struct sbx_err *err)
{
	size_t base = walk->out->size;
	bool any = false;

	while (walk->cursor.row < walk->end && walk->n_raw < SBX_TRANSCRIPT_SCAN_MAX) {
		struct transcript_cursor before = walk->cursor;
		size_t size = walk->out->size;
		struct passed passed = {0};
		int r;

		r = append_row(walk, &passed, err);
		if (r < 0)
			return r;
		if (any && walk->out->size - base > walk->max_bytes) {
			walk->out->size = size;
			walk->cursor = before;
			break;
		}
		any = true;
		walk->n_bytes += passed.n_bytes;
		walk->n_raw += passed.n_raw;
		walk->partial = !passed.complete;
	}
	return 0;
}

/* What a caller asked for, and what it gets. */
struct request {
	struct sbx_transcript *t;
	uint64_t start;
	uint64_t max_rows;
	size_t max_bytes;
	enum sbx_transcript_window_flags flags;
	struct sbx_buf *out;
	struct sbx_transcript_window *ret;
};

static int produce_window(const struct request *request, struct sbx_err *err)
{
	uint64_t n_rows = transcript_n_rows(request->t);
	uint64_t max_rows =
		SBX_MIN(SBX_MAX(request->max_rows, UINT64_C(1)), (uint64_t)SBX_TRANSCRIPT_ROWS_MAX);
	struct walk walk = {
		.t = request->t,
		.flags = request->flags,
		.cursor.row = request->start,
		.end = n_rows,
		.max_bytes = request->max_bytes,
		.out = request->out,
	};
	int r;

	if (request->start < n_rows)
		walk.end = request->start + SBX_MIN(max_rows, n_rows - request->start);
	r = walk_rows(&walk, err);
	if (r < 0)
		return r;
	*request->ret = (struct sbx_transcript_window){
		request->start, walk.cursor.row, n_rows, walk.n_bytes, walk.partial};
	return 0;
}

/* Drops whole rows from the front of tail until it fits; their number. */
static uint64_t drop_front(struct sbx_buf *tail, size_t max)
{
	uint64_t n = 0;
	size_t at = 0;

	while (tail->size - at > max) {
		const char *newline = memchr(tail->data + at, '\n', tail->size - at);

		if (!newline || newline + 1 == tail->data + tail->size)
			break; /* the last row is always shown */
		at = (size_t)(newline + 1 - tail->data);
		n++;
	}
	sbx_buf_consume(tail, at);
	return n;
}

/*
 * A row far enough back for its and all later rows to give max bytes, as a rule; how many a row
 * gives is not known before it is rendered.
 */
static int find_tail(struct sbx_transcript *t, size_t max, uint64_t *ret_row, struct sbx_err *err)
{
	uint64_t n_rows = transcript_n_rows(t), n_missing = max / sizeof(SBX_TRANSCRIPT_ROW_LOST);

	if (t->header.lost_bytes) {
		*ret_row = SBX_MAX(t->n_newlines, n_rows - SBX_MIN(n_rows, n_missing));
		return 0;
	}
	return transcript_row_at(t, t->size - SBX_MIN(t->size, 2 * (uint64_t)max), ret_row, err);
}

/*
 * Renders into tail the rows behind the head's, or only the last of them when they are too many to
 * render all. ret_row is the first of what is in tail, ret_n_bytes the size of all behind the head.
 */
static int render_tail(const struct walk *head, size_t max, struct sbx_buf *tail, uint64_t *ret_row,
	uint64_t *ret_n_bytes, bool *ret_partial, struct sbx_err *err)
{
	struct sbx_transcript *t = head->t;
	struct walk walk = {
		.t = t,
		.flags = head->flags,
		.end = transcript_n_rows(t),
		.max_bytes = SIZE_MAX,
		.out = tail,
	};
	uint64_t at, n_raw, row = head->cursor.row;
	bool too_many;
	int r;

	r = transcript_row_offset(t, row, &at, err);
	if (r < 0)
		return r;
	n_raw = t->size - at + t->header.lost_bytes;
	too_many = n_raw > SBX_TRANSCRIPT_COUNT_MAX || t->header.lost_bytes;
	if (too_many) {
		r = find_tail(t, max, &row, err);
		if (r < 0)
			return r;
		row = SBX_MIN(SBX_MAX(row, head->cursor.row), walk.end - 1);
	}
	walk.cursor.row = row;
	r = walk_rows(&walk, err);
	if (r < 0)
		return r;
	*ret_row = row + drop_front(tail, max);
	*ret_n_bytes = too_many ? n_raw : walk.n_bytes;
	*ret_partial = walk.partial;
	return 0;
}

/*
 * Appends the last rows behind the head's, at most max bytes of them, and before them a row that
 * names those left out.
 */
static int append_tail(struct walk *head, size_t max, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf tail = SBX_BUF_INIT;
	unsigned long long first = head->cursor.row;
	uint64_t row = 0, n_bytes = 0;
	int r;

	r = render_tail(head, max, &tail, &row, &n_bytes, &head->partial, err);
	if (r < 0)
		return r;
	if (row > first)
		r = sbx_buf_printf(head->out,
			"[rows %llu..%llu omitted; read_command_lines start_offset=%llu]\n", first,
			(unsigned long long)row - 1, first);
	if (r >= 0)
		r = sbx_buf_append(head->out, tail.data, tail.size);
	if (r < 0)
		return sbx_err_set(err, -r, "render rows: %m");
	head->n_bytes += n_bytes;
	return 0;
}

/* The first dropped row from start on, or n_rows: a yield has no use for them one by one. */
static uint64_t first_dropped(const struct sbx_transcript *t, uint64_t start, uint64_t n_rows)
{
	uint64_t row = SBX_MAX(start, t->hole.a + 1);

	return transcript_is_dropped(t, row) ? row : n_rows;
}

static int produce_yield(const struct request *request, struct sbx_err *err)
{
	uint64_t n_rows = transcript_n_rows(request->t);
	size_t base = request->out->size, head_size;
	struct walk walk = {
		.t = request->t,
		.flags = request->flags,
		.cursor.row = request->start,
		.end = first_dropped(request->t, request->start, n_rows),
		.max_bytes = YIELD_HEAD_MAX,
		.out = request->out,
	};
	struct walk head;
	int r;

	r = walk_rows(&walk, err);
	head = walk;
	head_size = request->out->size;
	walk.max_bytes = base + SBX_TRANSCRIPT_YIELD_MAX - request->out->size;
	if (r >= 0)
		r = walk_rows(&walk, err);
	if (r >= 0 && walk.cursor.row < n_rows) {
		/* not all of it fits: back to the first half, and then the last rows */
		request->out->size = head_size;
		walk = head;
		r = append_tail(&walk,
			base + SBX_TRANSCRIPT_YIELD_MAX - OMITTED_ROOM - request->out->size, err);
	}
	if (r < 0)
		return r;
	*request->ret = (struct sbx_transcript_window){request->start,
		SBX_MAX(request->start, n_rows), n_rows, walk.n_bytes, walk.partial};
	return 0;
}

/*
 * Runs produce on a state of the files that holds still meanwhile. A writer in another process may
 * drop what is being read; then the hole is another one afterwards, and it starts anew.
 */
static int produce_stable(const struct request *request,
	int (*produce)(const struct request *request, struct sbx_err *err), struct sbx_err *err)
{
	struct sbx_transcript *t = request->t;
	size_t base = request->out->size;

	if (t->is_writer)
		return produce(request, err);
	for (int i = 0; i < TRANSCRIPT_TRIES; i++) {
		uint64_t hole_end;
		int r, produced;

		r = transcript_load(t, err);
		if (r < 0)
			return r;
		hole_end = t->header.hole_end;
		produced = produce(request, err);
		r = transcript_load_header(t, produced < 0 ? NULL : err);
		if (r < 0 || t->header.hole_end == hole_end)
			return r < 0 ? r : produced;
		request->out->size = base;
		t->buffer_n = 0;
	}
	return sbx_err_kind(err, SBX_KIND_BUSY, EBUSY,
		"the transcript is being cut faster than it can be read; try again");
}

int sbx_transcript_window(struct sbx_transcript *t, uint64_t start, uint64_t max_rows,
	size_t max_bytes, enum sbx_transcript_window_flags flags, struct sbx_buf *out,
	struct sbx_transcript_window *ret, struct sbx_err *err)
{
	struct request request = {t, start, max_rows, max_bytes, flags, out, ret};

	return produce_stable(&request, produce_window, err);
}

int sbx_transcript_yield(struct sbx_transcript *t, uint64_t start,
	enum sbx_transcript_window_flags flags, struct sbx_buf *out,
	struct sbx_transcript_window *ret, struct sbx_err *err)
{
	struct request request = {t, start, 0, 0, flags, out, ret};

	return produce_stable(&request, produce_yield, err);
}
