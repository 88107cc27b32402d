/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sbx/edit.h"

/* Texts as C strings with their length, so that they may hold NULs. */
#define S(s) s, sizeof(s) - 1
#define EDIT(o, n)                                                                                 \
	{                                                                                          \
		o, sizeof(o) - 1, n, sizeof(n) - 1, false                                          \
	}
#define EACH(o, n)                                                                                 \
	{                                                                                          \
		o, sizeof(o) - 1, n, sizeof(n) - 1, true                                           \
	}

static const struct applied {
	const char *text;
	size_t size;
	struct sbx_edit edits[4];
	const char *want;
	size_t want_size;
	size_t replacements;
} applied[] = {
	{S("a\nb\nc\n"), {EDIT("b", "B")}, S("a\nB\nc\n"), 1},
	{S("a\nb"), {EDIT("b", "B")}, S("a\nB"), 1},
	{S("a\n\n\n"), {EDIT("a", "x")}, S("x\n\n\n"), 1},
	{S("\n"), {EDIT("\n", "")}, S(""), 1},
	{S("a\rb\rc\n"), {EDIT("b", "B")}, S("a\rB\rc\n"), 1},
	{S("a\rb\rc\n"), {EDIT("a\rb", "x\ny")}, S("x\ny\rc\n"), 1},
	{S("a \t\nb\n"), {EDIT("b", "B")}, S("a \t\nB\n"), 1},
	{S("a\x0c"
	   "b\n"),
		{EDIT("b", "B")},
		S("a\x0c"
		  "B\n"),
		1},
	{S("x = 1\n# caf\xe9\n"), {EDIT("x = 1", "x = 2")}, S("x = 2\n# caf\xe9\n"), 1},
	{S("\xef\xbb\xbfone\n"), {EDIT("one", "two")}, S("\xef\xbb\xbftwo\n"), 1},
	{S("a\0b\0c"), {EDIT("\0b", "\0B\0")}, S("a\0B\0\0c"), 1},
	{S("aab"), {EDIT("ab", "1")}, S("a1"), 1},
	{S("abcabcabc"), {EACH("abc", "x")}, S("xxx"), 3},
	{S("aaaa"), {EACH("aa", "b")}, S("bb"), 2},
	{S("aaa"), {EACH("aa", "b")}, S("ba"), 1},
	{S("aa"), {EACH("a", "aa")}, S("aaaa"), 2},
	{S("one"), {EACH("one", "two")}, S("two"), 1},
	{S("abc"), {EDIT("b", "")}, S("ac"), 1},
	{S("abc"), {EDIT("abc", "")}, S(""), 1},
	/* in order, each on the result of the one before */
	{S("a\nb\nc\n"), {EDIT("a", "b1"), EDIT("b1", "b2")}, S("b2\nb\nc\n"), 2},
	{S("a\nb\n"), {EDIT("a", "x"), EACH("b", "x"), EACH("x", "y")}, S("y\ny\n"), 4},
	{S("ab"), {EDIT("a", "b2"), EDIT("b2", "a")}, S("ab"), 2},
	/* every line end is CRLF */
	{S("a\r\nb\r\nc\r\n"), {EDIT("b", "B")}, S("a\r\nB\r\nc\r\n"), 1},
	{S("a\r\nb\r\nc\r\n"), {EDIT("a\nb", "x\ny")}, S("x\r\ny\r\nc\r\n"), 1},
	{S("a\r\nb\r\nc\r\n"), {EDIT("b", "x\ny")}, S("a\r\nx\r\ny\r\nc\r\n"), 1},
	{S("a\r\nb\r\nc\r\n"), {EDIT("b\n", "x\r\ny\n")}, S("a\r\nx\r\ny\r\nc\r\n"), 1},
	{S("a\r\nb\r\nc\r\n"), {EDIT("c\r\n", "z\r\n")}, S("a\r\nb\r\nz\r\n"), 1},
	{S("a\r\nb\r\n"), {EDIT("b\r\n", "b\n")}, S("a\r\nb\n"), 1},
	{S("a\r\nb\r\n"), {EACH("\n", "\n\n")}, S("a\r\n\r\nb\r\n\r\n"), 2},
	{S("a\r\nb"), {EDIT("a\n", "")}, S("b"), 1},
	{S("a\r\rb\r\n"), {EDIT("b\n", "c\n")}, S("a\r\rc\r\n"), 1},
	/* both kinds of line ends */
	{S("p\nq\r\nr"), {EDIT("q", "Q")}, S("p\nQ\r\nr"), 1},
	{S("p\nq\r\nr"), {EDIT("p\nq", "1\n2")}, S("1\n2\r\nr"), 1},
	{S("p\nq\r\nr"), {EDIT("q\nr", "1\n2")}, S("p\n1\r\n2"), 1},
	{S("p\nq\r\nr"), {EDIT("q", "1\n2")}, S("p\n1\n2\r\nr"), 1},
	{S("a\nb\r\na\r\nb\n"), {EDIT("a\nb", "x\nb")}, S("x\nb\r\na\r\nb\n"), 1},
};

static size_t count_edits(const struct sbx_edit edits[4])
{
	size_t n = 0;

	while (n < 4 && edits[n].old_s)
		n++;
	return n;
}

Test(edit, changes_exactly_the_matched_bytes)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(applied); i++) {
		const struct applied *row = &applied[i];
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
		struct sbx_err err = SBX_ERR_INIT;
		size_t replacements = 0;
		int r = sbx_edit_apply(row->text, row->size, row->edits, count_edits(row->edits),
			&out, &replacements, &err);

		cr_assert_eq(r, 0, "row %zu: %s", i, err.message);
		cr_expect_eq(replacements, row->replacements, "row %zu: %zu", i, replacements);
		cr_expect_eq(out.size, row->want_size, "row %zu: '%s'", i, out.data);
		cr_expect(out.size == row->want_size && memcmp(out.data, row->want, out.size) == 0,
			"row %zu: '%s'", i, out.data);
	}
}

static const struct refused {
	const char *text;
	size_t size;
	struct sbx_edit edits[4];
	int code;
	const char *says[3]; /* what the message holds */
} refused[] = {
	{S("abc"), {{0}}, -EINVAL, {"no edits"}},
	{S("abc"), {EDIT("", "X")}, -EINVAL, {"edit #1", "empty"}},
	{S("abc"), {EACH("", "X")}, -EINVAL, {"edit #1", "empty"}},
	{S("abc"), {EDIT("a", "b"), EDIT("", "X")}, -EINVAL, {"edit #2", "empty"}},
	{S(""), {EDIT("", "X")}, -EINVAL, {"edit #1", "empty"}},
	{S("a\nb\nc\n"), {EDIT("a", "A"), EDIT("zzz", "Z"), EDIT("c", "C")}, -ENOENT,
		{"edit #2", "not found", "no line is like it"}},
	{S("a\nb\nc\n"), {EDIT("a", "x"), EDIT("a", "y")}, -ENOENT, {"edit #2", "not found"}},
	{S(""), {EDIT("a", "b")}, -ENOENT, {"edit #1", "the file is empty"}},
	{S("b\n"), {EDIT("b", "b")}, -EALREADY, {"edit #1", "changes nothing"}},
	{S("a\n"), {EDIT("b", "b")}, -EALREADY, {"edit #1", "changes nothing"}},
	{S("a\r\nb\r\n"), {EDIT("a\nb", "a\r\nb")}, -EALREADY, {"changes nothing"}},
	{S("x\ny\nx\nz\nx\n"), {EDIT("x", "y")}, -ENOTUNIQ,
		{"edit #1", "3 times", "at lines 1, 3, 5; "}},
	{S("aaa"), {EDIT("aa", "b")}, -ENOTUNIQ, {"2 times", "at lines 1, 1;"}},
	{S("1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n1\n"), {EDIT("1", "2")}, -ENOTUNIQ,
		{"11 times", "8, 9, 10, ...;"}},
	{S("a\nb\n"), {EDIT("a", "b"), EDIT("b", "a")}, -ENOTUNIQ, {"edit #2", "lines 1, 2"}},
	{S("a\n\nb\n"), {EDIT("\n", "")}, -ENOTUNIQ, {"3 times", "lines 1, 2, 3"}},
	/* hints */
	{S("one\n\tif (x) {\n"), {EDIT("    if (x) {", "")}, -ENOENT,
		{"line 2", "white space", "\"\tif (x) {\""}},
	{S("a\nb  c\n"), {EDIT("a b c", "")}, -ENOENT, {"line 1", "white space"}},
	{S("a\rb\rc"), {EDIT("b\nc", "")}, -ENOENT, {"line 1", "line ends", "\"a\\rb\\rc\""}},
	{S("a\nb\nc\n"), {EDIT("b\r\nc", "")}, -ENOENT, {"line 2", "line ends", "\"b\""}},
	{S("int alpha;\nint beta_value;\n"), {EDIT("int beta_valeu;", "")}, -ENOENT,
		{"closest line is 2", "\"int beta_value;\""}},
	{S("f(1);\ng(2);\nh(3);\nf(1);\ng(4);\n"), {EDIT("f(1);\ng(5);\n", "")}, -ENOENT,
		{"from line 1 on up to line 2", "\"g(2);\"", "not \"g(5);\""}},
	{S("f(1);\nx\nf(1);\ng(4);\nh(3);\n"), {EDIT("f(1);\ng(4);\nh(7);\n", "")}, -ENOENT,
		{"from line 3 on up to line 5", "\"h(3);\"", "not \"h(7);\""}},
	{S("caf\xe9 one\n"), {EDIT("caf\xc3\xa9 one", "")}, -ENOENT, {"closest", "caf\\xe9 one"}},
	{S("a\n \n"), {EDIT("  \t", "")}, -ENOENT, {"not found"}},
};

Test(edit, refuses_and_says_which_edit_and_why)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(refused); i++) {
		const struct refused *row = &refused[i];
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
		struct sbx_err err = SBX_ERR_INIT;
		size_t replacements = 77;
		int r = sbx_edit_apply(row->text, row->size, row->edits, count_edits(row->edits),
			&out, &replacements, &err);

		cr_expect_eq(r, row->code, "row %zu: %d %s", i, r, err.message);
		cr_expect_eq(err.kind, SBX_KIND_INVALID, "row %zu", i);
		cr_expect_eq(out.size, 0, "row %zu: nothing comes out", i);
		cr_expect_eq(replacements, 77, "row %zu: outputs only on success", i);
		for (size_t j = 0; j < 3 && row->says[j]; j++)
			cr_expect_not_null(strstr(err.message, row->says[j]),
				"row %zu: no '%s' in '%s'", i, row->says[j], err.message);
	}
}

Test(edit, long_lines_are_quoted_in_whole_characters)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_edit edit = EDIT("x\xe2\x82\xac\xe2\x82\xac!", "");
	size_t replacements;

	cr_assert_eq(sbx_buf_append_string(&text, "x"), 0);
	for (int i = 0; i < 300; i++)
		cr_assert_eq(sbx_buf_append_string(&text, "\xe2\x82\xac"), 0);
	cr_expect_eq(
		sbx_edit_apply(text.data, text.size, &edit, 1, &out, &replacements, &err), -ENOENT);
	cr_expect_not_null(strstr(err.message, "\xe2\x82\xac...\""), "%s", err.message);
	cr_expect_null(strstr(err.message, "\\x"), "%s", err.message);
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A file of the largest size, in lines that are all alike but for a number. */
static void largest_file(struct sbx_buf *text)
{
	for (int i = 0; text->size < SBX_EDIT_SIZE_MAX - 64; i++)
		cr_assert_eq(sbx_buf_printf(text, "line number %07d of the file, end\n", i), 0);
}

#define N_EDITS 250

Test(edit, many_edits_of_the_largest_file_take_time_in_proportion, .timeout = 120)
{
	static char olds[N_EDITS][40], news[N_EDITS][40];
	struct sbx_edit edits[N_EDITS];
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	double start;
	size_t n;

	largest_file(&text);
	for (size_t i = 0; i < N_EDITS; i++) {
		snprintf(olds[i], sizeof(olds[i]), "number %07zu of", i * 1600);
		snprintf(news[i], sizeof(news[i]), "no %zu\nof", i);
		edits[i] = (struct sbx_edit){
			olds[i], strlen(olds[i]), news[i], strlen(news[i]), false};
	}
	start = cpu_seconds();
	cr_expect_eq(sbx_edit_apply(text.data, text.size, edits, N_EDITS, &out, &n, &err), 0, "%s",
		err.message);
	cr_expect_eq(n, N_EDITS);
	cr_log_info("250 edits of 16 MiB: %.2f s", cpu_seconds() - start);
	cr_expect_lt(cpu_seconds() - start, 60.0);
}

Test(edit, a_missing_text_is_explained_quickly_in_the_largest_file)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_edit edit = EDIT("line number 0123457 of teh file, end\n", "");
	double start;
	size_t n;

	largest_file(&text);
	start = cpu_seconds();
	cr_expect_eq(sbx_edit_apply(text.data, text.size, &edit, 1, &out, &n, &err), -ENOENT);
	cr_expect_not_null(strstr(err.message, "closest line is 123458"), "%s", err.message);
	cr_log_info("closest line in 16 MiB: %.2f s", cpu_seconds() - start);
	cr_expect_lt(cpu_seconds() - start, 5.0);
}

Test(edit, sizes_beyond_the_limits_are_refused)
{
	SBX_FREE char *text = malloc(SBX_EDIT_SIZE_MAX + 1);
	struct sbx_edit grow = {text, 1 << 16, text, (1 << 16) + 1, true};
	struct sbx_edit many[1] = {EDIT("a", "b")};
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	size_t n;

	cr_assert_not_null(text);
	memset(text, 'a', SBX_EDIT_SIZE_MAX + 1);
	cr_expect_eq(sbx_edit_apply(text, SBX_EDIT_SIZE_MAX + 1, &grow, 1, &out, &n, &err), -EFBIG);
	cr_expect_eq(sbx_edit_apply(text, SBX_EDIT_SIZE_MAX, &grow, 1, &out, &n, &err), -EFBIG);
	cr_expect_not_null(strstr(err.message, "edit #1"));
	cr_expect_eq(sbx_edit_apply(text, 1, many, SBX_EDIT_COUNT_MAX + 1, &out, &n, &err), -E2BIG);
	cr_expect_eq(err.kind, SBX_KIND_INVALID);
}
