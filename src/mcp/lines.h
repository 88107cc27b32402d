/* SPDX-License-Identifier: MIT */
/*
 * Lines from a byte stream with bounded memory: what arrives on stdin. A line ends in LF or CRLF;
 * blank ones are left out, and so is a byte order mark before a message. A line that is too long
 * is reported once, as soon as that is known, and skipped to its end.
 */
#ifndef SBX_MCP_LINES_H
#define SBX_MCP_LINES_H

#include "sbx/buf.h"

#define MCP_LINE_MAX (64u << 20) /* bytes, without the line end */

struct mcp_lines {
	struct sbx_buf buf;
	size_t taken;   /* bytes at the front that were handed out */
	size_t scanned; /* no line ends between taken and here */
	bool skipping;  /* inside a line that was refused */
};

enum mcp_line {
	MCP_LINE_NONE, /* more bytes are needed */
	MCP_LINE_TEXT,
	MCP_LINE_TOO_LONG,
};

void mcp_lines_done(struct mcp_lines *lines);

/* Where to read into; then say how much came. Lines handed out before are gone. -ENOMEM. */
int mcp_lines_room(struct mcp_lines *lines, char **ret_data, size_t *ret_size);
void mcp_lines_added(struct mcp_lines *lines, size_t n);

/* The next line, without its end; borrowed until mcp_lines_room(). ended: no more bytes will
 * come, so that what is left over is a line too. */
enum mcp_line mcp_lines_next(
	struct mcp_lines *lines, bool ended, const char **ret_text, size_t *ret_size);

#endif
