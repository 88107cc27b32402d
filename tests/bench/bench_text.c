/* SPDX-License-Identifier: MIT */
/*
 * How long it takes to find the owners of a changed file, against git's comparison of the same two
 * files, and how much memory beyond the files. One table row for each size and number of changes;
 * times are processor time, which other work on the machine disturbs least, and medians of the
 * rounds.
 *
 *   bench_text [ROUNDS]
 *
 * git is run as `git diff --no-index --histogram --numstat`; its start is part of its time and
 * shows in the rows of few lines. The memory of our part is that of a child process that does
 * nothing else.
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

struct shape {
	const char *name;
	uint32_t n_lines;
	uint32_t n_changes; /* lines */
};

static const struct shape shapes[] = {
	{"1k lines, 10 changed", 1000, 10},
	{"1k lines, all changed", 1000, 1000},
	{"100k lines, 100 changed", 100000, 100},
	{"100k lines, 10k changed", 100000, 10000},
	{"100k lines, all changed", 100000, 100000},
	{"1M lines, 100 changed", 1000000, 100},
	{"1M lines, 100k changed", 1000000, 100000},
};

struct texts {
	struct sbx_buf old;
	struct sbx_buf new;
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

static int make_texts(const struct shape *shape, struct texts *ret)
{
	uint64_t lines = 1;
	uint64_t changes = 2;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < shape->n_lines; i++) {
		uint64_t same = lines;
		bool change = next_random(&changes) % shape->n_lines < shape->n_changes;

		r = append_line(&ret->old, &lines, "");
		if (r == 0)
			r = append_line(&ret->new, &same, change ? " /* new */" : "");
	}
	return r;
}

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

/* Peak of a child that computes owners, less that of one that does not. */
static long child_peak_kib(const struct texts *texts, bool compute)
{
	struct rusage usage = {0};
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(compute && compute_owners(texts, NULL) < 0);
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0 || status != 0)
		return -1;
	return usage.ru_maxrss;
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
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? 0 : -EIO; /* 1: they differ */
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
	double memory; /* beyond the two files, as a multiple of them */
};

static int measure(const struct texts *texts, const char *old_path, const char *new_path,
	size_t n_rounds, struct figures *ret, struct sbx_err *err)
{
	double own_ms[ROUNDS_MAX];
	double git_ms[ROUNDS_MAX];
	long peak;
	long idle;

	(void)malloc_trim(0); /* or the child finds its memory in what earlier rounds left */
	peak = child_peak_kib(texts, true);
	idle = child_peak_kib(texts, false);
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
	if (peak < 0 || idle < 0)
		return sbx_err_set(err, EIO, "measure the memory of a child process");
	*ret = (struct figures){
		.own_ms = median(own_ms, n_rounds),
		.git_ms = median(git_ms, n_rounds),
		.memory =
			(double)(peak - idle) * 1024 / (double)(texts->old.size + texts->new.size),
	};
	return 0;
}

static int bench_shape(
	const struct shape *shape, const char *dir, size_t n_rounds, struct sbx_err *err)
{
	SBX_CLEANUP(texts_done) struct texts texts = {0};
	struct figures figures = {0};
	char old_path[64];
	char new_path[64];
	int r;

	(void)snprintf(old_path, sizeof(old_path), "%s/old", dir);
	(void)snprintf(new_path, sizeof(new_path), "%s/new", dir);
	r = make_texts(shape, &texts);
	if (r == 0)
		r = write_file(old_path, &texts.old);
	if (r == 0)
		r = write_file(new_path, &texts.new);
	if (r < 0)
		sbx_err_set(err, -r, "write two texts to %s: %m", dir);
	else
		r = measure(&texts, old_path, new_path, n_rounds, &figures, err);
	(void)unlink(old_path); /* may not be there */
	(void)unlink(new_path);
	if (r < 0)
		return r;
	printf("%-26s %10.2f %10.2f %8.2f %8.2f\n", shape->name, figures.own_ms, figures.git_ms,
		figures.own_ms / figures.git_ms, figures.memory);
	(void)fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/sbx-bench-text-XXXXXX";
	struct sbx_err err = SBX_ERR_INIT;
	size_t n_rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS_DEFAULT;
	int r = 0;

	if (argc > 2 || n_rounds == 0 || n_rounds > ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: bench_text [ROUNDS, 1 to %d]\n", ROUNDS_MAX);
		return 2;
	}
	if (!mkdtemp(dir)) {
		perror("bench_text: make a directory");
		return 1;
	}
	printf("%-26s %10s %10s %8s %8s\n", "", "owners ms", "git ms", "ratio", "memory");
	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(shapes); i++)
		r = bench_shape(&shapes[i], dir, n_rounds, &err);
	(void)rmdir(dir);
	if (r < 0)
		(void)fprintf(stderr, "bench_text: %s\n", err.message);
	return r < 0;
}
