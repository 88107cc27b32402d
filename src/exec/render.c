/* SPDX-License-Identifier: MIT */
#include "sbx/render.h"

#include <string.h>

#include "escape.h"

#define CUT_HEAD_MAX (SBX_RENDER_ROW_MAX / 4 * 3) /* of a cut row, what stays before the marker */
#define CUT_TAIL_MAX (SBX_RENDER_ROW_MAX - CUT_HEAD_MAX)
#define TAB_WIDTH    8
#define CELL_TAB     '\t'       /* where a tab starts */
#define CELL_TAB_PAD UINT32_MAX /* the columns that it jumped over */

void sbx_render_done(struct sbx_render *render)
{
	free(render->cells);
	*render = SBX_RENDER_INIT;
}

/* Makes the row n cells long at least, new ones filled with fill. */
static int grow(struct sbx_render *render, size_t n, uint32_t fill)
{
	if (n > render->capacity) {
		size_t capacity = SBX_MAX(n, SBX_MAX(render->capacity * 2, (size_t)256));
		uint32_t *cells = reallocarray(render->cells, capacity, sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		render->cells = cells;
		render->capacity = capacity;
	}
	while (render->n_cells < n)
		render->cells[render->n_cells++] = fill;
	return 0;
}

static int put(struct sbx_render *render, size_t *column, uint32_t code)
{
	int r;

	r = grow(render, *column, ' ');
	if (r >= 0 && *column == render->n_cells)
		r = grow(render, *column + 1, code);
	if (r < 0)
		return r;
	render->cells[(*column)++] = code;
	return 0;
}

/* A tab moves; only columns that nothing has reached yet become part of it. */
static int put_tab(struct sbx_render *render, size_t *column)
{
	size_t start = *column;
	int r;

	*column = start / TAB_WIDTH * TAB_WIDTH + TAB_WIDTH;
	if (start < render->n_cells)
		return grow(render, *column, ' ');
	r = grow(render, start, ' ');
	if (r >= 0)
		r = grow(render, *column, CELL_TAB_PAD);
	if (r < 0)
		return r;
	render->cells[start] = CELL_TAB;
	return 0;
}

/* CSI K: 0 erases from the cursor on, 1 up to it, 2 all. */
static void erase(struct sbx_render *render, size_t column, unsigned int what)
{
	if (what == 0) {
		render->n_cells = SBX_MIN(render->n_cells, column);
	} else if (what == 2) {
		render->n_cells = 0;
	} else if (what == 1) {
		for (size_t i = 0; i < render->n_cells && i <= column; i++)
			render->cells[i] = ' ';
	}
}

static void act(struct sbx_render *render, size_t *column, const struct escape *escape)
{
	size_t n = escape->number ? escape->number : 1; /* none and 0 mean 1, except for K */
	size_t rightmost = SBX_MAX(*column, (size_t)SBX_RENDER_MOVE_MAX);

	switch (escape->action) {
	case 'K':
		erase(render, *column, escape->number);
		break;
	case 'G':
		*column = SBX_MIN(n - 1, rightmost);
		break;
	case 'C':
		*column = SBX_MIN(*column + n, rightmost);
		break;
	case 'D':
		*column -= SBX_MIN(*column, n);
		break;
	default:
		break; /* dropped */
	}
}

/* One ASCII control character that is no ESC. */
static int put_control(struct sbx_render *render, size_t *column, unsigned char byte)
{
	switch (byte) {
	case '\r':
		*column = 0;
		return 0;
	case '\b':
		*column -= *column > 0;
		return 0;
	case '\t':
		return put_tab(render, column);
	default:
		return 0; /* dropped */
	}
}

/* Fills the cells from raw bytes. */
static int fill(struct sbx_render *render, const char *raw, size_t size, bool is_open)
{
	const unsigned char *p = (const unsigned char *)raw, *end = p + size;
	const unsigned char *hopeless[2] = {p, p};
	size_t column = 0;
	int r = 0;

	render->n_cells = 0;
	while (p < end && r >= 0) {
		struct character c = character_at(p, end);
		struct escape escape = {0};

		if (*p == 0x1b) {
			escape = escape_at(p, end);
			escape.complete = true; /* whatever it is, it is not text */
		} else if (*p >= 0x80 && *p <= 0x9f) {
			escape = escape_at_8bit(p, end, hopeless);
		}
		if (escape.complete) {
			act(render, &column, &escape);
			p = escape.end;
			continue;
		}
		if (c.code < 0x20 || c.code == 0x7f)
			r = put_control(render, &column, *p);
		else if ((c.code < 0x80 || c.code > 0x9f) && !(c.incomplete && is_open))
			r = put(render, &column, c.code);
		p += c.size;
	}
	return r;
}

static size_t encode(uint32_t code, char *out)
{
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)(leads[n] | code);
	return n;
}

/* Whether the tab at cell i still has all of its columns. */
static bool tab_is_whole(const struct sbx_render *render, size_t i)
{
	size_t end = i / TAB_WIDTH * TAB_WIDTH + TAB_WIDTH;

	if (end > render->n_cells)
		return false;
	while (++i < end)
		if (render->cells[i] != CELL_TAB_PAD)
			return false;
	return true;
}

/* Appends the cells as text. */
static int emit(const struct sbx_render *render, struct sbx_buf *out)
{
	int r = sbx_buf_reserve(out, render->n_cells * 4);

	if (r < 0)
		return r;
	for (size_t i = 0; i < render->n_cells; i++) {
		uint32_t code = render->cells[i];

		if (code == CELL_TAB && tab_is_whole(render, i))
			i = i / TAB_WIDTH * TAB_WIDTH + TAB_WIDTH - 1;
		else if (code == CELL_TAB || code == CELL_TAB_PAD)
			code = ' ';
		out->size += encode(code, out->data + out->size);
	}
	return 0;
}

/* Rows of printable ASCII and tabs, nearly all there are, come out as they went in. */
static bool is_plain(const char *raw, size_t size)
{
	bool plain = true;

	for (size_t i = 0; i < size; i++)
		plain &= (raw[i] >= 0x20 && raw[i] < 0x7f) | (raw[i] == '\t');
	return plain;
}

static int render_part(
	struct sbx_render *render, const char *raw, size_t size, bool is_open, struct sbx_buf *out)
{
	size_t without_cr = size && raw[size - 1] == '\r' ? size - 1 : size;
	int r;

	if (is_plain(raw, without_cr))
		return sbx_buf_append(out, raw, without_cr);
	r = fill(render, raw, size, is_open);
	return r < 0 ? r : emit(render, out);
}

/* Bytes of a character whose start is not there. */
static size_t n_continuation(const char *raw, size_t size)
{
	size_t n = 0;

	while (n < size && n < 3 && ((unsigned char)raw[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* The largest n <= max such that text[n] starts a character. */
static size_t cut_down(const char *text, size_t max)
{
	while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

/*
 * Shortens what out holds from start on, head and then tail of a row, to what a cut row may show,
 * and puts the marker between. total is what it says of the whole row.
 */
static int cut(struct sbx_buf *out, size_t start, size_t head_n, size_t tail_n, uint64_t total)
{
	SBX_BUF struct sbx_buf tail = SBX_BUF_INIT;
	size_t skip = 0;
	int r;

	if (head_n > CUT_HEAD_MAX)
		head_n = cut_down(out->data + start, CUT_HEAD_MAX);
	if (tail_n > CUT_TAIL_MAX) {
		skip = tail_n - CUT_TAIL_MAX;
		skip += n_continuation(out->data + out->size - CUT_TAIL_MAX, CUT_TAIL_MAX);
	}
	r = sbx_buf_append(&tail, out->data + out->size - tail_n + skip, tail_n - skip);
	if (r < 0)
		return r;
	out->size = start + head_n;
	r = sbx_buf_printf(out, "[row cut: %zu of %llu bytes shown]", head_n + tail.size,
		(unsigned long long)total);
	return r < 0 ? r : sbx_buf_append(out, tail.data, tail.size);
}

/* A row that was not read as a whole: its two ends, rendered apart. */
static int render_windows(struct sbx_render *render, const struct sbx_render_row *row,
	struct sbx_buf *out, uint64_t *ret_size)
{
	size_t start = out->size, skip = n_continuation(row->tail, row->tail_n), head_n;
	int r;

	r = render_part(render, row->head, row->head_n, true, out);
	if (r < 0)
		return r;
	head_n = out->size - start;
	r = render_part(
		render, row->tail + skip, row->tail_n - skip, row->flags & SBX_RENDER_OPEN, out);
	if (r < 0)
		return r;
	*ret_size = row->size;
	return cut(out, start, head_n, out->size - start - head_n, row->size);
}

static int render_whole(struct sbx_render *render, const struct sbx_render_row *row,
	struct sbx_buf *out, uint64_t *ret_size)
{
	size_t start = out->size, size;
	size_t skip =
		row->flags & SBX_RENDER_START_LOST ? n_continuation(row->head, row->head_n) : 0;
	bool is_open = row->flags & (SBX_RENDER_OPEN | SBX_RENDER_END_LOST);
	int r;

	r = render_part(render, row->head + skip, row->head_n - skip, is_open, out);
	if (r < 0)
		return r;
	size = out->size - start;
	*ret_size = size;
	if (size <= SBX_RENDER_ROW_MAX)
		return 0;
	return cut(out, start, size, size, size);
}

int sbx_render_row(struct sbx_render *render, const struct sbx_render_row *row, struct sbx_buf *out,
	uint64_t *ret_size)
{
	uint64_t size;
	int r = 0;

	if (row->flags & SBX_RENDER_START_LOST)
		r = sbx_buf_append_string(out, "[row cut: its start was not kept]");
	if (r >= 0)
		r = row->tail_n ? render_windows(render, row, out, &size)
				: render_whole(render, row, out, &size);
	if (r >= 0 && row->flags & SBX_RENDER_END_LOST)
		r = sbx_buf_append_string(out, "[row cut: its end was not kept]");
	if (r < 0)
		return r;
	if (ret_size)
		*ret_size = size;
	return 0;
}
