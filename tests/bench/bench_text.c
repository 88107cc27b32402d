/* SPDX-License-Identifier: MIT */
/*
 * How long it takes to find the owners of a changed file, against git's comparison of the same two
 * files, and how much memory beyond the files. First a row for each size and number of changes,
 * then texts that are hard to compare. Times are processor time, which other work on the machine
 * disturbs least, and medians of the rounds.
 *
 *   bench_text [ROUNDS]
 *
 * git is run as `git diff --no-index --histogram --numstat`. Its start (the time for two files of
 * one line) is part of its time in the column git, and taken off for the ratio. The memory of our
 * part is the most that it has allocated at any time. Rows beyond what is promised (ratio 1.2,
 * memory 4) are marked.
 */
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "sbx/buf.h"
#include "sbx/diff.h"
#include "sbx/own.h"

#define ROUNDS_DEFAULT 5
#define ROUNDS_MAX     101

extern char **environ;

#define RATIO_MAX  1.2
#define MEMORY_MAX 4.0

struct texts {
	struct sbx_buf old;
	struct sbx_buf new;
};

struct shape {
	const char *name;
	int (*make)(const struct shape *shape, struct texts *ret);
	uint32_t n_lines;
	uint32_t n; /* what it counts depends on make() */
};

static void texts_done(struct texts *texts)
{
	sbx_buf_done(&texts->old);
	sbx_buf_done(&texts->new);
}

/* A linear congruential generator: the same texts in each run. */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

/* Lines that look like source: some repeat, most do not. */
static int append_line(struct sbx_buf *text, uint64_t *state, const char *mark)
{
	static const char *const plain[] = {"}", "", "\treturn 0;", "\telse", "\t}"};
	uint32_t random = next_random(state);

	if (random % 10 < SBX_N_ELEMENTS(plain))
		return sbx_buf_printf(text, "%s%s\n", plain[random % 10], mark);
	return sbx_buf_printf(
		text, "\tvalue_%u = compute(%u, &item->next)%s;\n", random, random % 1000, mark);
}

/* Source, of which n lines are changed. */
static int make_changes(const struct shape *shape, struct texts *ret)
{
	uint64_t lines = 1;
	uint64_t changes = 2;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < shape->n_lines; i++) {
		uint64_t same = lines;
		bool change = next_random(&changes) % shape->n_lines < shape->n;

		r = append_line(&ret->old, &lines, "");
		if (r == 0)
			r = append_line(&ret->new, &same, change ? " /* new */" : "");
	}
	return r;
}

/* Two texts of lines drawn from n different ones; the new one is a tenth shorter. */
static int make_repeated(const struct shape *shape, struct texts *ret)
{
	uint64_t old = 1;
	uint64_t new = 2;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < shape->n_lines; i++) {
		r = sbx_buf_printf(&ret->old, "line %u of them\n", next_random(&old) % shape->n);
		if (r == 0 && i % 10 > 0)
			r = sbx_buf_printf(
				&ret->new, "line %u of them\n", next_random(&new) % shape->n);
	}
	return r;
}

/* One row of n different lines again and again; a tenth of the rows lack a line in the new text. */
static int make_periodic(const struct shape *shape, struct texts *ret)
{
	uint64_t state = 1;
	uint32_t left_out = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < shape->n_lines; i++) {
		uint32_t line = i % shape->n;

		if (line == 0)
			left_out = next_random(&state) % (10 * shape->n);
		r = sbx_buf_printf(&ret->old, "line %u of a row\n", line);
		if (r == 0 && line != left_out)
			r = sbx_buf_printf(&ret->new, "line %u of a row\n", line);
	}
	return r;
}

/* Different lines; the new text has them in another order, blocks of n at a time. */
static int make_shuffled(const struct shape *shape, struct texts *ret)
{
	uint32_t n_blocks = shape->n_lines / shape->n;
	SBX_FREE uint32_t *order = calloc(n_blocks, sizeof(*order));
	uint64_t state = 1;
	int r = order ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < n_blocks; i++) {
		uint32_t j = next_random(&state) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (uint32_t i = 0; r == 0 && i < shape->n_lines; i++) {
		uint32_t line = order[i / shape->n] * shape->n + i % shape->n;

		r = sbx_buf_printf(&ret->old, "line %u of a long text\n", i);
		if (r == 0)
			r = sbx_buf_printf(&ret->new, "line %u of a long text\n", line);
	}
	return r;
}

static const struct shape shapes[] = {
	{"1k lines, 10 changed", make_changes, 1000, 10},
	{"1k lines, all changed", make_changes, 1000, 1000},
	{"10k lines, 10 changed", make_changes, 10000, 10},
	{"10k lines, 1k changed", make_changes, 10000, 1000},
	{"100k lines, 100 changed", make_changes, 100000, 100},
	{"100k lines, 10k changed", make_changes, 100000, 10000},
	{"100k lines, all changed", make_changes, 100000, 100000},
	{"1M lines, 100 changed", make_changes, 1000000, 100},
	{"1M lines, 100k changed", make_changes, 1000000, 100000},
	{"1M lines, all changed", make_changes, 1000000, 1000000},
};

static const struct shape hard_shapes[] = {
	{"50k lines, nothing in common", make_repeated, 50000, UINT32_MAX},
	{"50k lines, each ten times", make_repeated, 50000, 5000},
	{"50k lines, 5 different", make_repeated, 50000, 5},
	{"100k lines, all equal", make_repeated, 100000, 1},
	{"100k lines, rows of 10", make_periodic, 100000, 10},
	{"100k lines, rows of 1000", make_periodic, 100000, 1000},
	{"50k lines, shuffled", make_shuffled, 50000, 1},
	{"100k lines, blocks shuffled", make_shuffled, 100000, 20},
};

/* -------- memory: the allocator with a counter before it, as glibc lets a program have it */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static size_t allocated, allocated_peak;

static void *count(void *p)
{
	allocated += malloc_usable_size(p);
	allocated_peak = SBX_MAX(allocated_peak, allocated);
	return p;
}

void *malloc(size_t size)
{
	return count(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return count(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
	size_t before = malloc_usable_size(p);
	void *q = __libc_realloc(p, size);

	if (q || !size)
		allocated -= before;
	return q ? count(q) : q;
}

void free(void *p)
{
	allocated -= malloc_usable_size(p);
	__libc_free(p);
}

/* -------- one pair of texts */

/* Processor time of this process. */
static double cpu_ms(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* cannot fail for this clock */
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double timeval_ms(const struct timeval *tv)
{
	return (double)tv->tv_sec * 1e3 + (double)tv->tv_usec / 1e3;
}

static int compute_owners(const struct texts *texts, struct sbx_err *err)
{
	struct sbx_own_file file = {
		.path = "f",
		.has_old = true,
		.old_data = texts->old.data,
		.old_size = texts->old.size,
		.has_new = true,
		.new_data = texts->new.data,
		.new_size = texts->new.size,
	};
	int r = sbx_own_compute(&file, 1, 1, err);

	sbx_own_file_done(&file);
	return r;
}

static int write_file(const char *path, const struct sbx_buf *text)
{
	SBX_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t at = 0;

	if (fd < 0)
		return -errno;
	while (at < text->size) {
		ssize_t n = write(fd, text->data + at, text->size - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

static int run_git(const char *old_path, const char *new_path, double *ret_ms)
{
	const char *const argv[] = {
		"git", "diff", "--no-index", "--histogram", "--numstat", old_path, new_path, NULL};
	posix_spawn_file_actions_t actions;
	struct rusage usage = {0};
	int status = 0;
	pid_t pid = 0;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = posix_spawnp(
			&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -r;
	if (wait4(pid, &status, 0, &usage) < 0)
		return -errno;
	*ret_ms = timeval_ms(&usage.ru_utime) + timeval_ms(&usage.ru_stime);
	return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? 0 : -EIO; /* 1: they differ */
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

struct figures {
	double own_ms;
	double git_ms;
	double ratio;  /* to git's time without its start */
	double memory; /* beyond the two files, as a multiple of them */
};

static int measure(const struct texts *texts, const char *old_path, const char *new_path,
	size_t n_rounds, double git_start_ms, struct figures *ret, struct sbx_err *err)
{
	double own_ms[ROUNDS_MAX];
	double git_ms[ROUNDS_MAX];
	size_t before = allocated;

	allocated_peak = allocated;
	for (size_t i = 0; i < n_rounds; i++) {
		double start = cpu_ms();
		int r = compute_owners(texts, err);

		if (r < 0)
			return r;
		own_ms[i] = cpu_ms() - start;
		r = run_git(old_path, new_path, &git_ms[i]);
		if (r < 0)
			return sbx_err_set(err, -r, "run git: %m");
	}
	*ret = (struct figures){
		.own_ms = median(own_ms, n_rounds),
		.git_ms = median(git_ms, n_rounds),
		.memory = (double)(allocated_peak - before) /
			  (double)(texts->old.size + texts->new.size),
	};
	ret->ratio = ret->own_ms / SBX_MAX(ret->git_ms - git_start_ms, 0.001);
	return 0;
}

static int bench_shape(const struct shape *shape, const char *dir, size_t n_rounds,
	double git_start_ms, struct figures *ret, struct sbx_err *err)
{
	SBX_CLEANUP(texts_done) struct texts texts = {0};
	char old_path[64];
	char new_path[64];
	int r;

	(void)snprintf(old_path, sizeof(old_path), "%s/old", dir);
	(void)snprintf(new_path, sizeof(new_path), "%s/new", dir);
	r = shape->make(shape, &texts);
	if (r == 0)
		r = write_file(old_path, &texts.old);
	if (r == 0)
		r = write_file(new_path, &texts.new);
	if (r < 0)
		sbx_err_set(err, -r, "write two texts to %s: %m", dir);
	else
		r = measure(&texts, old_path, new_path, n_rounds, git_start_ms, ret, err);
	(void)unlink(old_path); /* may not be there */
	(void)unlink(new_path);
	return r;
}

static int bench_shapes(const struct shape *list, size_t n, const char *dir, size_t n_rounds,
	double git_start_ms, struct sbx_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct figures figures = {0};

		r = bench_shape(&list[i], dir, n_rounds, git_start_ms, &figures, err);
		if (r < 0)
			return r;
		printf("%-30s %10.2f %10.2f %7.2f%s %7.2f%s\n", list[i].name, figures.own_ms,
			figures.git_ms, figures.ratio, figures.ratio > RATIO_MAX ? "!" : " ",
			figures.memory, figures.memory > MEMORY_MAX ? "!" : " ");
		(void)fflush(stdout);
	}
	return r;
}

static int bench_all(const char *dir, size_t n_rounds, struct sbx_err *err)
{
	static const struct shape one_line = {"", make_changes, 1, 1};
	struct figures start = {0};
	int r = bench_shape(&one_line, dir, n_rounds, 0, &start, err);

	if (r < 0)
		return r;
	printf("%-30s %10s %10s %7s  %7s\n", "", "owners ms", "git ms", "ratio", "memory");
	r = bench_shapes(shapes, SBX_N_ELEMENTS(shapes), dir, n_rounds, start.git_ms, err);
	if (r == 0)
		printf("\nhard to compare\n");
	return r < 0 ? r
		     : bench_shapes(hard_shapes, SBX_N_ELEMENTS(hard_shapes), dir, n_rounds,
			       start.git_ms, err);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/sbx-bench-text-XXXXXX";
	struct sbx_err err = SBX_ERR_INIT;
	size_t n_rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS_DEFAULT;
	int r;

	if (argc > 2 || n_rounds == 0 || n_rounds > ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: bench_text [ROUNDS, 1 to %d]\n", ROUNDS_MAX);
		return 2;
	}
	if (!mkdtemp(dir)) {
		perror("bench_text: make a directory");
		return 1;
	}
	r = bench_all(dir, n_rounds, &err);
	(void)rmdir(dir);
	if (r < 0)
		(void)fprintf(stderr, "bench_text: %s\n", err.message);
	return r < 0;
}
