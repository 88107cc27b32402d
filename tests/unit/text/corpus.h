/* SPDX-License-Identifier: MIT */
/*
 * Generated texts for the tests of diff, merge and ownership: random ones and real sources of this
 * machine, changed the way people edit; and the run of another program on them for comparison.
 * All randomness comes from a seed, which tests print when they fail.
 */
#ifndef TEST_TEXT_CORPUS_H
#define TEST_TEXT_CORPUS_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "sbx/buf.h"
#include "sbx/lines.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_UNDEFINED__)
#define CORPUS_SLOWDOWN 20
#else
#define CORPUS_SLOWDOWN 1
#endif

#define CORPUS_LINES_MAX 8192

struct corpus_random {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t corpus_next(struct corpus_random *random)
{
	uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline uint32_t corpus_below(struct corpus_random *random, uint32_t n)
{
	return (uint32_t)(corpus_next(random) % n);
}

/* A text while it is edited: lines without their '\n', borrowed. */
struct corpus_text {
	const char *lines[CORPUS_LINES_MAX];
	uint32_t sizes[CORPUS_LINES_MAX];
	uint32_t n;
};

static inline void corpus_insert(
	struct corpus_text *text, uint32_t at, const char *line, uint32_t size)
{
	if (text->n == CORPUS_LINES_MAX)
		return;
	memmove(&text->lines[at + 1], &text->lines[at], (text->n - at) * sizeof(text->lines[0]));
	memmove(&text->sizes[at + 1], &text->sizes[at], (text->n - at) * sizeof(text->sizes[0]));
	text->lines[at] = line;
	text->sizes[at] = size;
	text->n++;
}

static inline void corpus_delete(struct corpus_text *text, uint32_t at, uint32_t count)
{
	count = SBX_MIN(count, text->n - at);
	text->n -= count;
	memmove(&text->lines[at], &text->lines[at + count],
		(text->n - at) * sizeof(text->lines[0]));
	memmove(&text->sizes[at], &text->sizes[at + count],
		(text->n - at) * sizeof(text->sizes[0]));
}

static inline void corpus_insert_word(struct corpus_random *random, struct corpus_text *text,
	uint32_t at, const struct corpus_text *words)
{
	uint32_t i = corpus_below(random, words->n);

	corpus_insert(text, at, words->lines[i], words->sizes[i]);
}

/* Puts a copy of lines [from, from + count) of source at a place of text. */
static inline void corpus_copy(struct corpus_text *text, uint32_t at,
	const struct corpus_text *source, uint32_t from, uint32_t count)
{
	for (uint32_t i = 0; i < count && from + i < source->n; i++)
		corpus_insert(text, at + i, source->lines[from + i], source->sizes[from + i]);
}

/* One edit: add, delete, replace, copy or move a few lines. New lines are some of words. */
static inline void corpus_edit(
	struct corpus_random *random, struct corpus_text *text, const struct corpus_text *words)
{
	static struct corpus_text before;
	uint32_t at = corpus_below(random, text->n + 1);
	uint32_t count = 1 + corpus_below(random, 4);
	uint32_t kind = corpus_below(random, 5);
	uint32_t from = text->n ? corpus_below(random, text->n) : 0;

	if (kind == 1 || kind == 2)
		corpus_delete(text, at, count);
	if (kind == 2)
		count = 1 + corpus_below(random, 4);
	if (kind == 0 || kind == 2)
		for (uint32_t i = 0; i < count; i++)
			corpus_insert_word(random, text, at, words);
	if (kind < 3)
		return;
	before = *text;
	if (kind == 4) {
		corpus_delete(text, from, count * 3);
		at = SBX_MIN(at, text->n);
	}
	corpus_copy(text, at, &before, from, count * 3);
}

/* The bytes; now and then without the final newline. */
static inline void corpus_bytes(
	struct corpus_random *random, const struct corpus_text *text, struct sbx_buf *ret)
{
	sbx_buf_clear(ret);
	for (uint32_t i = 0; i < text->n; i++) {
		cr_assert_eq(sbx_buf_append(ret, text->lines[i], text->sizes[i]), 0);
		cr_assert_eq(sbx_buf_append(ret, "\n", 1), 0);
	}
	if (ret->size > 0 && corpus_below(random, 5) == 0)
		ret->size--;
}

/* Lines "w0", "w1", ...: few different ones make texts in which lines repeat. */
static inline void corpus_words(struct corpus_text *words, uint32_t n)
{
	static char names[CORPUS_LINES_MAX][8];

	words->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		int size = snprintf(names[i], sizeof(names[i]), "w%u", i % 100000);

		corpus_insert(words, i, names[i], (uint32_t)size);
	}
}

static inline void corpus_random_text(struct corpus_random *random, struct corpus_text *text,
	const struct corpus_text *words, uint32_t n)
{
	text->n = 0;
	while (text->n < n)
		corpus_insert_word(random, text, text->n, words);
}

/* Real sources of this machine, the smaller ones. */
struct corpus_sources {
	glob_t files;
};

static inline bool corpus_sources_init(struct corpus_sources *sources)
{
	return glob("/usr/include/*.h", 0, NULL, &sources->files) == 0 &&
	       glob("/usr/include/linux/*.h", GLOB_APPEND, NULL, &sources->files) == 0;
}

static inline void corpus_read(const char *path, struct sbx_buf *ret)
{
	char chunk[65536];
	ssize_t n = 0;
	SBX_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	sbx_buf_clear(ret);
	cr_assert_geq(fd, 0, "%s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		cr_assert_eq(sbx_buf_append(ret, chunk, (size_t)n), 0);
	cr_assert_eq(n, 0, "%s", path);
}

/* One of the sources; bytes hold what text borrows. */
static inline void corpus_source_text(struct corpus_random *random,
	const struct corpus_sources *sources, struct sbx_buf *bytes, struct corpus_text *ret)
{
	SBX_LINES struct sbx_lines lines = SBX_LINES_INIT;
	uint32_t i = corpus_below(random, (uint32_t)sources->files.gl_pathc);

	corpus_read(sources->files.gl_pathv[i], bytes);
	cr_assert_eq(sbx_lines_split(bytes->data, bytes->size, 0, &lines, NULL), 0);
	ret->n = 0;
	for (uint32_t line = 0; line < SBX_MIN(lines.n, CORPUS_LINES_MAX / 2); line++)
		corpus_insert(ret, line, sbx_line_data(&lines, line),
			(uint32_t)sbx_line_size(&lines, line) -
				(line + 1 < lines.n || lines.final_newline));
}

/* A directory for one test. */
struct corpus_dir {
	char path[64];
};

static inline void corpus_dir_init(struct corpus_dir *dir)
{
	(void)snprintf(dir->path, sizeof(dir->path), "/tmp/sbx-test-text-XXXXXX");
	cr_assert_not_null(mkdtemp(dir->path));
}

static inline void corpus_path(const struct corpus_dir *dir, const char *name, char ret[static 128])
{
	(void)snprintf(ret, 128, "%s/%s", dir->path, name);
}

static inline void corpus_write(
	const struct corpus_dir *dir, const char *name, const void *data, size_t size)
{
	char path[128];
	SBX_CLOSE int fd = -EBADF;

	corpus_path(dir, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	if (size > 0)
		cr_assert_eq(write(fd, data, size), (ssize_t)size);
}

static inline void corpus_dir_remove(struct corpus_dir *dir, const char *const names[])
{
	char path[128];

	for (size_t i = 0; names[i]; i++) {
		corpus_path(dir, names[i], path);
		(void)unlink(path); /* not every test makes every file */
	}
	cr_assert_eq(rmdir(dir->path), 0);
}

/*
 * Runs a program with the directory as its working directory and its output in the file "out" of
 * it. Returns the exit status, or -1 when it cannot be run.
 */
static inline int corpus_run(const struct corpus_dir *dir, const char *const argv[])
{
	static char variables[][40] = {
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CEILING_DIRECTORIES=/tmp",
		"LC_ALL=C",
	};
	char *env[SBX_N_ELEMENTS(variables) + 1] = {0};
	posix_spawn_file_actions_t actions;
	char out[128];
	int status = 0;
	pid_t pid = 0;
	int r;

	for (size_t i = 0; i < SBX_N_ELEMENTS(variables); i++)
		env[i] = variables[i];
	corpus_path(dir, "out", out);
	cr_assert_eq(posix_spawn_file_actions_init(&actions), 0);
	cr_assert_eq(posix_spawn_file_actions_addopen(
			     &actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600),
		0);
	cr_assert_eq(posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0), 0);
	cr_assert_eq(posix_spawn_file_actions_addchdir_np(&actions, dir->path), 0);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, env);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -1;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static inline void corpus_output(const struct corpus_dir *dir, struct sbx_buf *ret)
{
	char path[128];

	corpus_path(dir, "out", path);
	corpus_read(path, ret);
}

/* Processor time of this process, for limits that do not depend on what else runs. */
static inline double corpus_cpu_seconds(void)
{
	struct timespec ts;

	cr_assert_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts), 0);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Time for a corpus: as long as SBX_TEST_SECONDS says, else a few seconds. */
static inline double corpus_seconds(void)
{
	const char *seconds = getenv("SBX_TEST_SECONDS");

	return seconds ? strtod(seconds, NULL) : 4;
}

static inline double corpus_now(void)
{
	struct timespec ts;

	cr_assert_eq(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static inline uint64_t corpus_seed(void)
{
	const char *seed = getenv("SBX_TEST_SEED");

	return seed ? strtoull(seed, NULL, 0) : 1;
}

#endif
