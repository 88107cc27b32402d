/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "sbx/buf.h"
#include "sbx/fs.h"
#include "sbx/ignore.h"

struct file {
	const char *dir;
	const char *text;
};

static void add(struct sbx_ignore *ignore, const char *dir, const char *text)
{
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_ignore_add(ignore, dir, text, strlen(text), &err), 0, "%s", err.message);
}

/* One pattern file at the root, one path. */
static const struct one {
	const char *text;
	const char *path;
	bool is_dir;
	bool ignored;
} ones[] = {
	{"", "a", false, false},
	{"a", "a", false, true},
	{"a\n", "x/y/a", false, true},
	{"a\r\nb\r\n", "b", false, true},
	{"a\r", "a", false, true},
	{"# a\n#a\n", "#a", false, false},
	{"\\#a\n", "#a", false, true},
	{"\\!a\n", "!a", false, true},
	{"a  \n", "a", false, true},
	{"a\\ \n", "a ", false, true},
	{"a\\  \n", "a ", false, true},
	{"a\t\n", "a", false, false},
	{"a\t\n", "a\t", false, true},
	{"a\\\n", "a\\", false, false},
	{"\xef\xbb\xbf"
	 "a\n",
		"a", false, true},
	{"A\n", "a", false, false},
	{"a/\n", "a", false, false},
	{"a/\n", "a", true, true},
	{"a/\n", "a/b", false, true},
	{"/a\n", "a", false, true},
	{"/a\n", "b/a", false, false},
	{"b/a\n", "b/a", false, true},
	{"b/a\n", "c/b/a", false, false},
	{"*.o\n", "x/y.o", false, true},
	{"*.o\n!y.o\n", "x/y.o", false, false},
	{"!y.o\n*.o\n", "x/y.o", false, true},
	{"x\n!x/y\n", "x/y", false, true},
	{"x/*\n!x/y\n", "x/y", false, false},
	{"x/*\n!x/y\n", "x/z", false, true},
	{"*\n!*/\n!*.c\n", "d/e/f.c", false, false},
	{"*\n!*/\n!*.c\n", "d/e/f.h", false, true},
	{"a/*\n", "a/b/c", false, true},
	{"/*\n!/keep\n", "keep/x", false, false},
	{"a*c/x\n", "a/c/x", false, false},
	{"a?c/x\n", "a/c/x", false, false},
	{"a[/]c/x\n", "a/c/x", false, false},
	{"**/a\n", "a", false, true},
	{"**/a\n", "x/y/a", false, true},
	{"**/b/a\n", "x/b/a", false, true},
	{"a/**\n", "a", true, false},
	{"a/**\n", "a/b/c", false, true},
	{"a/**/b\n", "a/b", false, true},
	{"a/**/b\n", "a/x/y/b", false, true},
	{"a/**/b\n", "a/xb", false, false},
	{"x/a**b\n", "x/a/b", false, false},
	{"[abc]\n", "b", false, true},
	{"[!abc]\n", "b", false, false},
	{"[^abc]\n", "d", false, true},
	{"[]a]\n", "]", false, true},
	{"[!]a]\n", "]", false, false},
	{"[a-c-e]\n", "-", false, true},
	{"[a-c-e]\n", "d", false, false},
	{"[a-]\n", "-", false, true},
	{"[\\]]\n", "]", false, true},
	{"[a-\\c]\n", "b", false, true},
	{"[[:digit:]x]\n", "7", false, true},
	{"[[:digit:]x]\n", "x", false, true},
	{"[[:upper:]]\n", "a", false, false},
	{"[[:nosuch:]]\n", "n", false, false},
	{"[[:digit]\n", ":", false, true},
	{"[abc\n", "[abc", false, false},
	{"[abc\n", "a", false, false},
	{"\\[abc\n", "[abc", false, true},
	{"\\a\\*\n", "a*", false, true},
	{"\\a\\*\n", "aa", false, false},
	{"*\n", ".git", true, false},
	{"*\n", ".git/HEAD", false, false},
	{"*\n", ".gitignore", false, true},
	{"/v\n", "v/x/.git/HEAD", false, true},
	{"/\n//\n!\n\n \n", "a", true, false},
	{"\xff\n", "\xff", false, true},
	{"?\n", "\xc3\xa9", false, false},
	{"??\n", "\xc3\xa9", false, true},
};

Test(ignore, one_file_decides_as_git_does)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(ones); i++) {
		SBX_IGNORE struct sbx_ignore *ignore = NULL;

		cr_assert_eq(sbx_ignore_new(&ignore), 0);
		add(ignore, "", ones[i].text);
		cr_expect_eq(sbx_ignore_match(ignore, ones[i].path, ones[i].is_dir),
			ones[i].ignored, "row %zu: '%s' on '%s'", i, ones[i].text, ones[i].path);
	}
}

static const struct several {
	struct file files[3];
	const char *path;
	bool ignored;
} severals[] = {
	{{{"", "*.o\n"}, {"d", "!k.o\n"}}, "d/k.o", false},
	{{{"", "*.o\n"}, {"d", "!k.o\n"}}, "e/k.o", true},
	{{{"d", "*.o\n"}, {"", "!*.o\n"}}, "d/k.o", true},
	{{{"d", "/k\n"}}, "d/k", true},
	{{{"d", "/k\n"}}, "d/e/k", false},
	{{{"d", "e/k\n"}}, "d/e/k", true},
	{{{"d", "k\n"}}, "k", false},
	{{{"d", "d\n"}}, "d", false},
	{{{"d", "k\n"}}, "dd/k", false},
	{{{"", "d/\n"}, {"d", "!k\n"}}, "d/k", true},
	{{{"", "d/*\n"}, {"d", "!k\n"}}, "d/k", false},
	{{{"d", "k\n"}, {"d", "!k\n"}}, "d/k", false},
	{{{"a/b", "x\n"}, {"a", "!x\n"}, {"", "x\n"}}, "a/b/x", true},
	{{{"a/b", "y\n"}, {"a", "!x\n"}, {"", "x\n"}}, "a/b/x", false},
};

Test(ignore, deeper_files_and_later_lines_win)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(severals); i++) {
		SBX_IGNORE struct sbx_ignore *ignore = NULL;

		cr_assert_eq(sbx_ignore_new(&ignore), 0);
		for (size_t j = 0; j < 3 && severals[i].files[j].dir; j++)
			add(ignore, severals[i].files[j].dir, severals[i].files[j].text);
		cr_expect_eq(sbx_ignore_match(ignore, severals[i].path, false), severals[i].ignored,
			"row %zu: '%s'", i, severals[i].path);
	}
}

Test(ignore, hostile_stars_take_no_time)
{
	SBX_IGNORE struct sbx_ignore *ignore = NULL;
	char pattern[2002], path[4001];
	struct timespec start, end;

	for (size_t i = 0; i < 1000; i++)
		memcpy(pattern + 2 * i, "*a", 2);
	memcpy(pattern + 2000, "b", 2);
	memset(path, 'a', 4000);
	path[4000] = '\0';
	cr_assert_eq(sbx_ignore_new(&ignore), 0);
	add(ignore, "", pattern);
	add(ignore, "", "\n/**/a*a*a*a*a*a*a*a*a*a*a*a*b/**/c\n");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	cr_expect_not(sbx_ignore_match(ignore, path, false));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	cr_expect_lt(end.tv_sec - start.tv_sec, 2);
}

Test(ignore, limits_are_errors_that_name_the_file)
{
	SBX_IGNORE struct sbx_ignore *ignore = NULL;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	for (size_t i = 0; i < SBX_IGNORE_PATTERNS_MAX + 1; i++)
		cr_assert_eq(sbx_buf_append_string(&text, "x\n"), 0);
	cr_assert_eq(sbx_ignore_new(&ignore), 0);
	cr_expect_eq(sbx_ignore_add(ignore, "some/dir", text.data, text.size, &err), -E2BIG);
	cr_expect_not_null(strstr(err.message, "some/dir/.gitignore"));
	cr_expect(sbx_ignore_match(ignore, "some/dir/x", false), "what was read stays");
}

Test(ignore, overlong_line_matches_nothing)
{
	SBX_IGNORE struct sbx_ignore *ignore = NULL;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	for (size_t i = 0; i < SBX_IGNORE_LINE_MAX + 1; i++)
		cr_assert_eq(sbx_buf_append_string(&text, "*"), 0);
	cr_assert_eq(sbx_buf_append_string(&text, "\nb\n"), 0);
	cr_assert_eq(sbx_ignore_new(&ignore), 0);
	add(ignore, "", text.data);
	cr_expect_not(sbx_ignore_match(ignore, "a", false));
	cr_expect(sbx_ignore_match(ignore, "b", false));
}

/* ---- the same questions to git, on generated pattern files ---- */

static const char *const tree_dirs[] = {"", "a", "a/b", "a/b/c", "a/x y", "b", "b/a", "b/aa", "-"};
static const char *const tree_names[] = {
	"f",
	"F",
	"ab",
	"abc",
	"b.o",
	"b.c",
	"#f",
	"!f",
	"f ",
	"]",
	"[a]",
	"*",
	"a\\b",
	"1",
	"_",
	"f\r",
};

struct paths {
	char *path[256];
	bool is_dir[256];
	size_t n;
};

static uint64_t random_state = 88172645463325252;

static unsigned int random_below(unsigned int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned int)(random_state >> 33) % n;
}

static void make_tree(struct paths *paths)
{
	for (size_t d = 0; d < SBX_N_ELEMENTS(tree_dirs); d++) {
		const char *dir = tree_dirs[d];

		if (*dir) {
			cr_assert_eq(mkdir(dir, 0700), 0, "%s", dir);
			paths->is_dir[paths->n] = true;
			paths->path[paths->n++] = strdup(dir);
		}
		for (size_t i = 0; i < SBX_N_ELEMENTS(tree_names); i++) {
			char *path;
			int fd;

			cr_assert_gt(
				asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", tree_names[i]), 0);
			fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
			cr_assert_geq(fd, 0, "%s", path);
			close(fd);
			paths->path[paths->n++] = path;
		}
	}
}

static void put_file(const char *name, const char *data, size_t size)
{
	SBX_CLOSE int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0, "%s", name);
	cr_assert_eq(write(fd, data, size), (ssize_t)size);
}

static const char *const atoms[] = {
	"a",
	"b",
	"c",
	"f",
	"F",
	"ab",
	"x y",
	"-",
	"*",
	"*",
	"*",
	"**",
	"/**",
	"**/",
	"?",
	"/",
	"/",
	"/",
	".",
	".o",
	"[ab]",
	"[!a]",
	"[^f]",
	"[a-f]",
	"[]]",
	"[!]a]",
	"[a",
	"[[:alpha:]]",
	"[[:space:]f]",
	"[[:punct:]]",
	"[[:bad:]]",
	"[[:digit:]",
	"[a-",
	"[\\]]",
	"\\",
	"\\a",
	"\\*",
	"\\ ",
	"\\/",
	" ",
	"  ",
	"\t",
	"#",
	"!",
	"\r",
	"]",
	"\\[",
	"[*]",
	"[A-z]",
	"[f-a]",
	"[--0]",
	"[[]",
	"[[:]",
};

static void random_text(struct sbx_buf *text)
{
	unsigned int n_lines = 1 + random_below(5);

	text->size = 0;
	while (n_lines-- > 0) {
		unsigned int n_atoms = 1 + random_below(5);

		if (random_below(4) == 0)
			sbx_buf_append_string(text, "!");
		if (random_below(5) == 0)
			sbx_buf_append_string(text, "/");
		while (n_atoms-- > 0)
			sbx_buf_append_string(text, atoms[random_below(SBX_N_ELEMENTS(atoms))]);
		if (random_below(5) == 0)
			sbx_buf_append_string(text, "/");
		sbx_buf_append_string(text, random_below(8) ? "\n" : "\r\n");
	}
}

/*
 * git before 2.41 decides whether stars directly behind other text stand at the start of a
 * component by comparing unrelated pointers; what it answers then is chance.
 */
static bool git_may_err(const struct sbx_buf *text)
{
	for (size_t i = 0; i + 2 < text->size; i++)
		if (memcmp(text->data + i, "**", 2) == 0 && i && text->data[i - 1] != '\n' &&
			text->data[i - 1] != '/')
			return true;
	return false;
}

/* In the current directory, stdin from file "list", stdout to file "answer". */
static int run_git(const char *const *args)
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		int in_fd = open("list", O_RDONLY | O_CLOEXEC);
		int out_fd = open("answer", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
		setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
		if (dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0)
			_exit(126);
		execvp("git", (char *const *)(uintptr_t)args);
		_exit(127);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void ask_git(const struct paths *paths, struct sbx_buf *ret_answer)
{
	static const char *const args[] = {
		"git", "check-ignore", "--no-index", "--stdin", "-z", NULL};
	int r = run_git(args);

	cr_assert(r == 0 || r == 1, "git check-ignore ended with %d on %zu paths", r, paths->n);
	ret_answer->size = 0;
	cr_assert_eq(sbx_fs_read_at(AT_FDCWD, "answer", 1 << 20, ret_answer), 0);
}

/* git prints the ignored ones of the paths, in the order asked. */
static void compare(const struct paths *paths, const struct sbx_ignore *ignore,
	const struct sbx_buf *answer, const char *texts, unsigned int round)
{
	const char *next = answer->size ? answer->data : "";
	const char *end = answer->data + answer->size;

	for (size_t i = 0; i < paths->n; i++) {
		bool git_says = next < end && strcmp(next, paths->path[i]) == 0;

		if (git_says)
			next += strlen(next) + 1;
		cr_assert_eq(sbx_ignore_match(ignore, paths->path[i], paths->is_dir[i]), git_says,
			"round %u: '%s' is %signored for git, with\n%s", round, paths->path[i],
			git_says ? "" : "not ", texts);
	}
}

/* Writes 1 to 3 pattern files, asks both, compares. */
static void corpus_round(const struct paths *paths, unsigned int round)
{
	static const char *const dirs[] = {"", "a", "a/b", "b"};
	SBX_IGNORE struct sbx_ignore *ignore = NULL;
	SBX_BUF struct sbx_buf texts = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf answer = SBX_BUF_INIT;

	cr_assert_eq(sbx_ignore_new(&ignore), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s%s.gitignore", dirs[i], *dirs[i] ? "/" : "");
		(void)unlink(name); /* of the round before, if any */
		if (i && random_below(2))
			continue;
		do
			random_text(&text);
		while (git_may_err(&text));
		put_file(name, text.data, text.size);
		cr_assert_eq(sbx_ignore_add(ignore, dirs[i], text.data, text.size, NULL), 0);
		cr_assert_eq(sbx_buf_printf(&texts, "--- %s\n%s", name, text.data), 0);
	}
	ask_git(paths, &answer);
	compare(paths, ignore, &answer, texts.data, round);
}

Test(ignore, answers_equal_git_check_ignore_on_a_generated_corpus, .timeout = 120)
{
	static const char *const init[] = {"git", "init", "-q", "--template=", ".", NULL};
	const char *rounds = getenv("SBX_TEST_ROUNDS");
	char root[] = "/tmp/sbx-test-ignore-XXXXXX";
	SBX_BUF struct sbx_buf list = SBX_BUF_INIT;
	struct paths paths = {0};
	int r;

	cr_assert_not_null(mkdtemp(root));
	cr_assert_eq(chdir(root), 0);
	put_file("list", "", 0);
	r = run_git(init);
	if (r == 0) {
		make_tree(&paths);
		for (size_t i = 0; i < paths.n; i++)
			sbx_buf_append(&list, paths.path[i], strlen(paths.path[i]) + 1);
		put_file("list", list.data, list.size);
		for (unsigned int i = 0; i < (rounds ? (unsigned int)atoi(rounds) : 200); i++)
			corpus_round(&paths, i);
	}
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(sbx_fs_remove_tree(AT_FDCWD, root), 0);
	for (size_t i = 0; i < paths.n; i++)
		free(paths.path[i]);
	if (r == 127)
		cr_skip_test("git is not installed");
	cr_assert_eq(r, 0, "git init ended with %d", r);
}
