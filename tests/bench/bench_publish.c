/* SPDX-License-Identifier: MIT */
/*
 * What publishing costs, against what nobody can do without and what people do instead:
 *
 *   walk      each name listed and its metadata asked for
 *   read      the same, and the contents read and digested
 *   sync      one syncfs(2) after such a tree was made
 *   cp+sync   `cp -a` of the tree and `sync -f`
 *   publish   the job publish and the job commit: a layer with owners, durable
 *
 * `ratio` is (publish - sync) / read, `cpu` the same in processor time, which other work on the
 * machine disturbs least, and `cp` is publish / cp+sync. Then how file_read and file_blame of a
 * file of 2,000 lines take to the number of layers, and how many publications a second several
 * processes prepare.
 *
 *   bench_publish DIR [ROUNDS [FILES...]]
 *
 * DIR is on the file system to measure. All are medians of the rounds, taken in turn.
 */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "sbx/buf.h"
#include "sbx/digest.h"
#include "sbx/fs.h"
#include "sbx/job.h"
#include "sbx/store.h"

#define ROUNDS_DEFAULT 5
#define ROUNDS_MAX     101
#define FILES_PER_DIR  100
#define N_LINES        2000 /* of the file that is read and blamed */
#define N_READS        200
#define BATCH_FILES    100 /* of each publication that counts for the throughput */
#define BATCH_NS       (UINT64_C(2) * SBX_NSEC_PER_SEC)

struct bench {
	struct sbx_job_context context;
	int dir_fd;
	int log_fd;
	struct sbx_stack head;
	unsigned n_ids;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts = {0};

	(void)clock_gettime(id, &ts); /* cannot fail for these clocks */
	return (uint64_t)ts.tv_sec * SBX_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

struct span {
	double wall;
	double cpu;
};

static struct span span_begin(void)
{
	return (struct span){(double)clock_ns(CLOCK_MONOTONIC) / 1e6,
		(double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6};
}

static struct span span_end(struct span begin)
{
	struct span now = span_begin();

	return (struct span){now.wall - begin.wall, now.cpu - begin.cpu};
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

static struct span median_span(const struct span *spans, size_t n)
{
	double wall[ROUNDS_MAX], cpu[ROUNDS_MAX];

	for (size_t i = 0; i < n; i++) {
		wall[i] = spans[i].wall;
		cpu[i] = spans[i].cpu;
	}
	return (struct span){median(wall, n), median(cpu, n)};
}

static char scratch[PATH_MAX]; /* the directory of all this */

static void remove_scratch(void)
{
	if (*scratch && sbx_fs_remove_tree(AT_FDCWD, scratch) < 0)
		(void)fprintf(stderr, "bench_publish: %s is left over\n", scratch);
}

/* Errors end the program: nothing here is worth going on for. */
static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	errno = -r;
	(void)fprintf(stderr, "bench_publish: %s: %m\n", what);
	exit(1);
}

static int must_errno(int r, const char *what)
{
	must(r < 0 ? -errno : r, what);
	return r;
}

/* ---- a tree of small files ------------------------------------------------------------------- */

static void write_file(int dir_fd, const char *name, const struct sbx_buf *text)
{
	SBX_CLOSE int fd = must_errno(
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), name);

	must(sbx_fs_write_all(fd, text->data, text->size), name);
}

/* About 1 KiB of text that no other file has. */
static void small_text(unsigned seed, unsigned number, struct sbx_buf *ret)
{
	sbx_buf_clear(ret);
	for (unsigned i = 0; i < 24; i++)
		must(sbx_buf_printf(
			     ret, "\tvalue_%u_%u = compute(%u, &item->next);\n", seed, i, number),
			"text");
}

static void make_tree(int tree_fd, size_t n_files, unsigned seed)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_CLOSE int dir_fd = -EBADF;

	for (size_t i = 0; i < n_files; i++) {
		char name[32];

		if (i % FILES_PER_DIR == 0) {
			sbx_fd_close(&dir_fd);
			(void)snprintf(name, sizeof(name), "d%u_%zu", seed, i / FILES_PER_DIR);
			must(sbx_fs_ensure_dir(tree_fd, name, 0755, &dir_fd), name);
		}
		(void)snprintf(name, sizeof(name), "f%zu.c", i);
		small_text(seed, (unsigned)i, &text);
		write_file(dir_fd, name, &text);
	}
}

static bool digest_too; /* nftw has no argument for it */

static int visit(
	const char *path, const struct stat *st SBX_UNUSED, int type, struct FTW *ftw SBX_UNUSED)
{
	struct sbx_digest digest;
	SBX_CLOSE int fd = -EBADF;

	if (type != FTW_F || !digest_too)
		return 0;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
	return fd < 0 || sbx_digest_fd(fd, &digest, NULL) < 0;
}

static struct span walk(const struct bench *bench, const char *path, bool digest)
{
	struct span begin = span_begin();

	digest_too = digest;
	must_errno(fchdir(bench->dir_fd), "go to the directory");
	must_errno(nftw(path, visit, 16, FTW_PHYS | FTW_MOUNT), path);
	return span_end(begin);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct json_object *stack_json(const struct sbx_stack *stack)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < stack->n; i++)
		(void)json_object_array_add(array, json_object_new_string(stack->ids[i]));
	return array;
}

static struct json_object *run_job(
	struct bench *bench, const char *name, struct json_object *args, int fd)
{
	const struct sbx_job_entry *entry = sbx_job_find(name);
	struct sbx_job job = {.context = &bench->context,
		.args = args,
		.fd = fd,
		.result = json_object_new_object()};
	struct sbx_err err = SBX_ERR_INIT;

	if (!entry || entry->run(&job, &err) < 0) {
		(void)fprintf(stderr, "bench_publish: %s: %s\n", name, err.message);
		exit(1);
	}
	return job.result;
}

static void new_session(struct bench *bench, char ret_name[static 32])
{
	SBX_CLOSE int fd = -EBADF;
	SBX_CLOSE int upper_fd = -EBADF;

	(void)snprintf(ret_name, 32, "s%u", bench->n_ids++);
	must(sbx_fs_ensure_dir(bench->context.sessions_fd, ret_name, 0700, &fd), ret_name);
	must(sbx_fs_ensure_dir(fd, "upper", 0755, &upper_fd), "upper");
}

static int open_upper(const struct bench *bench, const char *session)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/upper", session);
	return must_errno(
		openat(bench->context.sessions_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path);
}

/* The job and its commit. */
static void publish(struct bench *bench, const char *session)
{
	SBX_JSON struct json_object *args = json_object_new_object();
	SBX_JSON struct json_object *commit = json_object_new_object();
	SBX_JSON struct json_object *result = NULL;
	SBX_JSON struct json_object *committed = NULL;
	char id[32];

	sbx_json_add_string(args, "session_dir", session);
	sbx_json_add(args, "base", stack_json(&bench->head));
	sbx_json_add(args, "head", stack_json(&bench->head));
	sbx_json_add_int(args, "version", (int64_t)bench->head.n);
	sbx_json_add_string(args, "owner", "workspace_session:bench");
	sbx_json_add_string(args, "command", "a command");
	(void)snprintf(id, sizeof(id), "layer%u_%d", bench->n_ids++, (int)getpid());
	sbx_json_add_string(args, "layer_id", id);
	sbx_json_add_string(args, "reject_id", "none");
	result = run_job(bench, "publish", args, -EBADF);
	if (strcmp(sbx_json_string(result, "outcome", ""), "published") != 0)
		must(-EPROTO, sbx_json_text(result, NULL));
	sbx_json_add_string(commit, "batch", "a record of about the length that they have, say\n");
	committed = run_job(bench, "commit", commit, bench->log_fd);
}

/* ---- the shapes ------------------------------------------------------------------------------ */

static void run_program(const char *command)
{
	int status = system(command); /* NOLINT(cert-env33-c): our own words only */

	if (status != 0)
		must(-EPROTO, command);
}

struct shape {
	struct span walk, read, sync, copy, publish;
};

static struct span sync_new_tree(struct bench *bench, size_t n_files)
{
	SBX_CLOSE int tree_fd = -EBADF;
	struct span begin;

	must(sbx_fs_ensure_dir(bench->dir_fd, "other", 0755, &tree_fd), "other");
	make_tree(tree_fd, n_files, bench->n_ids++);
	begin = span_begin();
	must_errno(syncfs(tree_fd), "sync");
	return span_end(begin);
}

static struct span copy_tree(const struct bench *bench, const char *upper)
{
	struct span begin = span_begin();
	char command[128];

	must_errno(fchdir(bench->dir_fd), "go to the directory");
	(void)snprintf(command, sizeof(command), "cp -a %s copy && sync -f copy", upper);
	run_program(command);
	return span_end(begin);
}

static void round_of(struct bench *bench, size_t n_files, struct shape *ret)
{
	char session[32], upper[64];
	SBX_CLOSE int tree_fd = -EBADF;
	struct span begin;

	must_errno(syncfs(bench->dir_fd), "sync");
	ret->sync = sync_new_tree(bench, n_files);
	ret->copy = copy_tree(bench, "other");
	new_session(bench, session);
	(void)snprintf(upper, sizeof(upper), "sessions/%s/upper", session);
	tree_fd = open_upper(bench, session);
	make_tree(tree_fd, n_files, bench->n_ids++);
	ret->walk = walk(bench, upper, false);
	ret->read = walk(bench, upper, true);
	begin = span_begin();
	publish(bench, session);
	ret->publish = span_end(begin);
	must(sbx_fs_remove_tree(bench->dir_fd, "other"), "remove");
	must(sbx_fs_remove_tree(bench->dir_fd, "copy"), "remove");
}

static struct span median_of(const struct shape *shapes, size_t n, size_t member)
{
	struct span spans[ROUNDS_MAX];

	for (size_t i = 0; i < n; i++)
		memcpy(&spans[i], (const char *)&shapes[i] + member, sizeof(spans[i]));
	return median_span(spans, n);
}

static void bench_shape(struct bench *bench, size_t n_files, size_t n_rounds)
{
	struct shape shapes[ROUNDS_MAX];
	struct span walked, read, synced, copied, published;

	for (size_t i = 0; i < n_rounds; i++)
		round_of(bench, n_files, &shapes[i]);
	walked = median_of(shapes, n_rounds, offsetof(struct shape, walk));
	read = median_of(shapes, n_rounds, offsetof(struct shape, read));
	synced = median_of(shapes, n_rounds, offsetof(struct shape, sync));
	copied = median_of(shapes, n_rounds, offsetof(struct shape, copy));
	published = median_of(shapes, n_rounds, offsetof(struct shape, publish));
	printf("%7zu files %9.2f %9.2f %9.2f %9.2f %9.2f %7.2f %7.2f %7.2f\n", n_files, walked.wall,
		read.wall, synced.wall, copied.wall, published.wall,
		(published.wall - synced.wall) / read.wall, (published.cpu - synced.cpu) / read.cpu,
		published.wall / copied.wall);
	(void)fflush(stdout);
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* A layer with the file, under others that do not have it. */
static void add_layers(struct bench *bench, size_t n, struct sbx_stack *ret)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	for (size_t i = 0; i < n; i++) {
		char session[32], id[32], name[32];
		SBX_CLOSE int tree_fd = -EBADF;

		new_session(bench, session);
		tree_fd = open_upper(bench, session);
		sbx_buf_clear(&text);
		for (unsigned k = 0; k < (i ? 3u : (unsigned)N_LINES); k++)
			must(sbx_buf_printf(&text, "\tline %u of layer %zu\n", k, i), "text");
		(void)snprintf(name, sizeof(name), i ? "other%zu.c" : "file.c", i);
		write_file(tree_fd, name, &text);
		(void)snprintf(id, sizeof(id), "layer%u_%d", bench->n_ids, (int)getpid());
		publish(bench, session);
		must(sbx_stack_add(ret, id), id);
	}
}

static double read_us(struct bench *bench, const char *job, const struct sbx_stack *stack)
{
	double times[N_READS];

	for (size_t i = 0; i < N_READS; i++) {
		SBX_JSON struct json_object *args = json_object_new_object();
		SBX_JSON struct json_object *result = NULL;
		struct json_object *inner = json_object_new_object();
		struct span begin;

		sbx_json_add_string(inner, "path", "file.c");
		if (!strcmp(job, "file_read"))
			sbx_json_add_int(inner, "limit", N_LINES);
		sbx_json_add(args, "args", inner);
		sbx_json_add(args, "head", stack_json(stack));
		sbx_json_add_string(args, "root_at", "/workspace");
		begin = span_begin();
		result = run_job(bench, job, args, -EBADF);
		times[i] = span_end(begin).wall * 1e3;
	}
	return median(times, N_READS);
}

static void bench_reads(struct bench *bench)
{
	static const char *const jobs[] = {"file_read", "file_blame"};
	SBX_STACK struct sbx_stack many = SBX_STACK_INIT;
	SBX_STACK struct sbx_stack one = SBX_STACK_INIT;

	add_layers(bench, 100, &many);
	must(sbx_stack_add(&one, many.ids[0]), "stack");
	printf("\n%-20s %9s %9s %9s\n", "of 2,000 lines, us", "1 layer", "100", "ratio");
	for (size_t i = 0; i < SBX_N_ELEMENTS(jobs); i++) {
		double few = read_us(bench, jobs[i], &one), lots = read_us(bench, jobs[i], &many);

		printf("%-20s %9.0f %9.0f %9.2f\n", jobs[i], few, lots, lots / few);
	}
}

/* ---- throughput ------------------------------------------------------------------------------ */

/* Publications prepared by one process until the time is over. */
static unsigned prepare_many(struct bench *bench, uint64_t end_ns)
{
	unsigned n = 0;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		char session[32];
		SBX_CLOSE int tree_fd = -EBADF;

		new_session(bench, session);
		tree_fd = open_upper(bench, session);
		make_tree(tree_fd, BATCH_FILES, bench->n_ids++);
		publish(bench, session);
		n++;
	}
	return n;
}

static double throughput(struct bench *bench, size_t n_processes)
{
	unsigned *counts = mmap(NULL, n_processes * sizeof(*counts), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	double total = 0;

	if (counts == MAP_FAILED)
		must(-errno, "shared memory");
	for (size_t i = 0; i < n_processes; i++) {
		pid_t pid = must_errno(fork(), "fork");

		bench->n_ids += 1000000; /* ids that no other process uses */
		if (pid == 0) {
			counts[i] = prepare_many(bench, begin + BATCH_NS);
			_exit(0);
		}
	}
	while (wait(NULL) >= 0)
		;
	for (size_t i = 0; i < n_processes; i++)
		total += counts[i];
	(void)munmap(counts, n_processes * sizeof(*counts)); /* ends with the program anyway */
	return total * 1e9 / (double)(clock_ns(CLOCK_MONOTONIC) - begin);
}

static void bench_throughput(struct bench *bench)
{
	size_t n_cpus = (size_t)SBX_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	double one = 0;

	printf("\n%-28s %12s %9s\n", "100 files made and published", "a second", "ratio");
	for (size_t n = 1; n <= 2 * n_cpus; n *= 2) {
		double rate = throughput(bench, n);

		one = n == 1 ? rate : one;
		printf("%20zu process%s %12.1f %9.2f\n", n, n == 1 ? "  " : "es", rate, rate / one);
	}
}

static void bench_open(struct bench *bench, const char *dir)
{
	struct sbx_job_context *context = &bench->context;

	bench->dir_fd = must_errno(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), dir);
	context->sandbox_fd = bench->dir_fd;
	must(sbx_fs_ensure_dir(bench->dir_fd, "store", 0700, &context->store_fd), "store");
	must(sbx_fs_ensure_dir(context->store_fd, "layers", 0700, &context->layers_fd), "layers");
	must(sbx_fs_ensure_dir(context->store_fd, "rejects", 0700, &context->rejects_fd),
		"rejects");
	must(sbx_fs_ensure_dir(bench->dir_fd, "sessions", 0700, &context->sessions_fd), "sessions");
	bench->log_fd = must_errno(
		openat(context->store_fd, "head.log", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
		"head.log");
}

int main(int argc, char **argv)
{
	static const size_t counts[] = {1, 100, 10000, 100000};
	size_t n_rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : ROUNDS_DEFAULT;
	struct bench bench = {.n_ids = 1};

	if (argc < 2 || n_rounds == 0 || n_rounds > ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: bench_publish DIR [ROUNDS, 1 to %d [FILES...]]\n",
			ROUNDS_MAX);
		return 2;
	}
	(void)snprintf(scratch, sizeof(scratch), "%s/sbx-bench-publish-XXXXXX", argv[1]);
	if (!mkdtemp(scratch))
		must(-errno, argv[1]);
	(void)atexit(remove_scratch); /* without it something is left over, and said so */
	bench_open(&bench, scratch);
	printf("%13s %9s %9s %9s %9s %9s %7s %7s %7s\n", "ms", "walk", "read", "sync", "cp+sync",
		"publish", "ratio", "cpu", "cp");
	for (int i = 3; i < argc; i++)
		bench_shape(&bench, strtoul(argv[i], NULL, 10), n_rounds);
	for (size_t i = 0; argc <= 3 && i < SBX_N_ELEMENTS(counts); i++)
		bench_shape(&bench, counts[i], n_rounds);
	if (argc <= 3) {
		bench_reads(&bench);
		bench_throughput(&bench);
	}
	return 0;
}
