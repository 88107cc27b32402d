/* SPDX-License-Identifier: MIT */
/*
 * A text as lines: where each starts and a hash of each. A line runs up to and including its
 * '\n'; a final piece without one is a line too; an empty text has none. Bytes are bytes: invalid
 * UTF-8 is text, and a lone '\r' ends nothing.
 */
#ifndef SBX_LINES_H
#define SBX_LINES_H

#include "sbx/err.h"

/* Larger contents are handled as one indivisible value, like binary ones. */
#define SBX_LINES_BYTES_MAX (UINT32_C(256) << 20)
#define SBX_LINES_MAX       (UINT32_C(1) << 24)

enum sbx_lines_flags {
	/*
	 * Lines are equal when they differ only in blanks, tabs and '\r' at their end or in the
	 * final newline: what an editor changes without anybody writing a line.
	 */
	SBX_LINES_LOOSE = 1 << 0,
};

struct sbx_lines {
	const char *data; /* borrowed: must outlive the lines */
	size_t size;
	uint32_t n;
	uint32_t *offsets; /* n + 1 of them: line i is [offsets[i], offsets[i + 1]) */
	uint32_t *hashes;  /* equal lines have equal hashes; the values differ from process to
			      process */
	enum sbx_lines_flags flags;
	bool final_newline; /* the last byte is '\n' */
};

/*
 * Splits data (NULL when size is 0), which must stay as it is as long as ret is used. Two texts
 * can be compared when they were split with the same flags in the same process. -EFBIG over one of
 * the limits above, -ENOMEM.
 */
int sbx_lines_split(const void *data, size_t size, enum sbx_lines_flags flags,
	struct sbx_lines *ret, struct sbx_err *err);
void sbx_lines_done(struct sbx_lines *lines);
#define SBX_LINES      SBX_CLEANUP(sbx_lines_done)
#define SBX_LINES_INIT ((struct sbx_lines){0})

/*
 * Whether a content cannot be worked on by lines: it has a NUL byte anywhere, or is over one of
 * the limits above.
 */
bool sbx_text_is_binary(const void *data, size_t size);

static inline const char *sbx_line_data(const struct sbx_lines *lines, uint32_t i)
{
	return lines->data + lines->offsets[i];
}

/* Bytes of line i with its '\n'. */
static inline size_t sbx_line_size(const struct sbx_lines *lines, uint32_t i)
{
	return lines->offsets[i + 1] - lines->offsets[i];
}

/* Bytes of line i that count in a comparison: all of them, or under LOOSE those before its end. */
size_t sbx_line_key_size(const struct sbx_lines *lines, uint32_t i);
bool sbx_line_equal(const struct sbx_lines *a, uint32_t i, const struct sbx_lines *b, uint32_t j);

#endif
