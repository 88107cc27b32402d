/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sbx/json.h"
#include "sbx/render.h"

#define S(s) s, sizeof(s) - 1
#define FFFD "\xef\xbf\xbd"
#define ST   "\033\\"

static const struct row {
	const char *raw;
	size_t size;
	const char *want;
	enum sbx_render_flags flags;
} rows[] = {
	{S(""), "", 0},
	{S("plain text"), "plain text", 0},
	{S("crlf row\r"), "crlf row", 0},
	{S("two\r\r"), "two", 0},
	/* overwriting */
	{S("x\ry"), "y", 0},
	{S("abc\rX"), "Xbc", 0},
	{S("10%\r50%\r100%"), "100%", 0},
	{S("ab\bX"), "aX", 0},
	{S("\b\bab"), "ab", 0},
	{S("abc\b\b\b\bX"), "Xbc", 0},
	{S("a\bb\bc\b"), "c", 0},
	{S("\xe4\xb8\x96\xe7\x95\x8c\rab"), "ab", 0},
	{S("\xe4\xb8\x96\xe7\x95\x8c\ra"), "a\xe7\x95\x8c", 0},
	/* tabs */
	{S("a\tb"), "a\tb", 0},
	{S("\t\t"), "\t\t", 0},
	{S("a\tb\r"), "a\tb", 0},
	{S("a\tb\rX"), "X\tb", 0},
	{S("a\tb\rXY"), "XY      b", 0},
	{S("a\tb\rXYZ"), "XYZ     b", 0},
	{S("1234567890\rab\tc"), "ab345678c0", 0},
	{S("123\r\tx"), "123     x", 0},
	{S("1234567\tx"), "1234567\tx", 0},
	{S("12345678\tx"), "12345678\tx", 0},
	{S("a\t\bX"), "a      X", 0},
	/* escape sequences */
	{S("\033[31mred\033[0m"), "red", 0},
	{S("\033[38;5;12;1mx\033[m"), "x", 0},
	{S("\033[?25lx\033[?2004h"), "x", 0},
	{S("\033[1 qx\033[!p\033[>4;2m"), "x", 0},
	{S("a\033]0;title\007b"), "ab", 0},
	{S("a\033]8;;http://x" ST "link\033]8;;" ST "b"), "alinkb", 0},
	{S("a\033P1q data" ST "b"), "ab", 0},
	{S("a\033Pno\007bell" ST "b"), "ab", 0},
	{S("a\033^pm" ST "\033_apc" ST "\033Xsos" ST "b"), "ab", 0},
	{S("a\033(Bb\033#8c\0337d\033=e"), "abcde", 0},
	{S("\033]8;; \033]0;T\007 x"), " x", 0},
	{S("a\033]0;\xe6\x9d\x9c\xe4\xb8\x9c"
	   "b\007c"),
		"ac", 0},
	{S("a\033]0;never ends"), "a", 0},
	{S("a\033]0;x\030b"), "ab", 0},
	{S("a\033[12"), "a", 0},
	{S("a\033"), "a", 0},
	{S("a\033\033[1mb"), "ab", 0},
	{S("ab\033[3\rX"), "Xb", 0},
	{S("a\033\xc3\xa9"), "a\xc3\xa9", 0},
	{S("a\033[\xc3\xa9"), "a\xc3\xa9", 0},
	/* those that act inside the line */
	{S("abcdef\r\033[Kxy"), "xy", 0},
	{S("abcdef\rxy\033[0K"), "xy", 0},
	{S("abcdef\b\b\033[1Kx"), "    xf", 0},
	{S("frame one\033[2K\033[1Gframe2"), "frame2", 0},
	{S("abc\033[2Dx"), "axc", 0},
	{S("abc\033[99Dx"), "xbc", 0},
	{S("a\033[3Cb"), "a   b", 0},
	{S("a\033[Cb"), "a b", 0},
	{S("abc\033[Gx"), "xbc", 0},
	{S("abc\033[0;2Gx"), "abcx", 0},
	{S("abc\033[?2Kx"), "abcx", 0},
	{S("abc\033[Ax\033[2Jy"), "abcxy", 0},
	{S("abc\033[123456Dx"), "abcx", 0},
	/* control characters */
	{S("a\0b\1\2\177c\7"), "abc", 0},
	{S("a\xc2\x9b"
	   "31mb"),
		"a31mb", 0},
	{S("a\xc2\x85\xc2\xa0"
	   "b"),
		"a\xc2\xa0"
		"b",
		0},
	/* bytes that are not UTF-8 */
	{S("\xff\xfe"), FFFD FFFD, 0},
	{S("caf\xe9!"), "caf" FFFD "!", 0},
	{S("\xe2\x82"), FFFD, 0},
	{S("x\xe2\x82y"), "x" FFFD "y", 0},
	{S("\xf0\x9f\x98"), FFFD, 0},
	{S("\xed\xa0\x80"), FFFD FFFD FFFD, 0},
	{S("\xc0\xaf"), FFFD FFFD, 0},
	{S("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD, 0},
	{S("\xe0\x80"), FFFD FFFD, 0},
	{S("\xf1\x80\xe1\x80\xc2\x62"), FFFD FFFD FFFD "b", 0},
	{S("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80", 0},
	{S("\xe2\x82\xac"), "\xe2\x82\xac", 0},
	/* 8-bit controls, when they are complete */
	{S("a\x9b"
	   "31mb"),
		"ab", 0},
	{S("a\x9d"
	   "0;t\007b\x9d"
	   "0;t\x9c"
	   "c"),
		"abc", 0},
	{S("a\x90q\x9c"
	   "b"),
		"ab", 0},
	{S("a\x9d"
	   "0;t"),
		"a" FFFD "0;t", 0},
	{S("\x93quoted\x94"), FFFD "quoted" FFFD, 0},
	{S("a\x9b\x9b"), "a" FFFD FFFD, 0},
	{S("a\xe4\xb8\x9d"
	   "b\007"),
		"a\xe4\xb8\x9d"
		"b",
		0},
	/* a row that is still growing */
	{S("x \xe2"), "x ", SBX_RENDER_OPEN},
	{S("x \xe2\x82"), "x ", SBX_RENDER_OPEN},
	{S("x \xe2\x82\xac"), "x \xe2\x82\xac", SBX_RENDER_OPEN},
	{S("x \xff"), "x " FFFD, SBX_RENDER_OPEN},
	{S("x \xe2y"), "x " FFFD "y", SBX_RENDER_OPEN},
	{S("end \360\237"), "end ", SBX_RENDER_OPEN},
	{S("end \360\237"), "end " FFFD, 0},
	/* a row with lost ends */
	{S("\x82\xac"
	   "abc"),
		"[row cut: its start was not kept]abc", SBX_RENDER_START_LOST},
	{S("abc\xe2"), "abc[row cut: its end was not kept]", SBX_RENDER_END_LOST},
};

Test(render, a_row_shows_what_its_line_on_a_terminal_would)
{
	SBX_CLEANUP(sbx_render_done) struct sbx_render render = SBX_RENDER_INIT;

	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++) {
		struct sbx_render_row row = {.head = rows[i].raw,
			.head_n = rows[i].size,
			.size = rows[i].size,
			.flags = rows[i].flags};
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
		uint64_t size;

		cr_assert_eq(sbx_buf_append_string(&out, "before|"), 0);
		cr_assert_eq(sbx_render_row(&render, &row, &out, &size), 0);
		cr_assert_eq(sbx_buf_append(&out, "", 1), 0);
		cr_expect_str_eq(out.data + 7, rows[i].want, "row %zu", i);
	}
}

/* Renders one row of n bytes the way that a reader of long rows does. */
static void render_long(const char *raw, size_t n, struct sbx_buf *out, uint64_t *ret_size)
{
	SBX_CLEANUP(sbx_render_done) struct sbx_render render = SBX_RENDER_INIT;
	struct sbx_render_row row = {.head = raw, .head_n = n, .size = n};

	if (n > SBX_RENDER_RAW_MAX) {
		row.head_n = row.tail_n = SBX_RENDER_WINDOW;
		row.tail = raw + n - SBX_RENDER_WINDOW;
	}
	out->size = 0;
	cr_assert_eq(sbx_render_row(&render, &row, out, ret_size), 0);
	cr_assert_eq(sbx_buf_append(out, "", 1), 0);
	out->size--;
	cr_expect_leq(out->size, SBX_RENDER_ROW_MAX + SBX_RENDER_MARKER_MAX);
	cr_expect(sbx_utf8_valid(out->data, out->size));
}

Test(render, a_long_row_keeps_both_ends_and_says_how_much_is_missing)
{
	static const size_t sizes[] = {SBX_RENDER_ROW_MAX - 1, SBX_RENDER_ROW_MAX,
		SBX_RENDER_ROW_MAX + 1, SBX_RENDER_RAW_MAX, SBX_RENDER_RAW_MAX + 1, 1 << 20};
	SBX_BUF struct sbx_buf raw = SBX_BUF_INIT, out = SBX_BUF_INIT;

	for (int i = 0; raw.size < 1 << 20; i++)
		cr_assert_eq(sbx_buf_printf(&raw, "%d,", i), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(sizes); i++) {
		size_t n = sizes[i];
		char marker[100];
		uint64_t size;
		char *at;

		render_long(raw.data, n, &out, &size);
		cr_expect_eq(size, n);
		snprintf(marker, sizeof(marker), "[row cut: %d of %zu bytes shown]",
			SBX_RENDER_ROW_MAX, n);
		at = strstr(out.data, marker);
		if (n <= SBX_RENDER_ROW_MAX) {
			cr_expect_null(at);
			cr_expect_eq(out.size, n);
			continue;
		}
		cr_assert_not_null(at, "%zu: no %s", n, marker);
		cr_expect_eq(memcmp(out.data, raw.data, (size_t)(at - out.data)), 0);
		at += strlen(marker);
		cr_expect_eq(memcmp(at, raw.data + n - strlen(at), strlen(at)), 0);
	}
}

Test(render, a_long_row_of_wide_characters_is_cut_between_them)
{
	SBX_BUF struct sbx_buf raw = SBX_BUF_INIT, out = SBX_BUF_INIT;
	uint64_t size;

	for (int i = 0; i < 200000; i++)
		cr_assert_eq(sbx_buf_append_string(&raw, "\xe4\xb8\x96"), 0);
	for (size_t offset = 0; offset < 3; offset++) {
		cr_assert_eq(sbx_buf_append_string(&raw, "x"), 0);
		render_long(raw.data, raw.size, &out, &size);
		cr_expect_null(strstr(out.data, FFFD));
		cr_expect_eq(size, 600001 + offset);
	}
}

Test(render, a_long_progress_row_shows_its_last_state)
{
	SBX_BUF struct sbx_buf raw = SBX_BUF_INIT, out = SBX_BUF_INIT;
	uint64_t size;

	for (int i = 1; i <= 3000; i++)
		cr_assert_eq(sbx_buf_printf(&raw, "\rprogress %d%%", i), 0);
	render_long(raw.data, raw.size, &out, &size);
	cr_expect_str_eq(out.data, "progress 3000%");
	for (int i = 3001; i <= 9999; i++)
		cr_assert_eq(sbx_buf_printf(&raw, "\rprogress %d%%", i), 0);
	render_long(raw.data, raw.size, &out, &size);
	cr_expect_not_null(strstr(out.data, "bytes shown]"));
	cr_expect_lt(out.size, 100);
	cr_expect_str_eq(out.data + out.size - 14, "progress 9999%");
}

Test(render, hostile_rows_take_bounded_time_and_memory)
{
	static const struct {
		const char *what;
		size_t n;
	} units[] = {{S("\x9d")}, {S("\x90")}, {S("\033]")}, {S("\033[")}, {S("\t")},
		{S("\033[9999C\t")}, {S("\xff")}, {S("\x9b")}, {S("\033[9999Gx\033[1K\r")},
		{S("a\033[2K")}, {S("\033P\x9d\030")}};
	SBX_CLEANUP(sbx_render_done) struct sbx_render render = SBX_RENDER_INIT;

	for (size_t i = 0; i < SBX_N_ELEMENTS(units); i++) {
		SBX_BUF struct sbx_buf raw = SBX_BUF_INIT, out = SBX_BUF_INIT;
		struct sbx_render_row row = {0};
		struct timespec start, end;

		while (raw.size + units[i].n <= SBX_RENDER_RAW_MAX)
			cr_assert_eq(sbx_buf_append(&raw, units[i].what, units[i].n), 0);
		row.head = raw.data;
		row.head_n = row.size = raw.size;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
		cr_assert_eq(sbx_render_row(&render, &row, &out, NULL), 0);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		cr_expect_lt((end.tv_sec - start.tv_sec) * 1000 +
				     (end.tv_nsec - start.tv_nsec) / 1000000,
			500, "unit %zu", i);
		cr_expect_leq(out.size, SBX_RENDER_ROW_MAX + SBX_RENDER_MARKER_MAX);
		cr_expect_leq(render.capacity * sizeof(*render.cells), 3U << 20, "unit %zu: %zu", i,
			render.capacity);
	}
}
