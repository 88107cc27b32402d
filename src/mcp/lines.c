/* SPDX-License-Identifier: MIT */
#include "lines.h"

#include <string.h>

#define READ_SIZE (64u << 10)
#define KEEP_SIZE (1u << 20) /* an empty buffer above this goes back to the system */

void mcp_lines_done(struct mcp_lines *lines)
{
	sbx_buf_done(&lines->buf);
	*lines = (struct mcp_lines){0};
}

static void forget_taken(struct mcp_lines *lines)
{
	if (lines->taken == lines->buf.size && lines->buf.capacity > KEEP_SIZE)
		sbx_buf_done(&lines->buf);
	else
		sbx_buf_consume(&lines->buf, lines->taken);
	lines->scanned -= lines->taken;
	lines->taken = 0;
}

int mcp_lines_room(struct mcp_lines *lines, char **ret_data, size_t *ret_size)
{
	int r;

	if (lines->taken > 0)
		forget_taken(lines);
	r = sbx_buf_reserve(&lines->buf, READ_SIZE);
	if (r < 0)
		return r;
	*ret_data = lines->buf.data + lines->buf.size;
	*ret_size = lines->buf.capacity - lines->buf.size - 1; /* the buffer's own NUL */
	return 0;
}

void mcp_lines_added(struct mcp_lines *lines, size_t n)
{
	lines->buf.size += n;
}

/* Leaves out a byte order mark and white space around the message. */
static void trim(const char **text, size_t *size)
{
	if (*size >= 3 && !memcmp(*text, "\xef\xbb\xbf", 3)) {
		*text += 3;
		*size -= 3;
	}
	while (*size > 0 && strchr(" \t\r", (*text)[*size - 1]) && (*text)[*size - 1])
		--*size;
	while (*size > 0 && strchr(" \t\r", **text) && **text) {
		++*text;
		--*size;
	}
}

/* One step: takes a line from the front, or learns that none is complete. */
static enum mcp_line take(
	struct mcp_lines *lines, bool ended, const char **ret_text, size_t *ret_size)
{
	struct sbx_buf *buf = &lines->buf;
	size_t start = lines->taken, end = buf->size;
	const char *lf = NULL;

	if (buf->size > lines->scanned)
		lf = memchr(buf->data + lines->scanned, '\n', buf->size - lines->scanned);
	if (lf)
		end = (size_t)(lf - buf->data);
	lines->scanned = lf ? end + 1 : buf->size;
	*ret_text = buf->data ? buf->data + start : "";
	*ret_size = end - start;
	if (lf || ended || lines->skipping || *ret_size > MCP_LINE_MAX)
		lines->taken = lines->scanned;
	if (lines->skipping) {
		lines->skipping = !lf;
		*ret_size = 0;
	} else if (*ret_size > MCP_LINE_MAX) {
		lines->skipping = !lf;
		return MCP_LINE_TOO_LONG;
	}
	return lines->taken > start ? MCP_LINE_TEXT : MCP_LINE_NONE;
}

enum mcp_line mcp_lines_next(
	struct mcp_lines *lines, bool ended, const char **ret_text, size_t *ret_size)
{
	enum mcp_line line;

	do {
		line = take(lines, ended, ret_text, ret_size);
		if (line == MCP_LINE_TEXT)
			trim(ret_text, ret_size);
	} while (line == MCP_LINE_TEXT && *ret_size == 0);
	return line;
}
