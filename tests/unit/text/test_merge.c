/* SPDX-License-Identifier: MIT */
#include "corpus.h"

#include "sbx/merge.h"

#define TEXT(s)                                                                                    \
	{                                                                                          \
		.data = s, .size = strlen(s)                                                       \
	}

static void merge(const char *base, const char *ours, const char *theirs, struct sbx_merge *ret)
{
	const struct sbx_merge_text texts[] = {TEXT(base), TEXT(ours), TEXT(theirs)};

	cr_assert_eq(sbx_merge(&texts[0], &texts[1], &texts[2], ret, NULL), 0);
	cr_assert(ret->clean == (ret->n_conflicts == 0));
}

static void check_clean(const char *base, const char *ours, const char *theirs, const char *merged)
{
	SBX_MERGE struct sbx_merge result = SBX_MERGE_INIT;

	merge(base, ours, theirs, &result);
	cr_assert(result.clean, "%s | %s | %s", base, ours, theirs);
	cr_expect_eq(result.merged.size, strlen(merged), "%s | %s | %s", base, ours, theirs);
	cr_expect(
		result.merged.size == 0 || !memcmp(result.merged.data, merged, result.merged.size),
		"%s | %s | %s: %.*s", base, ours, theirs, (int)result.merged.size,
		result.merged.data);
}

Test(merge, edits_of_different_lines_are_clean_both_ways)
{
	static const struct {
		const char *what, *base, *ours, *theirs, *merged;
	} cases[] = {
		{"nothing", "", "", "", ""},
		{"one side only", "a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n"},
		{"emptied on one side", "a\nb\n", "", "a\nb\n", ""},
		{"both the same", "a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", "a\nX\nc\n"},
		{"both create the same", "", "a\n", "a\n", "a\n"},
		{"both empty it", "a\n", "", "", ""},
		{"apart", "1\n2\n3\n4\n", "x\n2\n3\n4\n", "1\n2\n3\ny\n", "x\n2\n3\ny\n"},
		{"neighbours", "1\n2\n3\n", "1\nx\n3\n", "1\n2\ny\n", "1\nx\ny\n"},
		{"neighbours, alternating", "1\n2\n3\n4\n", "x\n2\nz\n4\n", "1\ny\n3\nw\n",
			"x\ny\nz\nw\n"},
		{"neighbours, one deleted", "1\n2\n3\n", "1\n3\n", "1\n2\ny\n", "1\ny\n"},
		{"neighbours, both deleted", "1\n2\n3\n4\n", "1\n3\n4\n", "1\n2\n4\n", "1\n4\n"},
		{"neighbours, one grows", "1\n2\n3\n", "1\nx\nx2\n3\n", "1\n2\ny\n",
			"1\nx\nx2\ny\n"},
		{"insertion apart", "1\n2\n3\n", "0\n1\n2\n3\n", "1\n2\ny\n", "0\n1\n2\ny\n"},
		{"same insertion", "1\n2\n", "1\nx\n2\n", "1\nx\n2\n", "1\nx\n2\n"},
		{"CRLF stays", "a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n",
			"A\r\nb\r\nC\r\n"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		check_clean(cases[i].base, cases[i].ours, cases[i].theirs, cases[i].merged);
		check_clean(cases[i].base, cases[i].theirs, cases[i].ours, cases[i].merged);
	}
}

#define LINES_2_TO_8 "l2\nl3\nl4\nl5\nl6\nl7\nl8\n"

Test(merge, final_newline_is_that_of_the_side_that_changed_it)
{
	static const char base[] = "l1\n" LINES_2_TO_8 "l9";
	static const char first[] = "L1\n" LINES_2_TO_8 "l9";
	static const char middle[] = "l1\nl2\nl3\nl4\nL5\nl6\nl7\nl8\nl9";

	check_clean(base, first, middle, "L1\nl2\nl3\nl4\nL5\nl6\nl7\nl8\nl9");
	check_clean(base, first, "l1\n" LINES_2_TO_8 "l9\n", "L1\n" LINES_2_TO_8 "l9\n");
	check_clean(base, "l1\n" LINES_2_TO_8 "l9\nl10", first, "L1\n" LINES_2_TO_8 "l9\nl10");
	check_clean("a\nb", "A\nb", "a\nb\n", "A\nb\n");
	check_clean("a\nb\n", "A\nb\n", "a\nb", "A\nb");
}

Test(merge, trailing_blank_lines_survive)
{
	static const char *const ends[] = {"", "\n", "\n\n", "\n\n\n"};

	for (size_t i = 0; i < SBX_N_ELEMENTS(ends); i++) {
		char base[64];
		char ours[64];
		char theirs[64];
		char merged[64];

		(void)snprintf(base, sizeof(base), "a\nb\nc\nd\n%s", ends[i]);
		(void)snprintf(ours, sizeof(ours), "A\nb\nc\nd\n%s", ends[i]);
		(void)snprintf(theirs, sizeof(theirs), "a\nb\nC\nd\n%s", ends[i]);
		(void)snprintf(merged, sizeof(merged), "A\nb\nC\nd\n%s", ends[i]);
		check_clean(base, ours, theirs, merged);
	}
}

Test(merge, conflicts_name_the_lines_of_all_three)
{
	static const struct {
		const char *what, *base, *ours, *theirs;
		struct sbx_merge_conflict conflict; /* the first */
		size_t n;
	} cases[] = {
		{"one line", "1\n2\n3\n", "1\nx\n3\n", "1\ny\n3\n", {{2, 1}, {2, 1}, {2, 1}}, 1},
		{"last line, no newline", "1\n2", "1\nx", "1\ny", {{2, 1}, {2, 1}, {2, 1}}, 1},
		{"edit against deletion", "1\n2\n3\n", "1\n3\n", "1\ny\n3\n",
			{{2, 1}, {2, 0}, {2, 1}}, 1},
		{"insertions at one point", "1\n2\n", "1\nx\n2\n", "1\ny\n2\n",
			{{2, 0}, {2, 1}, {2, 1}}, 1},
		{"appends", "1\n", "1\nx\n", "1\ny\n", {{2, 0}, {2, 1}, {2, 1}}, 1},
		{"deletion against append", "1\n2\n", "1\n", "1\n2\n3\n", {{2, 1}, {2, 0}, {2, 2}},
			1},
		{"emptied against append", "1\n2\n", "", "1\n2\n3\n", {{1, 2}, {1, 0}, {1, 3}}, 1},
		{"deletion against insertion before", "1\n2\n3\n", "1\n3\n", "1\nx\n2\n3\n",
			{{2, 1}, {2, 0}, {2, 2}}, 1},
		{"deletion against insertion inside", "1\n2\n3\n4\n", "1\n4\n", "1\n2\nx\n3\n4\n",
			{{2, 2}, {2, 0}, {2, 3}}, 1},
		{"both create", "", "x\n", "y\n", {{1, 0}, {1, 1}, {1, 1}}, 1},
		{"append against a last line that loses its newline", "1\n2\n", "1\n2", "1\n2\n3\n",
			{{2, 1}, {2, 1}, {2, 2}}, 1},
		{"append to a last line without newline on both sides", "1\n2", "1\n2\n3",
			"1\n2\n4", {{2, 1}, {2, 2}, {2, 2}}, 1},
		{"neighbours that both grow", "1\n2\n3\n4\n", "1\nx\nx2\n3\n4\n",
			"1\n2\ny\ny2\n4\n", {{2, 2}, {2, 3}, {2, 3}}, 1},
		{"neighbours, one deleted and one grown", "1\n2\n3\n4\n", "1\n3\n4\n",
			"1\n2\ny\ny2\n4\n", {{2, 2}, {2, 1}, {2, 3}}, 1},
		{"two of them", "1\n2\n3\n", "x\n2\nx\n", "y\n2\ny\n", {{1, 1}, {1, 1}, {1, 1}}, 2},
		{"shifted", "1\n2\n3\n4\n5\n", "0\n1\n2\n3\n4\nx\n", "2\n3\n4\ny\n",
			{{1, 1}, {1, 2}, {1, 0}}, 2},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_MERGE struct sbx_merge result = SBX_MERGE_INIT;
		const struct sbx_merge_conflict *conflict = &cases[i].conflict;
		SBX_MERGE struct sbx_merge turned = SBX_MERGE_INIT;

		merge(cases[i].base, cases[i].ours, cases[i].theirs, &result);
		cr_assert_not(result.clean, "%s", cases[i].what);
		cr_expect_eq(result.n_conflicts, cases[i].n, "%s", cases[i].what);
		cr_expect(!memcmp(result.conflicts, conflict, sizeof(*conflict)),
			"%s: base %u,%u ours %u,%u theirs %u,%u", cases[i].what,
			result.conflicts->base.start, result.conflicts->base.count,
			result.conflicts->ours.start, result.conflicts->ours.count,
			result.conflicts->theirs.start, result.conflicts->theirs.count);
		merge(cases[i].base, cases[i].theirs, cases[i].ours, &turned);
		cr_expect_eq(turned.n_conflicts, cases[i].n, "%s", cases[i].what);
	}
}

Test(merge, markers_start_lines_and_keep_their_ends)
{
	static const struct {
		const char *base, *ours, *theirs, *text;
	} cases[] = {
		{"1\n2\n3\n", "1\nx\n3\n", "1\ny\nz\n3\n",
			"1\n<<<<<<< O\nx\n||||||| B\n2\n=======\ny\nz\n>>>>>>> T\n3\n"},
		{"1\n2", "1\nx", "1\ny", "1\n<<<<<<< O\nx\n||||||| B\n2\n=======\ny\n>>>>>>> T\n"},
		{"1\r\n2", "1\r\nx\r\n", "1\r\ny",
			"1\r\n<<<<<<< O\r\nx\r\n||||||| B\r\n2\r\n=======\r\ny\r\n>>>>>>> T\r\n"},
		{"1\n2\n", "1\n", "1\n2\n3\n",
			"1\n<<<<<<< O\n||||||| B\n2\n=======\n2\n3\n>>>>>>> T\n"},
		{"1\n2\n3\n", "x\n2\n3\n", "1\n2\ny", "x\n2\ny"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		const struct sbx_merge_text base = {cases[i].base, strlen(cases[i].base), "B"};
		const struct sbx_merge_text ours = {cases[i].ours, strlen(cases[i].ours), "O"};
		const struct sbx_merge_text theirs = {
			cases[i].theirs, strlen(cases[i].theirs), "T"};
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

		cr_assert_eq(sbx_merge_markers(&base, &ours, &theirs, &out, NULL), 0);
		cr_expect_str_eq(out.data, cases[i].text, "case %zu", i);
	}
}

/* -------- the corpus */

static struct corpus_text words;
static struct corpus_text base_text;
static struct corpus_text side_text;

struct triple {
	struct sbx_buf source; /* holds what the texts borrow */
	struct sbx_buf bytes[3];
};

static void triple_done(struct triple *triple)
{
	sbx_buf_done(&triple->source);
	for (int i = 0; i < 3; i++)
		sbx_buf_done(&triple->bytes[i]);
}

static void make_base(
	struct corpus_random *random, const struct corpus_sources *sources, struct triple *triple)
{
	static const uint32_t n_words[] = {2, 3, 5, 10, 30, 1000};

	if (sources && corpus_below(random, 2)) {
		corpus_source_text(random, sources, &triple->source, &base_text);
		words = base_text;
	} else {
		corpus_words(&words, n_words[corpus_below(random, SBX_N_ELEMENTS(n_words))]);
		corpus_random_text(random, &base_text, &words, corpus_below(random, 60));
	}
	corpus_insert(&words, 0, "a new line", 10);
	corpus_insert(&words, 0, "\tanother;", 9);
}

static void make_triple(
	struct corpus_random *random, const struct corpus_sources *sources, struct triple *triple)
{
	uint32_t n_edits = corpus_below(random, 4) ? 4 : 20;

	make_base(random, sources, triple);
	corpus_bytes(random, &base_text, &triple->bytes[0]);
	for (int side = 1; side < 3; side++) {
		uint32_t n = corpus_below(random, n_edits);

		side_text = base_text;
		for (uint32_t i = 0; i < n; i++)
			corpus_edit(random, &side_text, &words);
		corpus_bytes(random, &side_text, &triple->bytes[side]);
	}
}

static struct sbx_merge_text text_of(const struct sbx_buf *bytes)
{
	return (struct sbx_merge_text){.data = bytes->data, .size = bytes->size};
}

static void merge_triple(const struct triple *triple, int ours, int theirs, struct sbx_merge *ret)
{
	const struct sbx_merge_text base = text_of(&triple->bytes[0]);
	const struct sbx_merge_text our_text = text_of(&triple->bytes[ours]);
	const struct sbx_merge_text their_text = text_of(&triple->bytes[theirs]);

	cr_assert_eq(sbx_merge(&base, &our_text, &their_text, ret, NULL), 0);
}

static bool same(const struct sbx_buf *a, const struct sbx_buf *b)
{
	return a->size == b->size && (a->size == 0 || !memcmp(a->data, b->data, a->size));
}

static const char *const file_names[] = {"base", "ours", "theirs", "out", NULL};

static bool check_against_git(
	const struct corpus_dir *dir, const struct triple *triple, uint64_t seed)
{
	static const char *const argv[] = {
		"git", "merge-file", "-p", "-q", "ours", "base", "theirs", NULL};
	SBX_MERGE struct sbx_merge result = SBX_MERGE_INIT;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	for (int i = 0; i < 3; i++)
		corpus_write(dir, file_names[i], triple->bytes[i].data, triple->bytes[i].size);
	if (corpus_run(dir, argv) != 0)
		return false;
	corpus_output(dir, &out);
	merge_triple(triple, 1, 2, &result);
	cr_assert(result.clean, "seed %llu: git is clean", (unsigned long long)seed);
	cr_assert(same(&result.merged, &out), "seed %llu: git has other bytes",
		(unsigned long long)seed);
	return true;
}

Test(merge, clean_results_are_those_of_git, .timeout = 300)
{
	static const char *const version[] = {"git", "--version", NULL};
	SBX_CLEANUP(triple_done) struct triple triple = {0};
	double end = corpus_now() + corpus_seconds() * 3;
	struct corpus_sources sources;
	bool have_sources = corpus_sources_init(&sources);
	struct corpus_dir dir;
	size_t n_clean = 0;
	bool git;

	corpus_dir_init(&dir);
	git = corpus_run(&dir, version) == 0;
	for (uint64_t seed = corpus_seed(); git && corpus_now() < end; seed++) {
		struct corpus_random random = {seed};

		make_triple(&random, have_sources ? &sources : NULL, &triple);
		n_clean += check_against_git(&dir, &triple, seed);
	}
	corpus_dir_remove(&dir, file_names);
	if (have_sources)
		globfree(&sources.files);
	if (!git)
		cr_skip_test("git is missing");
	cr_expect_gt(n_clean, 20u, "the corpus has too few clean merges to say anything");
}

static uint32_t count_line(const struct sbx_lines *lines, uint32_t hash)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < lines->n; i++)
		n += lines->hashes[i] == hash;
	return n;
}

static void split(const struct sbx_buf *bytes, struct sbx_lines *ret)
{
	/* loose, for a final newline may come or go */
	cr_assert_eq(sbx_lines_split(bytes->data, bytes->size, SBX_LINES_LOOSE, ret, NULL), 0);
}

/* What a side has that base had not, the result has too. */
static void check_nothing_vanished(const struct sbx_buf *base_bytes,
	const struct sbx_buf *side_bytes, const struct sbx_buf *merged_bytes, uint64_t seed)
{
	SBX_LINES struct sbx_lines base = SBX_LINES_INIT;
	SBX_LINES struct sbx_lines side = SBX_LINES_INIT;
	SBX_LINES struct sbx_lines merged = SBX_LINES_INIT;

	split(base_bytes, &base);
	split(side_bytes, &side);
	split(merged_bytes, &merged);
	for (uint32_t i = 0; i < side.n; i++)
		if (count_line(&base, side.hashes[i]) == 0)
			cr_assert_gt(count_line(&merged, side.hashes[i]), 0u,
				"seed %llu: line %u of a side is gone", (unsigned long long)seed,
				i);
}

Test(merge, is_symmetric_and_loses_no_new_line, .timeout = 120)
{
	SBX_CLEANUP(triple_done) struct triple triple = {0};
	double end = corpus_now() + corpus_seconds() / 2;

	for (uint64_t seed = corpus_seed(); corpus_now() < end; seed++) {
		SBX_MERGE struct sbx_merge result = SBX_MERGE_INIT;
		SBX_MERGE struct sbx_merge turned = SBX_MERGE_INIT;
		struct corpus_random random = {seed};

		make_triple(&random, NULL, &triple);
		merge_triple(&triple, 1, 2, &result);
		merge_triple(&triple, 2, 1, &turned);
		cr_assert_eq(result.clean, turned.clean, "seed %llu", (unsigned long long)seed);
		cr_assert_eq(result.n_conflicts, turned.n_conflicts, "seed %llu",
			(unsigned long long)seed);
		if (!result.clean)
			continue;
		cr_assert(same(&result.merged, &turned.merged), "seed %llu",
			(unsigned long long)seed);
		for (int side = 1; side < 3; side++)
			check_nothing_vanished(
				&triple.bytes[0], &triple.bytes[side], &result.merged, seed);
	}
}

Test(merge, trivial_sides_are_taken_as_they_are, .timeout = 60)
{
	SBX_CLEANUP(triple_done) struct triple triple = {0};

	for (uint64_t seed = 1; seed < 500; seed++) {
		static const int sides[][3] = {{0, 1, 1}, {1, 0, 1}, {1, 1, 1}};
		struct corpus_random random = {seed};

		make_triple(&random, NULL, &triple);
		for (size_t i = 0; i < SBX_N_ELEMENTS(sides); i++) {
			SBX_MERGE struct sbx_merge result = SBX_MERGE_INIT;

			merge_triple(&triple, sides[i][0], sides[i][1], &result);
			cr_assert(result.clean, "seed %llu", (unsigned long long)seed);
			cr_assert(same(&result.merged, &triple.bytes[sides[i][2]]),
				"seed %llu, case %zu", (unsigned long long)seed, i);
		}
	}
}

/* -------- lines that are all different, so that it is known what a merge must hold */

#define KNOWN_LINES 64 /* of a text at most */

/* Numbers of lines in their order; each is written once, so a number is one author's one line. */
struct known_text {
	uint32_t lines[KNOWN_LINES];
	uint32_t n;
};

static void known_insert(struct known_text *text, uint32_t at, uint32_t line)
{
	if (text->n == KNOWN_LINES)
		return;
	memmove(&text->lines[at + 1], &text->lines[at], (text->n - at) * sizeof(line));
	text->lines[at] = line;
	text->n++;
}

static void known_delete(struct known_text *text, uint32_t at)
{
	text->n--;
	memmove(&text->lines[at], &text->lines[at + 1], (text->n - at) * sizeof(*text->lines));
}

static void known_edit(struct corpus_random *random, struct known_text *text, uint32_t *next)
{
	uint32_t at = corpus_below(random, text->n + 1);
	uint32_t kind = corpus_below(random, 3);

	if (kind > 0 && at < text->n)
		known_delete(text, at);
	if (kind < 2)
		known_insert(text, at, (*next)++);
}

static void known_bytes(
	struct corpus_random *random, const struct known_text *text, struct sbx_buf *ret)
{
	sbx_buf_clear(ret);
	for (uint32_t i = 0; i < text->n; i++)
		cr_assert_eq(sbx_buf_printf(ret, "line %u\n", text->lines[i]), 0);
	if (ret->size > 0 && corpus_below(random, 5) == 0)
		ret->size--;
}

static void known_parse(const struct sbx_buf *bytes, struct known_text *ret)
{
	SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;

	split(bytes, &lines);
	ret->n = 0;
	for (uint32_t i = 0; i < lines.n; i++) {
		char line[32] = "";
		uint32_t number;

		memcpy(line, sbx_line_data(&lines, i),
			SBX_MIN(sbx_line_size(&lines, i), sizeof(line) - 1));
		number = (uint32_t)strtoul(line + strlen("line "), NULL, 10);
		cr_assert(!strncmp(line, "line ", 5) && ret->n < KNOWN_LINES, "%s", line);
		ret->lines[ret->n++] = number;
	}
}

static bool known_has(const struct known_text *text, uint32_t line)
{
	for (uint32_t i = 0; i < text->n; i++)
		if (text->lines[i] == line)
			return true;
	return false;
}

/* What of text is in other, in text's order. */
static struct known_text known_common(const struct known_text *text, const struct known_text *other)
{
	struct known_text common = {.n = 0};

	for (uint32_t i = 0; i < text->n; i++)
		if (known_has(other, text->lines[i]))
			common.lines[common.n++] = text->lines[i];
	return common;
}

/*
 * Every line that a side wrote is there, every one that a side deleted is not, all others are; and
 * each side finds its lines in its order.
 */
static void check_known(
	const struct known_text texts[3], const struct known_text *merged, unsigned long long seed)
{
	uint32_t n = 0;

	for (int side = 0; side < 3; side++) {
		struct known_text x = known_common(&texts[side], merged);
		struct known_text y = known_common(merged, &texts[side]);

		cr_assert(x.n == y.n && !memcmp(x.lines, y.lines, x.n * sizeof(*x.lines)),
			"seed %llu: lines of side %d are in another order", seed, side);
		for (uint32_t i = 0; side > 0 && i < texts[side].n; i++) {
			uint32_t line = texts[side].lines[i];
			bool kept =
				!known_has(&texts[0], line) || known_has(&texts[3 - side], line);

			cr_assert_eq(
				known_has(merged, line), kept, "seed %llu: line %u", seed, line);
			n += kept && !(side == 2 && known_has(&texts[1], line));
		}
	}
	cr_assert_eq(merged->n, n, "seed %llu: a line is there twice", seed);
}

Test(merge, clean_results_hold_what_both_sides_wrote_and_nothing_that_one_deleted, .timeout = 120)
{
	SBX_CLEANUP(triple_done) struct triple triple = {0};
	double end = corpus_now() + corpus_seconds() / 2;
	size_t n_clean = 0;

	for (uint64_t seed = corpus_seed(); corpus_now() < end; seed++) {
		SBX_MERGE struct sbx_merge result = SBX_MERGE_INIT;
		struct corpus_random random = {seed};
		struct known_text texts[3] = {0};
		struct known_text merged;
		uint32_t next = 0;

		for (uint32_t n = corpus_below(&random, 20); n > 0; n--)
			known_insert(&texts[0], texts[0].n, next++);
		for (int side = 0; side < 3; side++) {
			texts[side] = texts[0];
			for (uint32_t n = side ? corpus_below(&random, 5) : 0; n > 0; n--)
				known_edit(&random, &texts[side], &next);
			known_bytes(&random, &texts[side], &triple.bytes[side]);
		}
		merge_triple(&triple, 1, 2, &result);
		if (!result.clean)
			continue;
		n_clean++;
		known_parse(&result.merged, &merged);
		check_known(texts, &merged, (unsigned long long)seed);
	}
	cr_expect_gt(n_clean, 100u);
}
