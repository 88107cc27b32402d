/* SPDX-License-Identifier: MIT */
#include "sbx/owners.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sbx/buf.h"
#include "sbx/fs.h"
#include "sbx/view.h"
#include "scratch.h"

static void add(struct sbx_owners_writer *writer, const char *path, const struct sbx_run *runs,
	uint32_t n_runs, uint32_t n_lines, bool whole)
{
	struct sbx_owner_record record = {
		.path = path,
		.size = strlen(path),
		.whole = whole,
		.runs = runs,
		.n_runs = n_runs,
		.n_lines = n_lines,
	};

	memset(&record.digest, (int)n_lines, sizeof(record.digest));
	cr_assert_eq(sbx_owners_writer_add(writer, &record), 0);
}

/* Records for "dir/00000" ... with n lines each, owners taken in turn. */
static void write_sample(int dir_fd, size_t n_records)
{
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	uint32_t a, b;

	cr_assert_eq(sbx_owners_writer_new(&writer), 0);
	cr_assert_eq(sbx_owner_table_new(&table), 0);
	cr_assert_eq(sbx_owner_table_add(table, "workspace_session:ws_a", &a), 0);
	cr_assert_eq(sbx_owner_table_add(table, "operation:op_b", &b), 0);
	for (size_t i = n_records; i-- > 0;) { /* not in order */
		struct sbx_run runs[] = {{(uint32_t)i, 0}, {0, a}, {2, a}, {3, a}, {1, b}};
		char path[32];

		(void)snprintf(path, sizeof(path), "dir/%05zu", i);
		add(writer, path, runs, SBX_N_ELEMENTS(runs), (uint32_t)i + 6, false);
	}
	cr_assert_eq(sbx_owners_writer_write(writer, table, dir_fd, "lines", &err), 0, "%s",
		err.message);
}

static void owners_freep(struct sbx_owners **owners)
{
	sbx_owners_free(*owners);
}

Test(owners, a_written_record_is_found_with_its_runs_joined)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLEANUP(owners_freep) struct sbx_owners *owners = NULL;
	struct sbx_owner_record record;
	struct sbx_err err = SBX_ERR_INIT;

	write_sample(scratch.fd, 1000);
	cr_assert_eq(sbx_owners_open(scratch.fd, "lines", &owners, &err), 0, "%s", err.message);
	cr_assert_eq(sbx_owners_count(owners), 1000);
	for (size_t i = 0; i < 1000; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "dir/%05zu", i);
		cr_assert_eq(sbx_owners_find(owners, path, &record), 0);
		cr_assert_str_eq(record.path, path);
		cr_assert_eq(record.n_lines, i + 6);
		cr_assert_eq(record.size, strlen(path));
		cr_assert_eq(record.digest.bytes[5], (uint8_t)(i + 6));
		cr_assert_eq(record.n_runs, i ? 3 : 2);
		cr_assert_eq(record.runs[record.n_runs - 2].count, 5);
		cr_assert_str_eq(sbx_owners_name(owners, record.runs[record.n_runs - 1].owner),
			"operation:op_b");
	}
}

Test(owners, an_absent_path_is_enoent_wherever_it_would_stand)
{
	static const char *const paths[] = {"", "a", "dir/", "dir/00000x", "dir/00500 ", "z"};
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLEANUP(owners_freep) struct sbx_owners *owners = NULL;
	struct sbx_owner_record record;

	write_sample(scratch.fd, 777);
	cr_assert_eq(sbx_owners_open(scratch.fd, "lines", &owners, NULL), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(paths); i++)
		cr_expect_eq(sbx_owners_find(owners, paths[i], &record), -ENOENT, "%s", paths[i]);
	cr_expect_eq(sbx_owners_get(owners, 777, &record), -ENOENT);
}

Test(owners, paths_of_any_bytes_and_files_without_lines_are_kept)
{
	static const char path[] = "new\nline/\xff\xfe caf\xc3\xa9";
	SCRATCH struct scratch scratch = scratch_new();
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	SBX_CLEANUP(owners_freep) struct sbx_owners *owners = NULL;
	struct sbx_run one = {0, 0};
	struct sbx_owner_record record;

	cr_assert_eq(sbx_owners_writer_new(&writer), 0);
	cr_assert_eq(sbx_owner_table_new(&table), 0);
	add(writer, path, NULL, 0, 0, false);
	add(writer, "binary", &one, 1, 0, true);
	cr_assert_eq(sbx_owners_writer_write(writer, table, scratch.fd, "lines", NULL), 0);
	cr_assert_eq(sbx_owners_open(scratch.fd, "lines", &owners, NULL), 0);
	cr_assert_eq(sbx_owners_find(owners, path, &record), 0);
	cr_expect_eq(record.n_runs, 0);
	cr_expect(!record.whole);
	cr_assert_eq(sbx_owners_find(owners, "binary", &record), 0);
	cr_expect(record.whole);
	cr_expect_eq(record.n_runs, 1);
	cr_expect_str_eq(sbx_owners_name(owners, record.runs[0].owner), "original");
}

Test(owners, a_record_that_does_not_add_up_is_refused)
{
	static const struct sbx_run runs[] = {{2, 0}, {3, 1}};
	static const struct {
		const char *label;
		struct sbx_owner_record record;
	} cases[] = {
		{"too few lines", {.path = "a", .runs = runs, .n_runs = 2, .n_lines = 6}},
		{"too many lines", {.path = "a", .runs = runs, .n_runs = 2, .n_lines = 4}},
		{"whole with two owners",
			{.path = "a", .runs = runs, .n_runs = 2, .n_lines = 5, .whole = true}},
		{"whole without an owner", {.path = "a", .whole = true}},
		{"no path", {.path = "", .runs = runs, .n_runs = 2, .n_lines = 5}},
	};
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;

	cr_assert_eq(sbx_owners_writer_new(&writer), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		cr_expect_eq(sbx_owners_writer_add(writer, &cases[i].record), -EINVAL, "%s",
			cases[i].label);
}

Test(owners, a_path_twice_or_an_owner_without_name_writes_nothing)
{
	static const struct {
		const char *second_path;
		uint32_t owner;
		int expect;
	} cases[] = {{"a", 0, -EEXIST}, {"b", 1, -EINVAL}, {"b", 0, 0}};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SCRATCH struct scratch scratch = scratch_new();
		SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
		SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
		struct sbx_run run = {1, cases[i].owner};

		cr_assert_eq(sbx_owners_writer_new(&writer), 0);
		cr_assert_eq(sbx_owner_table_new(&table), 0);
		add(writer, "a", &run, 1, 1, false);
		add(writer, cases[i].second_path, &run, 1, 1, false);
		cr_expect_eq(sbx_owners_writer_write(writer, table, scratch.fd, "lines", NULL),
			cases[i].expect);
		cr_expect_eq(scratch_count(&scratch), cases[i].expect == 0 ? 1 : 0);
	}
}

/* Opens and reads everything: 0 when all is sound, else the first error. */
static int read_all(int dir_fd)
{
	SBX_CLEANUP(owners_freep) struct sbx_owners *owners = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_owner_record record;
	int r = sbx_owners_open(dir_fd, "lines", &owners, &err);

	if (r < 0) {
		cr_expect(strstr(err.message, "lines"), "the message names the file: %s",
			err.message);
		return r;
	}
	for (size_t i = 0; i < sbx_owners_count(owners); i++) {
		r = sbx_owners_get(owners, i, &record);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Padding is the only part that no checksum covers; there is none after these paths (9 + NUL). */
static bool is_padding(const struct sbx_buf *file, size_t at)
{
	return file->data[at] == 0;
}

Test(owners, any_single_damaged_byte_is_noticed_or_is_padding)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	size_t n_unnoticed = 0;

	write_sample(scratch.fd, 5);
	cr_assert_eq(read_all(scratch.fd), 0);
	cr_assert_eq(sbx_fs_read_at(scratch.fd, "lines", 1 << 20, &file), 0);
	for (size_t i = 0; i < file.size; i++) {
		bool padding = is_padding(&file, i);
		int r;

		file.data[i] ^= 0x41;
		cr_assert_eq(
			sbx_fs_write_at(scratch.fd, "lines", 0600, file.data, file.size, 0), 0);
		r = read_all(scratch.fd);
		cr_expect(r == -EBADMSG || (r == 0 && padding), "byte %zu: %d", i, r);
		n_unnoticed += r == 0;
		file.data[i] ^= 0x41;
	}
	/* 6 bytes after each of 5 paths, and at most 7 after the names */
	cr_expect_leq(n_unnoticed, 5 * 6 + 7);
}

Test(owners, any_truncation_is_noticed)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;

	write_sample(scratch.fd, 3);
	cr_assert_eq(sbx_fs_read_at(scratch.fd, "lines", 1 << 20, &file), 0);
	for (size_t size = 0; size < file.size; size++) {
		cr_assert_eq(sbx_fs_write_at(scratch.fd, "lines", 0600, file.data, size, 0), 0);
		cr_expect_eq(read_all(scratch.fd), -EBADMSG, "%zu bytes", size);
	}
}

Test(owner_table, a_name_has_one_index_and_original_is_the_first)
{
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	char long_name[SBX_OWNER_MAX + 2];
	uint32_t index;

	cr_assert_eq(sbx_owner_table_new(&table), 0);
	cr_assert_eq(sbx_owner_table_add(table, "original", &index), 0);
	cr_expect_eq(index, 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			char name[32];

			(void)snprintf(name, sizeof(name), "operation:op_%u", i);
			cr_assert_eq(sbx_owner_table_add(table, name, &index), 0);
			cr_assert_eq(index, i + 1);
			cr_assert_str_eq(sbx_owner_table_name(table, index), name);
		}
	}
	cr_expect_eq(sbx_owner_table_size(table), 5001);
	cr_expect_null(sbx_owner_table_name(table, 5001));
	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	cr_expect_eq(sbx_owner_table_add(table, long_name, &index), -EINVAL);
	cr_expect_eq(sbx_owner_table_add(table, "", &index), -EINVAL);
}

/* -------- a stack of layers */

#define STACK_N       100  /* more than twice as many as squash leaves */
#define STACK_RECORDS 1000 /* in each layer's lines file */

/* Layer i has the files all/<i> and its own record for each; the lowest one has also "deep". */
static void make_layer(int layers_fd, uint32_t i, struct sbx_stack *stack)
{
	char id[SBX_ID_SIZE];
	char name[16];
	SBX_CLOSE int layer_fd = -EBADF;
	SBX_CLOSE int tree_fd = -EBADF;
	SBX_CLOSE int all_fd = -EBADF;

	(void)snprintf(id, sizeof(id), "layer_%u", i);
	(void)snprintf(name, sizeof(name), "%u", i);
	layer_fd = scratch_mkdir(layers_fd, id);
	tree_fd = scratch_mkdir(layer_fd, "tree");
	all_fd = scratch_mkdir(tree_fd, "dir");
	scratch_write(all_fd, name, "text\n");
	if (i == 0)
		scratch_write(all_fd, "00000", "text\n");
	if (i ==
		STACK_N - 1) /* shown by the top layer, which has a new mode for it and no record */
		scratch_write(all_fd, "00001", "text\n");
	write_sample(layer_fd, i == STACK_N - 1 ? 0 : STACK_RECORDS);
	cr_assert_eq(sbx_stack_add(stack, id), 0);
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median CPU time of a look-up of path in the lowest n layers, in ms. */
static double lookup_ms(int layers_fd, const struct sbx_stack *stack, size_t n, const char *path)
{
	struct sbx_stack lower = {.ids = stack->ids, .n = n};
	SBX_VIEW struct sbx_view *view = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	double times[101];

	cr_assert_eq(sbx_view_open(layers_fd, &lower, &view, &err), 0, "%s", err.message);
	for (size_t i = 0; i < SBX_N_ELEMENTS(times); i++) {
		struct sbx_owner_record record;
		const struct sbx_owners *from;
		struct timespec start, end;

		cr_assert_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start), 0);
		cr_assert_eq(
			sbx_owners_lookup(view, path, &record, &from, &err), 0, "%s", err.message);
		cr_assert_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end), 0);
		times[i] = (double)(end.tv_sec - start.tv_sec) * 1e3 +
			   (double)(end.tv_nsec - start.tv_nsec) / 1e6;
	}
	qsort(times, SBX_N_ELEMENTS(times), sizeof(*times), by_time);
	return times[SBX_N_ELEMENTS(times) / 2];
}

Test(owners, a_lookup_takes_no_millisecond_in_a_hundred_layers, .timeout = 120)
{
	static const struct {
		const char *what, *path;
		size_t n;
	} cases[] = {
		{"one layer", "dir/00000", 1},
		{"a file of the lowest of many", "dir/00000", STACK_N - 1},
		{"a file of which the top layer has only the mode", "dir/00001", STACK_N},
	};
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int layers_fd = scratch_mkdir(scratch.fd, "layers");
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;

	for (uint32_t i = 0; i < STACK_N; i++)
		make_layer(layers_fd, i, &stack);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		double ms = lookup_ms(layers_fd, &stack, cases[i].n, cases[i].path);

		cr_log_info("%s: %.4f ms", cases[i].what, ms);
		cr_expect_lt(ms, 1, "%s: %.4f ms", cases[i].what, ms);
	}
}
