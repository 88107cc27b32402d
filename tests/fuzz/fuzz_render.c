/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as one row: what comes out is valid UTF-8 without control characters, bounded, stays
 * as it is when it is rendered again, and a row that is still open shows a beginning of it.
 */
#include <assert.h>
#include <string.h>

#include "sbx/json.h"
#include "sbx/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t render(
	const void *data, size_t size, enum sbx_render_flags flags, struct sbx_buf *out)
{
	SBX_CLEANUP(sbx_render_done) struct sbx_render cells = SBX_RENDER_INIT;
	struct sbx_render_row row = {.head = data, .head_n = size, .size = size, .flags = flags};
	uint64_t n;

	if (size > SBX_RENDER_RAW_MAX) {
		row.head_n = row.tail_n = SBX_RENDER_WINDOW;
		row.tail = row.head + size - SBX_RENDER_WINDOW;
	}
	assert(sbx_buf_append(out, "", 0) == 0);
	assert(sbx_render_row(&cells, &row, out, &n) == 0);
	return n;
}

static void check_text(const struct sbx_buf *text)
{
	assert(text->size <= SBX_RENDER_ROW_MAX + SBX_RENDER_MARKER_MAX);
	assert(sbx_utf8_valid(text->data, text->size));
	for (size_t i = 0; i < text->size; i++) {
		unsigned char c = (unsigned char)text->data[i];

		assert((c >= 0x20 && c != 0x7f) || c == '\t');
		assert(c != 0xc2 || (unsigned char)text->data[i + 1] >= 0xa0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBX_BUF struct sbx_buf closed = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf open = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf again = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf rest = SBX_BUF_INIT;
	uint64_t n = render(data, size, 0, &closed);

	check_text(&closed);
	render(data, size, SBX_RENDER_OPEN, &open);
	check_text(&open);
	render(data, size, SBX_RENDER_START_LOST | SBX_RENDER_END_LOST, &rest);
	check_text(&rest);
	if (n > SBX_RENDER_ROW_MAX)
		return 0; /* cut */
	assert(n == closed.size || size > SBX_RENDER_RAW_MAX);
	render(closed.data, closed.size, 0, &again);
	assert(again.size == closed.size && memcmp(again.data, closed.data, again.size) == 0);
	return 0;
}
