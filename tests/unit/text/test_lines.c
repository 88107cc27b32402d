/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "sbx/lines.h"

#define BYTES(s) s, sizeof(s) - 1

Test(lines, split_keeps_every_byte_in_one_line)
{
	static const struct {
		const char *data;
		size_t size;
		uint32_t n;
		bool final_newline;
	} cases[] = {
		{BYTES(""), 0, false},
		{BYTES("\n"), 1, true},
		{BYTES("a"), 1, false},
		{BYTES("a\n"), 1, true},
		{BYTES("a\nb"), 2, false},
		{BYTES("a\n\n"), 2, true},
		{BYTES("\n\n\n"), 3, true},
		{BYTES("a\r\nb\rc\n"), 2, true},
		{BYTES("\xff\xfe\n\x80"), 2, false},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;

		cr_assert_eq(sbx_lines_split(cases[i].data, cases[i].size, 0, &lines, NULL), 0);
		cr_expect_eq(lines.n, cases[i].n, "case %zu", i);
		cr_expect_eq(lines.final_newline, cases[i].final_newline, "case %zu", i);
		cr_expect_eq(lines.offsets[0], 0u);
		cr_expect_eq(lines.offsets[lines.n], cases[i].size);
		for (uint32_t line = 0; line + 1 < lines.n; line++)
			cr_expect_eq(lines.data[lines.offsets[line + 1] - 1], '\n');
	}
}

Test(lines, empty_text_may_be_null)
{
	SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;

	cr_assert_eq(sbx_lines_split(NULL, 0, 0, &lines, NULL), 0);
	cr_expect_eq(lines.n, 0u);
	cr_expect_not(sbx_text_is_binary(NULL, 0));
}

Test(lines, loose_lines_differ_only_before_their_ends)
{
	static const struct {
		const char *a, *b;
		bool equal, loosely;
	} cases[] = {
		{"a\n", "a\n", true, true},
		{"a\n", "a", false, true},
		{"a\n", "a\r\n", false, true},
		{"a\n", "a \t\n", false, true},
		{"\n", "  \n", false, true},
		{"a\n", " a\n", false, false},
		{"a b\n", "a  b\n", false, false},
		{"a\n", "b\n", false, false},
		{"a\rb\n", "ab\n", false, false},
		{"abcdefgh12345678\n", "abcdefgh12345678 ", false, true},
		{"abcdefgh12345678\n", "abcdefgh12345679\n", false, false},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		for (int loose = 0; loose < 2; loose++) {
			enum sbx_lines_flags flags = loose ? SBX_LINES_LOOSE : 0;
			SBX_LINES struct sbx_lines a = SBX_LINES_INIT;
			SBX_LINES struct sbx_lines b = SBX_LINES_INIT;

			cr_assert_eq(
				sbx_lines_split(cases[i].a, strlen(cases[i].a), flags, &a, NULL),
				0);
			cr_assert_eq(
				sbx_lines_split(cases[i].b, strlen(cases[i].b), flags, &b, NULL),
				0);
			cr_expect_eq(sbx_line_equal(&a, 0, &b, 0),
				loose ? cases[i].loosely : cases[i].equal, "case %zu, loose %d", i,
				loose);
		}
	}
}

Test(lines, text_is_binary_when_it_has_a_nul_anywhere)
{
	static const size_t size = 1 << 20;
	SBX_FREE char *data = malloc(size);

	cr_assert_not_null(data);
	memset(data, 0xff, size);
	cr_expect_not(sbx_text_is_binary(data, size), "invalid UTF-8 is text");
	data[size - 1] = '\0';
	cr_expect(sbx_text_is_binary(data, size));
	data[size - 1] = 'x';
	data[0] = '\0';
	cr_expect(sbx_text_is_binary(data, size));
}

Test(lines, text_with_more_lines_than_the_limit_is_refused)
{
	static const size_t size = (size_t)SBX_LINES_MAX + 1;
	SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;
	SBX_FREE char *data = malloc(size);
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_not_null(data);
	memset(data, '\n', size);
	cr_expect(sbx_text_is_binary(data, size));
	cr_expect_eq(sbx_lines_split(data, size, 0, &lines, &err), -EFBIG);
	cr_expect_not_null(strstr(err.message, "16777216 lines"), "%s", err.message);
	cr_expect_not(sbx_text_is_binary(data, size - 1));
	data[0] = 'x';
	cr_expect_not(sbx_text_is_binary(data, size), "the first newline is gone");
}

Test(lines, text_over_the_limit_of_bytes_is_refused_unread)
{
	SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;
	size_t size = (size_t)SBX_LINES_BYTES_MAX + 1;

	cr_expect(sbx_text_is_binary("x", size));
	cr_expect_eq(sbx_lines_split("x", size, 0, &lines, NULL), -EFBIG);
}
