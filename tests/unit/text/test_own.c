/* SPDX-License-Identifier: MIT */
#include "corpus.h"

#include "sbx/own.h"

#define NEW_OWNER 99
#define FILES_MAX 6
#define RUNS_MAX  12

/*
 * A file of a case: owners are letters, one for each line ('.': original, '*': the publication,
 * else the letter itself); old_owners NULL means that there are no runs.
 */
struct case_file {
	const char *path;
	const char *old; /* NULL: added */
	const char *old_owners;
	const char *new; /* NULL: deleted */
	const char *expected;
};

static uint32_t owner_of(char letter)
{
	if (letter == '.')
		return SBX_OWN_ORIGINAL;
	return letter == '*' ? NEW_OWNER : (uint32_t)letter;
}

static char letter_of(uint32_t owner)
{
	if (owner == SBX_OWN_ORIGINAL)
		return '.';
	return owner == NEW_OWNER ? '*' : (char)owner;
}

static uint32_t make_runs(const char *owners, struct sbx_run *ret)
{
	uint32_t n = 0;

	for (; owners && *owners; owners++) {
		if (n == 0 || ret[n - 1].owner != owner_of(*owners))
			ret[n++] = (struct sbx_run){0, owner_of(*owners)};
		ret[n - 1].count++;
	}
	cr_assert_leq(n, (uint32_t)RUNS_MAX);
	return n;
}

static void make_file(
	const struct case_file *from, struct sbx_run runs[RUNS_MAX], struct sbx_own_file *ret)
{
	*ret = (struct sbx_own_file){.path = from->path};
	if (from->old) {
		ret->has_old = true;
		ret->old_data = from->old;
		ret->old_size = strlen(from->old);
		ret->old_runs = runs;
		ret->n_old_runs = make_runs(from->old_owners, runs);
	}
	if (from->new) {
		ret->has_new = true;
		ret->new_data = from->new;
		ret->new_size = strlen(from->new);
	}
}

/* The owners as letters, and that the runs are as they must be. */
static void spell(const struct sbx_own_file *file, struct sbx_buf *ret)
{
	uint32_t n = 0;

	cr_assert_eq(sbx_buf_append_string(ret, ""), 0);
	for (uint32_t i = 0; i < file->n_runs; i++) {
		char letter = letter_of(file->runs[i].owner);

		cr_assert_gt(file->runs[i].count, 0u, "%s", file->path);
		if (i > 0)
			cr_assert_neq(file->runs[i].owner, file->runs[i - 1].owner);
		for (uint32_t line = 0; line < file->runs[i].count; line++)
			cr_assert_eq(sbx_buf_append(ret, &letter, 1), 0);
		n += file->runs[i].count;
	}
	cr_assert_eq(n, file->n_lines, "%s: runs do not tile it", file->path);
}

static void check_files(const char *what, const struct case_file *case_files, bool turned)
{
	struct sbx_own_file files[FILES_MAX];
	struct sbx_run runs[FILES_MAX][RUNS_MAX];
	struct sbx_err err = SBX_ERR_INIT;
	size_t n = 0;

	while (n < FILES_MAX && case_files[n].path)
		n++;
	for (size_t i = 0; i < n; i++)
		make_file(&case_files[turned ? n - 1 - i : i], runs[i], &files[i]);
	cr_assert_eq(sbx_own_compute(files, n, NEW_OWNER, &err), 0, "%s: %s", what, err.message);
	for (size_t i = 0; i < n; i++) {
		const struct case_file *from = &case_files[turned ? n - 1 - i : i];
		SBX_BUF struct sbx_buf spelled = SBX_BUF_INIT;

		spell(&files[i], &spelled);
		cr_expect_str_eq(spelled.data, from->expected ? from->expected : "",
			"%s: %s%s is %s", what, from->path, turned ? " (files in reverse)" : "",
			spelled.data);
		sbx_own_file_done(&files[i]);
	}
}

struct own_case {
	const char *what;
	struct case_file files[FILES_MAX];
};

static void check_cases(const struct own_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		check_files(cases[i].what, cases[i].files, false);
		check_files(cases[i].what, cases[i].files, true);
	}
}

Test(own, unchanged_lines_keep_their_owner)
{
	static const struct own_case cases[] = {
		{"new file", {{"f", NULL, NULL, "a\nb\n", "**"}}},
		{"empty file", {{"f", NULL, NULL, "", ""}}},
		{"emptied file", {{"f", "a\n", "A", "", ""}}},
		{"deleted file", {{"f", "a\n", "A", NULL, NULL}}},
		{"same content", {{"f", "a\nb\n", "AB", "a\nb\n", "AB"}}},
		{"content that nobody changed before",
			{{"f", "a\nb\nc\n", NULL, "a\nX\nc\n", ".*."}}},
		{"changed line", {{"f", "a\nb\nc\n", "ABC", "a\nX\nc\n", "A*C"}}},
		{"added lines", {{"f", "a\nb\n", "AB", "x\na\ny\nb\nz\n", "*A*B*"}}},
		{"removed line", {{"f", "a\nb\nc\n", "ABA", "a\nc\n", "AA"}}},
		{"rewritten", {{"f", "a\nb\n", "AB", "x\ny\nz\n", "***"}}},
		{"one more equal line", {{"f", "a\na\n", "AA", "a\na\na\n", "AA*"}}},
		{"repeated text written anew",
			{{"f", "f()\n{\n}\n", "AAA", "f()\n{\n}\ng()\n{\n}\n", "AAA***"}}},
	};

	check_cases(cases, SBX_N_ELEMENTS(cases));
}

Test(own, line_ends_are_nobodys_work)
{
	static const struct own_case cases[] = {
		{"final newline added", {{"f", "a\nb", "AB", "a\nb\n", "AB"}}},
		{"final newline removed", {{"f", "a\nb\n", "AB", "a\nb", "AB"}}},
		{"line appended after a missing newline", {{"f", "a\nb", "AA", "a\nb\nc", "AA*"}}},
		{"to CRLF", {{"f", "a\nb\n", "AB", "a\r\nb\r\n", "AB"}}},
		{"to LF", {{"f", "a\r\nb\r\n", "AB", "a\nb\n", "AB"}}},
		{"to CRLF without final newline",
			{{"f", "a\nb\nc", "ABC", "a\r\nb\r\nc\r", "ABC"}}},
		{"blanks at line ends", {{"f", "a  \nb\t\n\n", "ABC", "a\nb\n  \n", "ABC"}}},
		{"to CRLF with an edit", {{"f", "a\nb\nc\n", "ABC", "a\r\nX\r\nc\r\n", "A*C"}}},
		{"indentation is a change", {{"f", "a\nb\n", "AB", "a\n  b\n", "A*"}}},
	};

	check_cases(cases, SBX_N_ELEMENTS(cases));
}

#define FUNCTION_F "int first(void)\n{\n\treturn compute_first();\n}\n"
#define FUNCTION_G "int second(void)\n{\n\treturn compute_second();\n}\n"
#define FUNCTION_H "int third(int x)\n{\n\treturn compute_third(x);\n}\n"

Test(own, moved_lines_keep_their_owner)
{
	static const struct own_case cases[] = {
		{"line to the end",
			{{"f", "one\ntwo\nthree\n", "ABC", "two\nthree\none\n", "BCA"}}},
		{"short lines",
			{{"f", "1\n2\n3\n4\n5\n6\n", "ABCDEF", "1\n4\n5\n6\n2\n3\n", "ADEFBC"}}},
		{"reversed", {{"f", "one\ntwo\nthree\n", "ABC", "three\ntwo\none\n", "CBA"}}},
		{"functions exchanged", {{"f", FUNCTION_F "\n" FUNCTION_G, "AAAA.BBBB",
						FUNCTION_G "\n" FUNCTION_F, "BBBB*AAAA"}}},
		{"moved and edited", {{"f", "one\ntwo\nthree\nfour\n", "AAAB",
					     "four\none\nXXX\nthree\n", "BA*A"}}},
		{"moved to another file",
			{{"f", FUNCTION_F FUNCTION_G, "AAAABBBB", FUNCTION_F, "AAAA"},
				{"g", FUNCTION_H, "CCCC", FUNCTION_H FUNCTION_G, "CCCCBBBB"}}},
		{"moved to a new file",
			{{"f", FUNCTION_F FUNCTION_G, "AAAABBBB", FUNCTION_F, "AAAA"},
				{"g", NULL, NULL, "#include \"f.h\"\n" FUNCTION_G, "*BBBB"}}},
		{"file split into two",
			{{"f", FUNCTION_F FUNCTION_G FUNCTION_H, "AAAABBBBCCCC", NULL, NULL},
				{"g", NULL, NULL, FUNCTION_H "#define G\n", "CCCC*"},
				{"h", NULL, NULL, FUNCTION_F FUNCTION_G, "AAAABBBB"}}},
		{"near before far", {{"a", "a line to be moved\nx\n", "AX", "x\n", "X"},
					    {"b", "a line to be moved\nx\ny\n", "BXY",
						    "x\ny\na line to be moved\n", "XYB"}}},
	};

	check_cases(cases, SBX_N_ELEMENTS(cases));
}

Test(own, copies_belong_to_who_made_them)
{
	static const struct own_case cases[] = {
		{"within a file", {{"f", FUNCTION_F, "AAAA", FUNCTION_F FUNCTION_F, "AAAA****"}}},
		{"of a file that stays", {{"g", NULL, NULL, FUNCTION_F, "****"}}},
		{"of a file that changes elsewhere",
			{{"f", FUNCTION_F, "AAAA", FUNCTION_F "x\n", "AAAA*"},
				{"g", NULL, NULL, FUNCTION_F, "****"}}},
		{"of lines that moved: the first by path has them",
			{{"f", FUNCTION_F FUNCTION_G FUNCTION_H, "AAAABBBBCCCC", FUNCTION_F,
				 "AAAA"},
				{"g", NULL, NULL, FUNCTION_G FUNCTION_H, "BBBBCCCC"},
				{"h", NULL, NULL, FUNCTION_G FUNCTION_H, "********"}}},
		{"of a renamed file", {{"old", FUNCTION_F, "ABAB", NULL, NULL},
					      {"new1", NULL, NULL, FUNCTION_F, "ABAB"},
					      {"new2", NULL, NULL, FUNCTION_F, "****"}}},
		{"braces and blank lines are no move",
			{{"f", "{\n}\n\nx\n", "AAAA", "x\n", "A"},
				{"g", "y\n", "B", "y\n{\n}\n\n", "B***"}}},
		{"a common line is no move between files",
			{{"f", "x\n\treturn 0;\n", "AA", "x\n", "A"},
				{"g", "y\n", "B", "y\n\treturn 0;\n", "B*"}}},
		{"a line that the file has elsewhere is no move",
			{{"f", "\treturn 0;\nx\ny\n\treturn 0;\nz\n", "ABCAE",
				"\treturn 0;\nx\ny\nz\n\treturn 0;\n", "ABCE*"}}},
	};

	check_cases(cases, SBX_N_ELEMENTS(cases));
}

#define TEN_LINES                                                                                  \
	"line one\nline two\nline three\nline four\nline five\n"                                   \
	"line six\nline seven\nline eight\nline nine\nline ten\n"
#define TEN_LINES_CRLF                                                                             \
	"line one\r\nline two\r\nline three\r\nline four\r\nline five\r\n"                         \
	"line six\r\nline seven\r\nline eight\r\nline nine\r\nline ten\r\n"
#define TEN_LINES_EDITED                                                                           \
	"line one\nline two\nline 3\nline four\nline five\n"                                       \
	"line six\nline seven\nline eight\nline nine\nline ten\nline eleven\n"

Test(own, renamed_files_keep_their_owners)
{
	static const struct own_case cases[] = {
		{"as it was", {{"a.txt", TEN_LINES, "AABAAAAAAA", NULL, NULL},
				      {"b.txt", NULL, NULL, TEN_LINES, "AABAAAAAAA"}}},
		{"and edited", {{"a.txt", TEN_LINES, "AABAAAAAAA", NULL, NULL},
				       {"b.txt", NULL, NULL, TEN_LINES_EDITED, "AA*AAAAAAA*"}}},
		{"and converted", {{"a.txt", TEN_LINES, "AABAAAAAAA", NULL, NULL},
					  {"b.txt", NULL, NULL, TEN_LINES_CRLF, "AABAAAAAAA"}}},
		{"that nobody changed before",
			{{"a.txt", TEN_LINES, NULL, NULL, NULL},
				{"b.txt", NULL, NULL, TEN_LINES, ".........."}}},
		{"with their directory, equal contents by name",
			{{"pkg/a", "same\n", "A", NULL, NULL}, {"pkg/b", "same\n", "B", NULL, NULL},
				{"lib/b", NULL, NULL, "same\n", "B"},
				{"lib/a", NULL, NULL, "same\n", "A"}}},
		{"the most similar first",
			{{"old", TEN_LINES, "AAAAAAAAAA", NULL, NULL},
				{"new1", NULL, NULL, TEN_LINES_EDITED, "***********"},
				{"new2", NULL, NULL, TEN_LINES, "AAAAAAAAAA"}}},
		{"and the old name used for another text",
			{{"a.txt", TEN_LINES, "AABAAAAAAA", "quite another text\n", "*"},
				{"b.txt", NULL, NULL, TEN_LINES, "AABAAAAAAA"}}},
		{"names exchanged", {{"a", FUNCTION_F, "AAAA", FUNCTION_G, "BBBB"},
					    {"b", FUNCTION_G, "BBBB", FUNCTION_F, "AAAA"}}},
		{"over another file", {{"a", FUNCTION_F, "AAAA", FUNCTION_G, "BBBB"},
					      {"b", FUNCTION_G, "BBBB", NULL, NULL}}},
		{"in a ring", {{"a", FUNCTION_F, "AAAA", FUNCTION_G, "BBBB"},
				      {"b", FUNCTION_G, "BBBB", FUNCTION_H, "CCCC"},
				      {"c", FUNCTION_H, "CCCC", FUNCTION_F, "AAAA"}}},
		{"not when the text stays under its name and is edited",
			{{"a", TEN_LINES, "AAAAAAAAAA", TEN_LINES_EDITED, "AA*AAAAAAA*"},
				{"b", NULL, NULL, TEN_LINES, "**********"}}},
		{"not when small contents are equal by chance",
			{{"a", "1\n", "A", "2\n", "*"}, {"b", "2\n", "B", "3\n", "*"}}},
		{"not when only little is common",
			{{"a", "one\ntwo\nthree\n", "AAA", NULL, NULL},
				{"b", NULL, NULL, "one\nfour\nfive\nsix\n", "****"}}},
	};

	check_cases(cases, SBX_N_ELEMENTS(cases));
}

Test(own, renamed_file_names_its_source)
{
	struct sbx_own_file files[] = {
		{.path = "new", .has_new = true, .new_data = "text\n", .new_size = 5},
		{.path = "old", .has_old = true, .old_data = "text\n", .old_size = 5},
	};

	cr_assert_eq(sbx_own_compute(files, 2, NEW_OWNER, NULL), 0);
	cr_expect_str_eq(files[0].renamed_from, "old");
	cr_expect_null(files[1].renamed_from);
	for (int i = 0; i < 2; i++)
		sbx_own_file_done(&files[i]);
}

Test(own, runs_that_do_not_fit_are_refused_by_name)
{
	static const struct sbx_run runs[] = {{1, 1}, {2, 2}};
	struct sbx_own_file file = {
		.path = "dir/file",
		.has_old = true,
		.old_data = "a\nb\n",
		.old_size = 4,
		.old_runs = runs,
		.n_old_runs = 2,
		.has_new = true,
	};
	struct sbx_err err = SBX_ERR_INIT;

	cr_expect_eq(sbx_own_compute(&file, 1, NEW_OWNER, &err), -EINVAL);
	cr_expect_not_null(strstr(err.message, "dir/file"), "%s", err.message);
	cr_expect_null(file.runs);
}

Test(own, content_over_the_limits_is_refused_by_name)
{
	struct sbx_own_file file = {
		.path = "dir/file",
		.has_new = true,
		.new_data = "",
		.new_size = (size_t)SBX_LINES_BYTES_MAX + 1,
	};
	struct sbx_err err = SBX_ERR_INIT;

	cr_expect_eq(sbx_own_compute(&file, 1, NEW_OWNER, &err), -EFBIG);
	cr_expect_not_null(strstr(err.message, "dir/file"), "%s", err.message);
}

/* -------- a model that knows who wrote each line */

#define MODEL_FILES   5
#define MODEL_LINES   400
#define MODEL_AUTHORS 6

/* A line is written once: its number tells its text, and who wrote it. */
struct model_file {
	bool exists;
	uint32_t lines[MODEL_LINES];
	uint32_t n;
	struct sbx_run *runs; /* as computed last */
	uint32_t n_runs;
};

struct model {
	struct corpus_random random;
	struct model_file files[MODEL_FILES];
	uint8_t authors[1 << 20];
	uint32_t n_lines;
};

static struct model model;

static void model_bytes(const struct model_file *file, struct sbx_buf *ret)
{
	sbx_buf_clear(ret);
	cr_assert_eq(sbx_buf_append_string(ret, ""), 0);
	for (uint32_t i = 0; i < file->n; i++)
		cr_assert_eq(sbx_buf_printf(ret, "author %u wrote line number %u\n",
				     model.authors[file->lines[i]], file->lines[i]),
			0);
}

static void model_insert(struct model_file *file, uint32_t at, const uint32_t *lines, uint32_t n)
{
	n = SBX_MIN(n, MODEL_LINES - file->n);
	memmove(&file->lines[at + n], &file->lines[at], (file->n - at) * sizeof(*lines));
	memcpy(&file->lines[at], lines, n * sizeof(*lines));
	file->n += n;
}

static void model_write(struct model_file *file, uint8_t author)
{
	uint32_t n = 1 + corpus_below(&model.random, 5);
	uint32_t lines[5];

	for (uint32_t i = 0; i < n; i++) {
		cr_assert_lt(model.n_lines, SBX_N_ELEMENTS(model.authors));
		model.authors[model.n_lines] = author;
		lines[i] = model.n_lines++;
	}
	model_insert(file, corpus_below(&model.random, file->n + 1), lines, n);
}

/* Takes some lines out; returns how many. */
static uint32_t model_cut(struct model_file *file, uint32_t ret_lines[8])
{
	uint32_t wanted = 1 + corpus_below(&model.random, 8);
	uint32_t n = SBX_MIN(wanted, file->n);
	uint32_t at = corpus_below(&model.random, file->n - n + 1);

	memcpy(ret_lines, &file->lines[at], n * sizeof(*ret_lines));
	file->n -= n;
	memmove(&file->lines[at], &file->lines[at + n], (file->n - at) * sizeof(*ret_lines));
	return n;
}

static void model_edit(uint8_t author)
{
	struct model_file *file = &model.files[corpus_below(&model.random, MODEL_FILES)];
	struct model_file *other = &model.files[corpus_below(&model.random, MODEL_FILES)];
	uint32_t kind = corpus_below(&model.random, 10);
	uint32_t cut[8];
	uint32_t n;

	if (kind < 4 || !file->exists || file->n == 0) {
		file->exists = true;
		model_write(file, author);
	} else if (kind < 6) {
		(void)model_cut(file, cut);
	} else if (kind < 8) {
		n = model_cut(file, cut);
		model_insert(file, corpus_below(&model.random, file->n + 1), cut, n);
	} else if (kind < 9 && other->exists && other->n + 8 < MODEL_LINES) {
		n = model_cut(file, cut);
		model_insert(other, corpus_below(&model.random, other->n + 1), cut, n);
	} else if (!other->exists) {
		other->exists = true;
		memcpy(other->lines, file->lines, sizeof(file->lines));
		other->n = file->n;
		file->exists = false;
		file->n = 0;
	}
}

static void model_check_file(uint32_t index, const struct sbx_own_file *file, uint64_t seed)
{
	const struct model_file *known = &model.files[index];
	uint32_t line = 0;

	cr_assert_eq(file->n_lines, known->n, "seed %llu", (unsigned long long)seed);
	for (uint32_t run = 0; run < file->n_runs; run++)
		for (uint32_t i = 0; i < file->runs[run].count; i++, line++)
			cr_assert_eq(file->runs[run].owner, model.authors[known->lines[line]],
				"seed %llu: line %u of file %u is said to be %u's",
				(unsigned long long)seed, line, index, file->runs[run].owner);
	cr_assert_eq(line, known->n, "seed %llu", (unsigned long long)seed);
}

/* One publication: some edits by one author, then owners as computed against owners as known. */
static void model_publish(struct sbx_buf before[MODEL_FILES], uint64_t seed)
{
	static const char *const paths[MODEL_FILES] = {"a", "b/a", "b/c", "c", "d"};
	struct sbx_own_file files[MODEL_FILES] = {0};
	uint8_t author = (uint8_t)(1 + corpus_below(&model.random, MODEL_AUTHORS));
	uint32_t n_edits = 1 + corpus_below(&model.random, 5);
	struct sbx_buf after[MODEL_FILES] = {0};

	for (uint32_t i = 0; i < MODEL_FILES; i++) {
		files[i].path = paths[i];
		files[i].has_old = model.files[i].exists;
		files[i].old_runs = model.files[i].runs;
		files[i].n_old_runs = model.files[i].n_runs;
		files[i].old_data = before[i].data;
		files[i].old_size = before[i].size;
	}
	for (uint32_t i = 0; i < n_edits; i++)
		model_edit(author);
	for (uint32_t i = 0; i < MODEL_FILES; i++) {
		model_bytes(&model.files[i], &after[i]);
		files[i].has_new = model.files[i].exists;
		files[i].new_data = after[i].data;
		files[i].new_size = after[i].size;
	}
	cr_assert_eq(sbx_own_compute(files, MODEL_FILES, author, NULL), 0);
	for (uint32_t i = 0; i < MODEL_FILES; i++) {
		model_check_file(i, &files[i], seed);
		free(model.files[i].runs);
		model.files[i].runs = files[i].runs;
		model.files[i].n_runs = files[i].n_runs;
		sbx_buf_done(&before[i]);
		before[i] = after[i];
	}
}

static void model_run(uint64_t seed)
{
	struct sbx_buf bytes[MODEL_FILES] = {0};

	memset(&model, 0, sizeof(model));
	model.random.state = seed;
	for (int i = 0; i < 100; i++)
		model_publish(bytes, seed);
	for (uint32_t i = 0; i < MODEL_FILES; i++) {
		sbx_buf_done(&bytes[i]);
		free(model.files[i].runs);
	}
}

Test(own, every_line_belongs_to_its_author, .timeout = 120)
{
	double end = corpus_now() + corpus_seconds();

	for (uint64_t seed = corpus_seed(); corpus_now() < end; seed++)
		model_run(seed);
}

/* -------- any bytes, and size */

static void check_tiles(const struct sbx_buf *old, const struct sbx_buf *new, uint64_t seed)
{
	struct sbx_own_file files[] = {
		{.path = "f", .has_old = true, .has_new = true},
		{.path = "g", .has_old = true},
		{.path = "h", .has_new = true},
	};
	SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;

	cr_assert_eq(sbx_lines_split(new->data, new->size, 0, &lines, NULL), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(files); i++) {
		files[i].old_data = old->data;
		files[i].old_size = old->size;
		files[i].new_data = new->data;
		files[i].new_size = new->size;
	}
	cr_assert_eq(sbx_own_compute(files, SBX_N_ELEMENTS(files), NEW_OWNER, NULL), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(files); i++) {
		SBX_BUF struct sbx_buf spelled = SBX_BUF_INIT;

		spell(&files[i], &spelled);
		cr_assert_eq(spelled.size, files[i].has_new ? lines.n : 0, "seed %llu",
			(unsigned long long)seed);
		sbx_own_file_done(&files[i]);
	}
}

Test(own, runs_tile_any_text, .timeout = 120)
{
	static struct corpus_text words;
	static struct corpus_text text;
	SBX_BUF struct sbx_buf old = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf new = SBX_BUF_INIT;
	double end = corpus_now() + corpus_seconds() / 4;

	for (uint64_t seed = corpus_seed(); corpus_now() < end; seed++) {
		struct corpus_random random = {seed};

		corpus_words(&words, 1 + corpus_below(&random, 30));
		corpus_random_text(&random, &text, &words, corpus_below(&random, 80));
		corpus_bytes(&random, &text, &old);
		for (uint32_t i = corpus_below(&random, 20); i > 0; i--)
			corpus_edit(&random, &text, &words);
		corpus_bytes(&random, &text, &new);
		check_tiles(&old, &new, seed);
	}
}

Test(own, time_is_bounded_when_lines_repeat, .timeout = 120)
{
	static const struct {
		const char *what, *old_line, *new_line;
		uint32_t n_different; /* lines, told apart by a number before them */
	} cases[] = {
		{"one block removed, another added", "x\n", "y\n", 7},
		{"all lines move and nothing is distinct", "\n", "x\n\n", 7},
		{"blank lines between", "\n", "\n\n", 50000},
		{"each line is distinct and moves", " old\n", " old\n new\n", 100000},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_BUF struct sbx_buf old = SBX_BUF_INIT;
		SBX_BUF struct sbx_buf new = SBX_BUF_INIT;
		double start;

		for (uint32_t line = 0; line < 100000; line++) {
			uint32_t number = line % cases[i].n_different;
			uint32_t mirrored = (99999 - line) % cases[i].n_different;

			cr_assert_eq(sbx_buf_printf(&old, "%u%s", number, cases[i].old_line), 0);
			cr_assert_eq(sbx_buf_printf(&new, "%u%s", mirrored, cases[i].new_line), 0);
		}
		start = corpus_cpu_seconds();
		check_tiles(&old, &new, i);
		cr_expect_lt(corpus_cpu_seconds() - start, 4.0 * CORPUS_SLOWDOWN, "%s: %.3f s",
			cases[i].what, corpus_cpu_seconds() - start);
	}
}
