/* SPDX-License-Identifier: MIT */
/*
 * Any text and any edit: it is refused with a message in UTF-8, or the text changes as one with the
 * same line ends that a simple search and replace treats. The input is a byte of flags, and the
 * text, old_string and new_string with a byte of 0xfe between them.
 */
#include <assert.h>
#include <string.h>

#include "sbx/edit.h"
#include "sbx/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct piece {
	const char *s;
	size_t n;
};

static struct piece next_piece(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size ? memchr(*data, 0xfe, *size) : NULL;
	struct piece piece = {(const char *)*data, end ? (size_t)(end - *data) : *size};

	*data += piece.n + (end != NULL);
	*size -= piece.n + (end != NULL);
	return piece;
}

/* Replaces byte by byte, left to right. */
static size_t replace_simply(struct piece text, const struct sbx_edit *edit, struct sbx_buf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n;) {
		if (text.n - i >= edit->old_n &&
			memcmp(text.s + i, edit->old_s, edit->old_n) == 0) {
			assert(sbx_buf_append(out, edit->new_s, edit->new_n) == 0);
			i += edit->old_n;
			n++;
		} else {
			assert(sbx_buf_append(out, text.s + i++, 1) == 0);
		}
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf want = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_edit edit = {0};
	struct piece text, piece;
	size_t n = 0;
	int r;

	if (size == 0)
		return 0;
	edit.replace_all = *data & 1;
	data++;
	size--;
	text = next_piece(&data, &size);
	piece = next_piece(&data, &size);
	edit.old_s = piece.s;
	edit.old_n = piece.n;
	edit.new_s = (const char *)data;
	edit.new_n = size;
	r = sbx_edit_apply(text.s, text.n, &edit, 1, &out, &n, &err);
	if (r < 0) {
		assert(r == -err.code && err.kind == SBX_KIND_INVALID && out.size == 0);
		assert(sbx_utf8_valid(err.message, strlen(err.message)));
		return 0;
	}
	assert(n >= 1 && (n == 1 || edit.replace_all));
	if (memchr(text.s, '\r', text.n) && !memchr(edit.old_s, '\r', edit.old_n))
		return 0; /* line ends may have been respelled */
	assert(replace_simply(text, &edit, &want) == n);
	assert(out.size == want.size && (!out.size || memcmp(out.data, want.data, out.size) == 0));
	return 0;
}
