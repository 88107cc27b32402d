/* SPDX-License-Identifier: MIT */
/* Lines from a byte stream, however it is cut into pieces. */
#include "../../../src/mcp/lines.h"

#include <criterion/criterion.h>
#include <string.h>

#define TOO_LONG "<too long>"

static void feed(struct mcp_lines *lines, const char *data, size_t size)
{
	char *room;
	size_t n;

	while (size > 0) {
		cr_assert_eq(mcp_lines_room(lines, &room, &n), 0);
		n = SBX_MIN(n, size);
		memcpy(room, data, n);
		mcp_lines_added(lines, n);
		data += n;
		size -= n;
	}
}

/* Appends what comes out, each line in brackets. */
static void drain(struct mcp_lines *lines, bool ended, struct sbx_buf *out)
{
	enum mcp_line line;
	const char *text;
	size_t size;

	while ((line = mcp_lines_next(lines, ended, &text, &size)) != MCP_LINE_NONE) {
		(void)sbx_buf_append_string(out, "[");
		if (line == MCP_LINE_TEXT)
			(void)sbx_buf_append(out, text, size);
		else
			(void)sbx_buf_append_string(out, TOO_LONG);
		(void)sbx_buf_append_string(out, "]");
	}
}

static const struct {
	const char *name;
	const char *in;
	size_t size;
	const char *out;
} cases[] = {
#define CASE(name, in, out)                                                                        \
	{                                                                                          \
		name, in, sizeof(in) - 1, out                                                      \
	}
	CASE("nothing", "", ""),
	CASE("LF", "a\nbc\n", "[a][bc]"),
	CASE("CRLF", "a\r\nb\r\n", "[a][b]"),
	CASE("blank lines", "\n\r\n  \t\na\n\n", "[a]"),
	CASE("white space around", "  a b \r\n", "[a b]"),
	CASE("byte order mark", "\xef\xbb\xbf{}\n", "[{}]"),
	CASE("byte order mark alone", "\xef\xbb\xbf\n", ""),
	CASE("no end at the end", "a\nlast", "[a][last]"),
	CASE("no end, blank", "a\n  ", "[a]"),
	CASE("NUL is a byte like others", "a\0b\n", "[a\0b]"),
#undef CASE
};

static void check(size_t i, size_t piece)
{
	struct mcp_lines lines = {0};
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	for (size_t at = 0; at < cases[i].size; at += piece) {
		feed(&lines, cases[i].in + at, SBX_MIN(piece, cases[i].size - at));
		drain(&lines, false, &out);
	}
	drain(&lines, true, &out);
	(void)sbx_buf_append_string(&out, "");
	cr_expect_str_eq(out.data ? out.data : "", cases[i].out, "%s, pieces of %zu: %s",
		cases[i].name, piece, out.data);
	mcp_lines_done(&lines);
}

Test(lines, come_out_whole_however_they_arrive)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		for (size_t piece = 1; piece <= 8; piece++)
			check(i, piece);
}

/* size times 'x', then tail. */
static void feed_long(struct mcp_lines *lines, size_t size, const char *tail, struct sbx_buf *out)
{
	char block[65536];

	memset(block, 'x', sizeof(block));
	for (size_t n; size > 0; size -= n) {
		n = SBX_MIN(size, sizeof(block));
		feed(lines, block, n);
		drain(lines, false, out);
	}
	feed(lines, tail, strlen(tail));
	drain(lines, false, out);
}

Test(lines, of_the_greatest_length_are_taken)
{
	struct mcp_lines lines = {0};
	const char *text;
	size_t size;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	feed_long(&lines, MCP_LINE_MAX, "", &out);
	cr_assert_eq(out.size, 0);
	feed(&lines, "\n", 1);
	cr_assert_eq(mcp_lines_next(&lines, false, &text, &size), MCP_LINE_TEXT);
	cr_expect_eq(size, MCP_LINE_MAX);
	mcp_lines_done(&lines);
}

Test(lines, too_long_are_refused_once_and_skipped_with_bounded_memory)
{
	struct mcp_lines lines = {0};
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	feed_long(&lines, 3 * (size_t)MCP_LINE_MAX, "tail\nnext\n", &out);
	cr_expect_str_eq(out.data, "[" TOO_LONG "][next]");
	cr_expect_lt(lines.buf.capacity, 2 * (size_t)MCP_LINE_MAX);
	mcp_lines_done(&lines);
}

Test(lines, memory_of_a_long_line_goes_back)
{
	struct mcp_lines lines = {0};
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	char *room;
	size_t size;

	feed_long(&lines, 8 << 20, "\n", &out);
	cr_assert_eq(mcp_lines_room(&lines, &room, &size), 0);
	cr_expect_lt(lines.buf.capacity, (size_t)1 << 20);
	mcp_lines_done(&lines);
}
