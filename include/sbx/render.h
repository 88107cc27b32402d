/* SPDX-License-Identifier: MIT */
/*
 * One row of a terminal's output as clean UTF-8 text. A row is what stands between two newlines,
 * and it is rendered from its own bytes alone: no state is carried from row to row.
 *
 * What a row shows is what a very wide terminal would show in that line, one cell per code point:
 *   - '\r' goes back to column 0, '\b' one column left; what is printed then overwrites;
 *   - a tab goes to the next multiple of 8. It stays a tab character where it is the first to reach
 *     these columns and nothing overwrites them; otherwise what is left of it shows as blanks;
 *   - of the escape sequences those that act inside a line do so: CSI K (erase to the end, the
 *     start, or all of the line), CSI G, C and D (go to, right, left; not right of column
 *     SBX_RENDER_MOVE_MAX). All others are dropped: CSI with private or intermediate bytes,
 *     OSC (ended by BEL or ST), DCS, APC, PM and SOS (ended by ST), two-byte and charset ones. A
 *     sequence also ends, dropped, where the row does;
 *   - 8-bit CSI, OSC, DCS, APC, PM and SOS (bytes 0x90 to 0x9f outside of UTF-8) count as such only
 *     when they are complete within the row; otherwise they are invalid bytes like others;
 *   - other control characters, NUL, BEL, DEL and U+0080 to U+009F are dropped;
 *   - bytes that are not UTF-8 become U+FFFD, one for each maximal part of a sequence.
 */
#ifndef SBX_RENDER_H
#define SBX_RENDER_H

#include "sbx/buf.h"

#define SBX_RENDER_RAW_MAX    (64 << 10) /* raw bytes of a row that is rendered as a whole */
#define SBX_RENDER_WINDOW     (SBX_RENDER_RAW_MAX / 2) /* of a longer row: its first and last bytes */
#define SBX_RENDER_ROW_MAX    (16 << 10) /* bytes of a rendered row, but for its markers */
#define SBX_RENDER_MARKER_MAX 128        /* bytes of all its markers together */
#define SBX_RENDER_MOVE_MAX   4096       /* columns */

/* The cells of the row at work, kept between rows: at most 3 MiB. */
struct sbx_render {
	uint32_t *cells;
	size_t n_cells;
	size_t capacity;
};

#define SBX_RENDER_INIT ((struct sbx_render){0})
void sbx_render_done(struct sbx_render *render);

enum sbx_render_flags {
	/* more bytes of the row may come: an incomplete character at its end is withheld */
	SBX_RENDER_OPEN = 1 << 0,
	/* bytes before the first are gone for good: "[row cut: its start was not kept]" */
	SBX_RENDER_START_LOST = 1 << 1,
	/* bytes after the last are gone for good: "[row cut: its end was not kept]" */
	SBX_RENDER_END_LOST = 1 << 2,
};

/*
 * A raw row, without its newline. A row of up to SBX_RENDER_RAW_MAX bytes stands whole in head, and
 * tail is empty. Of a longer one, head has the first and tail the last bytes, each at most
 * SBX_RENDER_WINDOW; they are rendered apart, and size is what the whole row has.
 */
struct sbx_render_row {
	const char *head;
	size_t head_n;
	const char *tail;
	size_t tail_n;
	uint64_t size;
	enum sbx_render_flags flags;
};

/*
 * Appends the rendered row to out, without a newline. Of a row that is too long its first and last
 * text is kept, with "[row cut: N of M bytes shown]" between (M counts rendered bytes, or raw ones
 * when the row was not rendered as a whole). ret_size, if not NULL, is the size without that cut.
 * 0 or -ENOMEM.
 */
int sbx_render_row(struct sbx_render *render, const struct sbx_render_row *row, struct sbx_buf *out,
	uint64_t *ret_size);

#endif
