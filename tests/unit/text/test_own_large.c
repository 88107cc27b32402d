/* SPDX-License-Identifier: MIT */
/* Owners in texts that are large or hard to compare: right, or nearly so, and in bounded time. */
#include "corpus.h"

#include "sbx/own.h"

#define NEW_OWNER 1

struct pair {
	struct sbx_buf old;
	struct sbx_buf new;
	uint32_t n_added; /* lines that only the new text has */
};

static void pair_done(struct pair *pair)
{
	sbx_buf_done(&pair->old);
	sbx_buf_done(&pair->new);
}
#define PAIR SBX_CLEANUP(pair_done)

/* "word number\n" */
static void add(struct sbx_buf *text, const char *word, uint32_t number)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %u\n", word, number);

	cr_assert_eq(sbx_buf_append(text, line, (size_t)n), 0);
}

static void add_both(struct pair *pair, const char *word, uint32_t number)
{
	add(&pair->old, word, number);
	add(&pair->new, word, number);
}

/* Computes; the caller ends the result. limit: of CPU time. */
static struct sbx_own_file compute(const struct pair *pair, double limit, const char *what)
{
	struct sbx_own_file file = {
		.path = "f",
		.has_old = true,
		.old_data = pair->old.data,
		.old_size = pair->old.size,
		.has_new = true,
		.new_data = pair->new.data,
		.new_size = pair->new.size,
	};
	double start = corpus_cpu_seconds();

	cr_assert_eq(sbx_own_compute(&file, 1, NEW_OWNER, NULL), 0, "%s", what);
	cr_expect_lt(corpus_cpu_seconds() - start, limit * CORPUS_SLOWDOWN, "%s takes %.3f s", what,
		corpus_cpu_seconds() - start);
	return file;
}

/* Lines that are the publication's. */
static uint32_t count_new(const struct sbx_own_file *file)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < file->n_runs; i++)
		if (file->runs[i].owner == NEW_OWNER)
			n += file->runs[i].count;
	return n;
}

static void check_count(const struct pair *pair, double limit, const char *what)
{
	struct sbx_own_file file = compute(pair, limit, what);

	cr_expect_eq(count_new(&file), pair->n_added, "%s: %u lines are new, of %u", what,
		count_new(&file), pair->n_added);
	sbx_own_file_done(&file);
}

Test(own_large, a_hundred_changes_in_a_million_lines, .timeout = 120)
{
	PAIR struct pair pair = {0};
	struct sbx_own_file file;
	uint32_t line = 0;

	for (uint32_t i = 0; i < 1000000; i++) {
		uint32_t number = i % 3 ? i : 0; /* every third line is the same */

		add(&pair.old, "value", number);
		add(&pair.new, i % 10000 == 5001 ? "changed" : "value", number);
	}
	file = compute(&pair, 0.5, "a million lines");
	cr_assert_eq(file.n_lines, 1000000u);
	for (uint32_t run = 0; run < file.n_runs; run++)
		for (uint32_t i = 0; i < file.runs[run].count; i++, line++)
			cr_assert_eq(file.runs[run].owner,
				(uint32_t)(line % 10000 == 5001 ? NEW_OWNER : SBX_OWN_ORIGINAL),
				"line %u", line);
	sbx_own_file_done(&file);
}

Test(own_large, one_line_of_ten_megabytes, .timeout = 60)
{
	static const struct {
		const char *what;
		const char *old_end, *new_end; /* of the line */
		uint32_t n_new;
	} cases[] = {
		{"as it was", "\n", "\n", 0},
		{"another end of line", "\n", " \r\n", 0},
		{"without its newline", "\n", "", 0},
		{"one more byte", "\n", "y\n", 1},
	};
	static const size_t size = 10 << 20;
	SBX_FREE char *x = malloc(size);

	cr_assert(x);
	memset(x, 'x', size);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		PAIR struct pair pair = {.n_added = cases[i].n_new};

		add_both(&pair, "before", 0);
		cr_assert_eq(sbx_buf_append(&pair.old, x, size), 0);
		cr_assert_eq(sbx_buf_append_string(&pair.old, cases[i].old_end), 0);
		cr_assert_eq(sbx_buf_append(&pair.new, x, size), 0);
		cr_assert_eq(sbx_buf_append_string(&pair.new, cases[i].new_end), 0);
		check_count(&pair, 0.5, cases[i].what);
	}
}

Test(own_large, equal_lines_are_counted_not_confused, .timeout = 60)
{
	static const struct {
		const char *what;
		uint32_t n_old, n_new;
		uint32_t different; /* lines of one period */
	} cases[] = {
		{"fewer equal lines", 100000, 90000, 1},
		{"more equal lines", 90000, 100000, 1},
		{"more rows of ten", 50000, 50070, 10},
		{"fewer rows of a thousand", 100000, 98000, 1000},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		PAIR struct pair pair = {0};

		for (uint32_t line = 0; line < cases[i].n_old; line++)
			add(&pair.old, "line of a row", line % cases[i].different);
		for (uint32_t line = 0; line < cases[i].n_new; line++)
			add(&pair.new, "line of a row", line % cases[i].different);
		if (cases[i].n_new > cases[i].n_old)
			pair.n_added = cases[i].n_new - cases[i].n_old;
		check_count(&pair, 0.5, cases[i].what);
	}
}

Test(own_large, new_lines_among_lines_that_repeat, .timeout = 60)
{
	static const uint32_t different[] = {1, 2, 10, 500};

	for (size_t i = 0; i < SBX_N_ELEMENTS(different); i++) {
		PAIR struct pair pair = {0};
		struct corpus_random random = {i + 1};

		for (uint32_t line = 0; line < 50000; line++) {
			add_both(&pair, "line of them", corpus_below(&random, different[i]));
			if (line % 1000 == 500) {
				add(&pair.new, "the new one", line);
				pair.n_added++;
			}
		}
		check_count(&pair, 0.5, "new lines among lines that repeat");
	}
}

Test(own_large, shuffled_lines_have_only_moved, .timeout = 60)
{
	static const uint32_t blocks[] = {1, 7, 500};

	for (size_t i = 0; i < SBX_N_ELEMENTS(blocks); i++) {
		PAIR struct pair pair = {0};
		struct corpus_random random = {i + 1};
		uint32_t n = 50000 / blocks[i];
		SBX_FREE uint32_t *order = calloc(n, sizeof(*order));

		cr_assert(order);
		for (uint32_t k = 0; k < n; k++) {
			uint32_t other = corpus_below(&random, k + 1);

			order[k] = order[other];
			order[other] = k;
		}
		for (uint32_t k = 0; k < n; k++) {
			for (uint32_t line = 0; line < blocks[i]; line++) {
				add(&pair.old, "line of a text", k * blocks[i] + line);
				add(&pair.new, "line of a text", order[k] * blocks[i] + line);
			}
		}
		check_count(&pair, 1, "shuffled lines");
	}
}

/* Lines drawn at random that cost the comparison all that it may spend. */
static void add_noise(struct pair *pair, struct corpus_random *random, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		add(&pair->old, "noise", corpus_below(random, 500));
		add(&pair->new, "noise", corpus_below(random, 500));
	}
}

/* Beyond the bound lines may get the publication's owner, but no line anybody else's. */
Test(own_large, what_can_be_told_is_told_when_the_time_is_up, .timeout = 120)
{
	static const struct {
		const char *what;
		const char *kept; /* word of the lines between the noise that nobody changes */
		uint32_t n_different;
		double share; /* of them that keep their owner at least */
	} cases[] = {
		{"distinct lines", "kept", 20000, 1},
		{"lines that each occur four times", "kept", 5000, 0.99},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		struct corpus_random random = {1};
		PAIR struct pair pair = {0};
		struct sbx_own_file file;
		uint32_t line = 0;
		uint32_t n_kept = 0;

		add_noise(&pair, &random, 150000);
		for (uint32_t k = 0; k < 20000; k++)
			add_both(&pair, cases[i].kept, k % cases[i].n_different);
		add_noise(&pair, &random, 150000);
		file = compute(&pair, 5, cases[i].what);
		for (uint32_t run = 0; run < file.n_runs; line += file.runs[run++].count)
			for (uint32_t k = 0; k < file.runs[run].count; k++)
				if (line + k >= 150000 && line + k < 170000)
					n_kept += file.runs[run].owner == SBX_OWN_ORIGINAL;
		cr_expect_geq(n_kept, (uint32_t)(cases[i].share * 20000), "%s: %u of 20000",
			cases[i].what, n_kept);
		sbx_own_file_done(&file);
	}
}
