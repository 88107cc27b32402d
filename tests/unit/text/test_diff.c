/* SPDX-License-Identifier: MIT */
#include "corpus.h"

#include "sbx/diff.h"

#define REGIONS_MAX 4

/* Texts of single letters: each letter is a line. */
static void split_letters(const char *letters, struct sbx_buf *bytes, struct sbx_lines *ret)
{
	for (; *letters; letters++)
		cr_assert_eq(sbx_buf_printf(bytes, "%c\n", *letters), 0);
	cr_assert_eq(sbx_lines_split(bytes->data, bytes->size, 0, ret, NULL), 0);
}

static bool is_copy(const struct sbx_lines *a, uint32_t i, const struct sbx_lines *b, uint32_t j)
{
	return sbx_line_equal(a, i, b, j);
}

/* What makes regions a difference: all lines outside them are equal, pair by pair. */
static void check_regions(const struct sbx_lines *a, const struct sbx_lines *b,
	const struct sbx_diff *diff, const char *what)
{
	uint32_t i = 0;
	uint32_t j = 0;

	for (size_t n = 0; n <= diff->n_regions; n++) {
		struct sbx_diff_region end = {.a_start = a->n, .b_start = b->n};
		const struct sbx_diff_region *region =
			n < diff->n_regions ? &diff->regions[n] : &end;

		cr_assert_leq(i, region->a_start, "%s", what);
		cr_assert_eq(region->a_start - i, region->b_start - j, "%s", what);
		if (n > 0 && n < diff->n_regions)
			cr_assert_gt(region->a_start, i, "%s: regions touch", what);
		for (; i < region->a_start; i++, j++)
			cr_assert(is_copy(a, i, b, j), "%s: line %u is not line %u", what, i, j);
		if (n < diff->n_regions)
			cr_assert_gt(region->a_count + region->b_count, 0u, "%s", what);
		i += region->a_count;
		j += region->b_count;
	}
	cr_assert_eq(i, a->n, "%s", what);
	cr_assert_eq(j, b->n, "%s", what);
}

Test(diff, regions_are_where_a_reader_expects_them)
{
	static const struct {
		const char *a, *b;
		struct sbx_diff_region regions[REGIONS_MAX]; /* ends with an empty one */
	} cases[] = {
		{"", "", {{0}}},
		{"abc", "abc", {{0}}},
		{"", "ab", {{0, 0, 0, 2}}},
		{"ab", "", {{0, 2, 0, 0}}},
		{"abc", "axc", {{1, 1, 1, 1}}},
		{"abc", "xyz", {{0, 3, 0, 3}}},
		{"abc", "abxc", {{2, 0, 2, 1}}},
		{"abcdef", "bcdxf", {{0, 1, 0, 0}, {4, 1, 3, 1}}},
		/* one of several equal lines: the last */
		{"aaa", "aaaa", {{3, 0, 3, 1}}},
		{"aaaa", "aaa", {{3, 1, 3, 0}}},
		{"a{b}", "a{b}{b}", {{4, 0, 4, 3}}},
		/* a whole function, not half of two */
		{"f{x}g{y}", "f{x}h{z}g{y}", {{4, 0, 4, 4}}},
		/* unique lines anchor: b and d stay, although the x would match */
		{"xxbxxd", "bxdxxx", {{0, 2, 0, 0}, {4, 1, 2, 0}, {6, 0, 3, 3}}},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_BUF struct sbx_buf a_bytes = SBX_BUF_INIT;
		SBX_BUF struct sbx_buf b_bytes = SBX_BUF_INIT;
		SBX_LINES struct sbx_lines a = SBX_LINES_INIT;
		SBX_LINES struct sbx_lines b = SBX_LINES_INIT;
		SBX_DIFF struct sbx_diff diff = SBX_DIFF_INIT;
		size_t n = 0;

		split_letters(cases[i].a, &a_bytes, &a);
		split_letters(cases[i].b, &b_bytes, &b);
		cr_assert_eq(sbx_diff(&a, &b, 0, &diff, NULL), 0);
		while (n < REGIONS_MAX && cases[i].regions[n].a_count + cases[i].regions[n].b_count)
			n++;
		cr_expect_eq(diff.n_regions, n, "%s, %s", cases[i].a, cases[i].b);
		cr_expect(diff.n_regions == n && !memcmp(diff.regions, cases[i].regions,
							 n * sizeof(diff.regions[0])),
			"%s, %s: regions differ", cases[i].a, cases[i].b);
		check_regions(&a, &b, &diff, cases[i].b);
	}
}

static void compare(const char *a_data, size_t a_size, const char *b_data, size_t b_size,
	enum sbx_lines_flags lines_flags, enum sbx_diff_flags flags, const char *what)
{
	SBX_LINES struct sbx_lines a = SBX_LINES_INIT;
	SBX_LINES struct sbx_lines b = SBX_LINES_INIT;
	SBX_DIFF struct sbx_diff diff = SBX_DIFF_INIT;

	cr_assert_eq(sbx_lines_split(a_data, a_size, lines_flags, &a, NULL), 0);
	cr_assert_eq(sbx_lines_split(b_data, b_size, lines_flags, &b, NULL), 0);
	cr_assert_eq(sbx_diff(&a, &b, flags, &diff, NULL), 0);
	check_regions(&a, &b, &diff, what);
}

static struct corpus_text words;
static struct corpus_text old_text;
static struct corpus_text new_text;

static void make_pair(struct corpus_random *random, struct sbx_buf *a, struct sbx_buf *b)
{
	static const uint32_t n_words[] = {2, 3, 5, 20, 200, 5000};
	static const uint32_t n_lines[] = {10, 60, 60, 500, 3000};
	uint32_t n = n_lines[corpus_below(random, SBX_N_ELEMENTS(n_lines))];
	uint32_t n_edits = corpus_below(random, corpus_below(random, 2) ? 6 : n / 4 + 1);

	corpus_words(&words, n_words[corpus_below(random, SBX_N_ELEMENTS(n_words))]);
	corpus_random_text(random, &old_text, &words, corpus_below(random, n));
	new_text = old_text;
	for (uint32_t i = 0; i < n_edits; i++)
		corpus_edit(random, &new_text, &words);
	corpus_bytes(random, &old_text, a);
	corpus_bytes(random, &new_text, b);
}

Test(diff, regions_turn_one_text_into_the_other, .timeout = 120)
{
	SBX_BUF struct sbx_buf a = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf b = SBX_BUF_INIT;
	double end = corpus_now() + corpus_seconds() / 2;
	char what[64];

	for (uint64_t seed = corpus_seed(); corpus_now() < end; seed++) {
		struct corpus_random random = {seed};

		make_pair(&random, &a, &b);
		for (int way = 0; way < 4; way++) {
			(void)snprintf(what, sizeof(what), "seed %llu, way %d",
				(unsigned long long)seed, way);
			compare(a.data, a.size, b.data, b.size, way & 1 ? SBX_LINES_LOOSE : 0,
				way & 2 ? SBX_DIFF_PLAIN : 0, what);
		}
	}
}

/* Reads regions out of a unified diff. */
static size_t parse_unified(char *text, struct sbx_diff_region *ret, size_t max)
{
	struct sbx_diff_region at = {0};
	bool in_region = false;
	bool in_hunk = false;
	size_t n = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char a_range[32] = "";
		char b_range[32] = "";

		if (sscanf(line, "@@ -%31[0-9,] +%31[0-9,] @@", a_range, b_range) == 2) {
			at.a_start = (uint32_t)strtoul(a_range, NULL, 10);
			at.b_start = (uint32_t)strtoul(b_range, NULL, 10);
			/* a range that is empty names the line before it */
			at.a_start -= !strstr(a_range, ",0");
			at.b_start -= !strstr(b_range, ",0");
			in_region = false;
			in_hunk = true;
			continue;
		}
		if (!in_hunk || *line == '\\')
			continue;
		if (*line != ' ' && !in_region) {
			cr_assert_lt(n, max);
			ret[n++] = at;
		}
		in_region = *line != ' ';
		if (*line != '+')
			at.a_start++;
		if (*line != '-')
			at.b_start++;
		if (*line == '-')
			ret[n - 1].a_count++;
		if (*line == '+')
			ret[n - 1].b_count++;
	}
	return n;
}

static void check_same_as_git(const struct corpus_dir *dir, const struct sbx_buf *a_bytes,
	const struct sbx_buf *b_bytes, uint64_t seed)
{
	static const char *const argv[] = {"git", "diff", "--no-index", "--no-color", "--text",
		"--diff-algorithm=myers", "--no-indent-heuristic", "-U1", "a", "b", NULL};
	static struct sbx_diff_region regions[2 * CORPUS_LINES_MAX];
	SBX_LINES struct sbx_lines a = SBX_LINES_INIT;
	SBX_LINES struct sbx_lines b = SBX_LINES_INIT;
	SBX_DIFF struct sbx_diff diff = SBX_DIFF_INIT;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	size_t n = 0;

	corpus_write(dir, "a", a_bytes->data, a_bytes->size);
	corpus_write(dir, "b", b_bytes->data, b_bytes->size);
	cr_assert_leq(corpus_run(dir, argv), 1);
	corpus_output(dir, &out);
	if (out.size > 0)
		n = parse_unified(out.data, regions, SBX_N_ELEMENTS(regions));
	cr_assert_eq(sbx_lines_split(a_bytes->data, a_bytes->size, 0, &a, NULL), 0);
	cr_assert_eq(sbx_lines_split(b_bytes->data, b_bytes->size, 0, &b, NULL), 0);
	cr_assert_eq(sbx_diff(&a, &b, SBX_DIFF_PLAIN, &diff, NULL), 0);
	cr_assert_eq(diff.n_regions, n, "seed %llu", (unsigned long long)seed);
	cr_assert(n == 0 || !memcmp(diff.regions, regions, n * sizeof(regions[0])),
		"seed %llu: other regions than git's", (unsigned long long)seed);
}

static const char *const file_names[] = {"a", "b", "out", "patch", NULL};

static bool can_run(const struct corpus_dir *dir, const char *program)
{
	const char *const argv[] = {program, "--version", NULL};

	return corpus_run(dir, argv) == 0;
}

Test(diff, plain_regions_are_those_of_git, .timeout = 120)
{
	SBX_BUF struct sbx_buf a = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf b = SBX_BUF_INIT;
	double end = corpus_now() + corpus_seconds();
	bool git;
	struct corpus_dir dir;

	corpus_dir_init(&dir);
	git = can_run(&dir, "git");
	for (uint64_t seed = corpus_seed(); git && corpus_now() < end; seed++) {
		struct corpus_random random = {seed};

		make_pair(&random, &a, &b);
		check_same_as_git(&dir, &a, &b, seed);
	}
	corpus_dir_remove(&dir, file_names);
	if (!git)
		cr_skip_test("git is missing");
}

/* -------- time */

static void fill(struct sbx_buf *ret, size_t n, uint32_t n_different, uint64_t seed)
{
	struct corpus_random random = {seed};

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(sbx_buf_printf(
				     ret, "line %u of them\n", corpus_below(&random, n_different)),
			0);
}

static void check_time(
	const struct sbx_buf *a, const struct sbx_buf *b, double limit, const char *what)
{
	for (int plain = 0; plain < 2; plain++) {
		double start = corpus_cpu_seconds();

		compare(a->data, a->size, b->data, b->size, 0, plain ? SBX_DIFF_PLAIN : 0, what);
		cr_expect_lt(corpus_cpu_seconds() - start, limit * CORPUS_SLOWDOWN,
			"%s takes %.3f s", what, corpus_cpu_seconds() - start);
	}
}

Test(diff, time_is_bounded_for_any_two_texts, .timeout = 120)
{
	static const struct {
		const char *what;
		size_t n_a, n_b;
		uint32_t different_a, different_b; /* lines to choose from */
		double seconds;
	} cases[] = {
		{"50,000 lines rewritten", 50000, 50000, 1 << 30, 1 << 30, 1},
		{"50,000 lines of which each repeats ten times", 50000, 50000, 5000, 5000, 1},
		{"50,000 lines of two kinds", 50000, 50000, 2, 2, 1},
		{"50,000 lines of five kinds", 50000, 50000, 5, 5, 1},
		{"a million equal lines against fewer", 1000000, 900000, 1, 1, 1},
		{"300,000 lines of 500 kinds", 300000, 300000, 500, 500, 4},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_BUF struct sbx_buf a = SBX_BUF_INIT;
		SBX_BUF struct sbx_buf b = SBX_BUF_INIT;

		fill(&a, cases[i].n_a, cases[i].different_a, 1);
		fill(&b, cases[i].n_b, cases[i].different_b, 2);
		check_time(&a, &b, cases[i].seconds, cases[i].what);
	}
}

Test(diff, long_lines_are_compared_once, .timeout = 60)
{
	static const size_t size = 10 << 20;
	SBX_FREE char *a = malloc(size);
	SBX_FREE char *b = malloc(size);
	struct sbx_buf a_bytes = {.data = a, .size = size};
	struct sbx_buf b_bytes = {.data = b, .size = size};

	cr_assert(a && b);
	memset(a, 'x', size);
	memcpy(b, a, size);
	check_time(&a_bytes, &b_bytes, 0.5, "one equal line of 10 MiB");
	b[size - 1] = 'y';
	check_time(&a_bytes, &b_bytes, 0.5, "one changed line of 10 MiB");
}

/* -------- for people */

Test(diff, unified_text_is_exact)
{
	static const struct {
		const char *a, *b, *a_name, *b_name;
		uint32_t context;
		const char *text;
	} cases[] = {
		{"a\n", "a\n", "a/f", "b/f", 3, ""},
		{"a\nb\nc\n", "a\nB\nc\n", "a/f", "b/f", 1,
			"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"a\nb\nc\n", "a\nB\nc\n", "a/f", "b/f", 0,
			"--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n"},
		{"", "a\n", NULL, "b/f", 3, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"},
		{"a\n", "", "a/f", NULL, 3, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"},
		{"a", "a\n", "a/f", "b/f", 3,
			"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"x\na", "y\na", "a/f", "b/f", 3,
			"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-x\n+y\n a\n"
			"\\ No newline at end of file\n"},
		{"1\n2\n3\n4\n5\n", "0\n1\n2\n3\n4\n", "a/f", "b/f", 1,
			"--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n+0\n 1\n@@ -4,2 +5 @@\n 4\n-5\n"},
		{"a\n", "b\n", "a/x y", "b/q\"\\\n\001", 0,
			"--- a/x y\t\n+++ \"b/q\\\"\\\\\\n\\001\"\n@@ -1 +1 @@\n-a\n+b\n"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_LINES struct sbx_lines a = SBX_LINES_INIT;
		SBX_LINES struct sbx_lines b = SBX_LINES_INIT;
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

		cr_assert_eq(sbx_buf_append_string(&out, ""), 0);
		cr_assert_eq(sbx_lines_split(cases[i].a, strlen(cases[i].a), 0, &a, NULL), 0);
		cr_assert_eq(sbx_lines_split(cases[i].b, strlen(cases[i].b), 0, &b, NULL), 0);
		cr_assert_eq(sbx_diff_unified(&a, &b, cases[i].a_name, cases[i].b_name,
				     cases[i].context, &out, NULL),
			0);
		cr_expect_str_eq(out.data, cases[i].text, "case %zu", i);
	}
}

static void check_patch(const struct corpus_dir *dir, const char *const argv[],
	const struct sbx_buf *a_bytes, const struct sbx_buf *b_bytes, uint64_t seed)
{
	SBX_LINES struct sbx_lines a = SBX_LINES_INIT;
	SBX_LINES struct sbx_lines b = SBX_LINES_INIT;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	char path[128];

	cr_assert_eq(sbx_lines_split(a_bytes->data, a_bytes->size, 0, &a, NULL), 0);
	cr_assert_eq(sbx_lines_split(b_bytes->data, b_bytes->size, 0, &b, NULL), 0);
	cr_assert_eq(sbx_diff_unified(&a, &b, "a/a", "b/a", 3, &out, NULL), 0);
	if (out.size == 0)
		return;
	corpus_write(dir, "a", a_bytes->data, a_bytes->size);
	corpus_write(dir, "patch", out.data, out.size);
	cr_assert_eq(corpus_run(dir, argv), 0, "%s refuses seed %llu", argv[0],
		(unsigned long long)seed);
	corpus_path(dir, "a", path);
	corpus_read(path, &out);
	cr_assert(out.size == b_bytes->size && !memcmp(out.data, b_bytes->data, out.size),
		"%s makes another text of seed %llu", argv[0], (unsigned long long)seed);
}

Test(diff, unified_text_is_what_patch_programs_take, .timeout = 120)
{
	static const char *const programs[][8] = {
		{"git", "apply", "--whitespace=nowarn", "patch", NULL},
		{"patch", "-p1", "-s", "--fuzz=0", "-E", "-i", "patch", NULL},
	};
	SBX_BUF struct sbx_buf a = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf b = SBX_BUF_INIT;
	struct corpus_dir dir;
	size_t n_run = 0;

	corpus_dir_init(&dir);
	for (size_t i = 0; i < SBX_N_ELEMENTS(programs); i++) {
		double end = corpus_now() + corpus_seconds() / 4;

		if (!can_run(&dir, programs[i][0]))
			continue;
		n_run++;
		for (uint64_t seed = corpus_seed(); corpus_now() < end; seed++) {
			struct corpus_random random = {seed};

			make_pair(&random, &a, &b);
			if (a.size > 0 && b.size > 0) /* else it is about the file's existence */
				check_patch(&dir, programs[i], &a, &b, seed);
		}
	}
	corpus_dir_remove(&dir, file_names);
	if (n_run == 0)
		cr_skip_test("git and patch are missing");
}
