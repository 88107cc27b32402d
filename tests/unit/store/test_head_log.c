/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../../src/store/head_log.h"
#include "../../../src/store/head_mark.h"
#include "sbx/fs.h"
#include "sbx/store.h"
#include "scratch.h"

static void log_freep(struct sbx_head_log **log)
{
	sbx_head_log_free(*log);
}
#define LOG SBX_CLEANUP(log_freep)

static struct sbx_head_log *open_log(const struct scratch *scratch)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_head_log *log = NULL;

	cr_assert_eq(sbx_head_log_open(scratch->fd, true, &log, &err), 0, "%s", err.message);
	return log;
}

static struct sbx_head_log *new_log(const struct scratch *scratch)
{
	cr_assert_eq(head_log_create(scratch->fd, "base", 1, NULL), 0);
	return open_log(scratch);
}

/* Formats, writes and applies one version that adds "l<version>". */
static void publish(struct sbx_head_log *log, uint64_t version)
{
	SBX_BUF struct sbx_buf batch = SBX_BUF_INIT;
	char id[32];
	struct sbx_head_change change = {.add_layer = id};

	(void)snprintf(id, sizeof(id), "l%d", (int)version);
	cr_assert_eq(sbx_head_log_format(log, version, &change, &batch), 0);
	cr_assert_eq(sbx_head_log_write(sbx_head_log_fd(log), batch.data, batch.size, NULL), 0);
	cr_assert_eq(sbx_head_log_apply(log, version, &change), 0);
}

/* The stack as "base,l2,l3". */
static void expect_stack(const struct sbx_stack *stack, const char *expect)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	for (size_t i = 0; i < stack->n; i++)
		cr_assert_eq(sbx_buf_printf(&text, "%s%s", i ? "," : "", stack->ids[i]), 0);
	cr_expect_str_eq(text.size ? text.data : "", expect);
}

static void expect_head(const struct sbx_head_log *log, uint64_t version, const char *stack)
{
	cr_expect_eq(sbx_head_log_head(log)->version, version);
	expect_stack(&sbx_head_log_head(log)->stack, stack);
}

static void squash(struct sbx_head_log *log, uint64_t version, const char *const *ids, size_t n,
	const char *by)
{
	SBX_STACK struct sbx_stack run = SBX_STACK_INIT;
	SBX_BUF struct sbx_buf batch = SBX_BUF_INIT;
	struct sbx_head_change change = {.add_layer = by, .remove = &run};

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(sbx_stack_add(&run, ids[i]), 0);
	cr_assert_eq(sbx_head_log_format(log, version, &change, &batch), 0);
	cr_assert_eq(sbx_head_log_write(sbx_head_log_fd(log), batch.data, batch.size, NULL), 0);
	cr_assert_eq(sbx_head_log_apply(log, version, &change), 0);
}

Test(head_log, what_was_applied_is_there_after_opening_again)
{
	static const char *const run[] = {"l2", "l3"};
	SCRATCH struct scratch scratch = scratch_new();
	LOG struct sbx_head_log *log = new_log(&scratch);

	expect_head(log, 1, "base");
	for (uint64_t version = 2; version <= 4; version++)
		publish(log, version);
	squash(log, 5, run, 2, "flat");
	publish(log, 7); /* versions may be left out */
	for (int i = 0; i < 2; i++) {
		expect_head(log, 7, "base,flat,l4,l7");
		sbx_head_log_free(log);
		log = open_log(&scratch);
	}
}

Test(head_log, older_versions_can_be_asked_for)
{
	static const char *const run[] = {"base", "l2"};
	static const struct {
		uint64_t version;
		const char *stack; /* NULL: there is none */
	} cases[] = {{0, NULL}, {1, "base"}, {2, "base,l2"}, {3, "base,l2,l3"}, {4, "l3"},
		{5, NULL}, {6, "l3,l6"}, {7, NULL}};
	SCRATCH struct scratch scratch = scratch_new();
	LOG struct sbx_head_log *log = new_log(&scratch);

	publish(log, 2);
	publish(log, 3);
	squash(log, 4, run, 2, NULL);
	publish(log, 6);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_head_done) struct sbx_head head = {0};
		int r = sbx_head_log_at(log, cases[i].version, &head);

		cr_expect_eq(r, cases[i].stack ? 0 : -ENOENT, "version %zu: %d", i, r);
		if (r == 0 && cases[i].stack)
			expect_stack(&head.stack, cases[i].stack);
	}
}

Test(head_log, changes_that_do_not_fit_are_refused)
{
	static const struct {
		const char *label, *add;
		const char *remove[2];
		uint64_t version;
		int expect;
	} cases[] = {
		{"a layer twice", "l2", {NULL}, 9, -EEXIST},
		{"not in a row", "x", {"base", "l3"}, 9, -EINVAL},
		{"not there", "x", {"nowhere"}, 9, -EINVAL},
		{"wrong order", "x", {"l3", "l2"}, 9, -EINVAL},
		{"beyond the end", "x", {"l3", "l4"}, 9, -EINVAL},
		{"an old version", "x", {NULL}, 3, -EINVAL},
		{"no id", "../x", {NULL}, 9, -EINVAL},
		{"nothing", NULL, {NULL}, 9, -EINVAL},
	};
	SCRATCH struct scratch scratch = scratch_new();
	LOG struct sbx_head_log *log = new_log(&scratch);

	publish(log, 2);
	publish(log, 3);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_STACK struct sbx_stack run = SBX_STACK_INIT;
		struct sbx_head_change change = {.add_layer = cases[i].add};

		for (size_t k = 0; k < 2 && cases[i].remove[k]; k++)
			cr_assert_eq(sbx_stack_add(&run, cases[i].remove[k]), 0);
		change.remove = run.n ? &run : NULL;
		cr_expect_eq(sbx_head_log_apply(log, cases[i].version, &change), cases[i].expect,
			"%s", cases[i].label);
		expect_head(log, 3, "base,l2,l3");
	}
}

/* Puts the bytes in the place of the log. */
static void put_log(const struct scratch *scratch, const void *data, size_t size)
{
	cr_assert_eq(sbx_fs_write_at(scratch->fd, HEAD_LOG, 0600, data, size, 0), 0);
}

static size_t log_size(const struct scratch *scratch)
{
	struct stat st;

	cr_assert_eq(fstatat(scratch->fd, HEAD_LOG, &st, 0), 0);
	return (size_t)st.st_size;
}

Test(head_log, a_batch_cut_anywhere_is_dropped_to_its_last_whole_record)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf batch = SBX_BUF_INIT, file = SBX_BUF_INIT;
	size_t good, first_end;

	{
		LOG struct sbx_head_log *log = new_log(&scratch);

		publish(log, 2);
		good = log_size(&scratch);
		cr_assert_eq(sbx_head_log_format(
				     log, 3, &(struct sbx_head_change){.add_layer = "l3"}, &batch),
			0);
		first_end = good + batch.size;
		cr_assert_eq(sbx_head_log_format(
				     log, 4, &(struct sbx_head_change){.add_layer = "l4"}, &batch),
			0);
	}
	cr_assert_eq(sbx_fs_read_at(scratch.fd, HEAD_LOG, 1 << 20, &file), 0);
	cr_assert_eq(sbx_buf_append(&file, batch.data, batch.size), 0);
	for (size_t size = good; size < file.size; size++) {
		put_log(&scratch, file.data, size);
		{
			LOG struct sbx_head_log *log = open_log(&scratch);

			if (size < first_end)
				expect_head(log, 2, "base,l2");
			else
				expect_head(log, 3, "base,l2,l3");
		}
		cr_expect_eq(log_size(&scratch), size < first_end ? good : first_end);
	}
}

Test(head_log, a_batch_whose_beginning_is_missing_is_dropped_whole)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf batch = SBX_BUF_INIT;
	LOG struct sbx_head_log *log = new_log(&scratch);
	size_t good = log_size(&scratch);

	cr_assert_eq(
		sbx_head_log_format(log, 2, &(struct sbx_head_change){.add_layer = "l2"}, &batch),
		0);
	memset(batch.data, 0, batch.size); /* its block never reached the disk */
	cr_assert_eq(
		sbx_head_log_format(log, 3, &(struct sbx_head_change){.add_layer = "l3"}, &batch),
		0);
	cr_assert_eq(sbx_head_log_write(sbx_head_log_fd(log), batch.data, batch.size, NULL), 0);
	sbx_head_log_free(log);
	log = open_log(&scratch);
	expect_head(log, 1, "base");
	cr_expect_eq(log_size(&scratch), good);
}

Test(head_log, reading_only_changes_nothing)
{
	SCRATCH struct scratch scratch = scratch_new();
	LOG struct sbx_head_log *log = new_log(&scratch);
	size_t size;

	publish(log, 2);
	cr_assert_eq(sbx_head_log_write(sbx_head_log_fd(log), "torn", 4, NULL), 0);
	size = log_size(&scratch);
	sbx_head_log_free(log);
	log = NULL;
	cr_assert_eq(sbx_head_log_open(scratch.fd, false, &log, NULL), 0);
	expect_head(log, 2, "base,l2");
	cr_expect_eq(log_size(&scratch), size);
}

Test(head_log, a_damaged_byte_in_an_acknowledged_record_is_an_error)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	size_t last;

	{
		LOG struct sbx_head_log *log = new_log(&scratch);

		publish(log, 2);
		publish(log, 3);
		last = log_size(&scratch); /* the record of version 4 proves all before it */
		publish(log, 4);
	}
	cr_assert_eq(sbx_fs_read_at(scratch.fd, HEAD_LOG, 1 << 20, &file), 0);
	for (size_t i = 0; i < last; i++) {
		struct sbx_err err = SBX_ERR_INIT;
		struct sbx_head_log *log = NULL;

		file.data[i] ^= 1;
		put_log(&scratch, file.data, file.size);
		cr_expect_eq(
			sbx_head_log_open(scratch.fd, true, &log, &err), -EBADMSG, "byte %zu", i);
		cr_expect(strstr(err.message, "head.log") != NULL, "%s", err.message);
		cr_expect_eq(log_size(&scratch), file.size, "byte %zu: the file was changed", i);
		sbx_head_log_free(log);
		file.data[i] ^= 1;
	}
}

/* Opening fails, changes nothing, and says text. */
static void expect_refused(const struct scratch *scratch, const char *text, const char *what)
{
	size_t size = log_size(scratch);

	for (int writable = 0; writable < 2; writable++) {
		struct sbx_err err = SBX_ERR_INIT;
		struct sbx_head_log *log = NULL;

		cr_expect_eq(
			sbx_head_log_open(scratch->fd, writable, &log, &err), -EBADMSG, "%s", what);
		cr_expect(strstr(err.message, text) != NULL, "%s: %s", what, err.message);
		cr_expect_eq(log_size(scratch), size, "%s: the file was changed", what);
		sbx_head_log_free(log);
	}
}

Test(head_log, an_acknowledged_version_that_is_not_there_is_an_error)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	size_t good;

	{
		LOG struct sbx_head_log *log = new_log(&scratch);

		publish(log, 2);
		cr_assert_eq(sbx_head_log_acknowledge(log), 0);
		publish(log, 3);
		good = log_size(&scratch);
		publish(log, 4);
		cr_assert_eq(sbx_head_log_acknowledge(log), 0);
	}
	cr_assert_eq(sbx_fs_read_at(scratch.fd, HEAD_LOG, 1 << 20, &file), 0);
	for (size_t size = good; size < file.size; size++) {
		put_log(&scratch, file.data, size);
		expect_refused(&scratch, "version 4 was acknowledged", "cut off");
	}
	for (size_t i = good; i < file.size; i++) {
		file.data[i] ^= 1;
		put_log(&scratch, file.data, file.size);
		expect_refused(&scratch, "version 4 was acknowledged", "a wrong byte");
		file.data[i] ^= 1;
	}
	put_log(&scratch, file.data, file.size);
	{
		LOG struct sbx_head_log *log = open_log(&scratch);

		expect_head(log, 4, "base,l2,l3,l4");
	}
	put_log(&scratch, file.data, good); /* what the message says */
	cr_assert_eq(unlinkat(scratch.fd, HEAD_MARK, 0), 0);
	{
		LOG struct sbx_head_log *log = open_log(&scratch);

		expect_head(log, 3, "base,l2,l3");
	}
}

Test(head_log, one_whole_slot_of_the_mark_is_enough)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf mark = SBX_BUF_INIT;
	SBX_CLOSE int fd = -EBADF;
	uint64_t version;

	{
		LOG struct sbx_head_log *log = new_log(&scratch);

		for (uint64_t i = 2; i <= 5; i++) {
			publish(log, i);
			cr_assert_eq(sbx_head_log_acknowledge(log), 0);
		}
	}
	cr_assert_eq(sbx_fs_read_at(scratch.fd, HEAD_MARK, 1 << 20, &mark), 0);
	cr_assert_eq(mark.size, 2 * HEAD_MARK_SLOT);
	fd = openat(scratch.fd, HEAD_MARK, O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	for (size_t i = 0; i < mark.size; i++) {
		char wrong = (char)(mark.data[i] ^ 1);

		cr_assert_eq(pwrite(fd, &wrong, 1, (off_t)i), 1);
		cr_assert_eq(head_mark_read(scratch.fd, &version, NULL), 0);
		cr_expect_eq(version, i < HEAD_MARK_SLOT ? 5 : 4, "byte %zu", i);
		cr_assert_eq(pwrite(fd, mark.data + i, 1, (off_t)i), 1);
	}
	cr_assert_eq(ftruncate(fd, HEAD_MARK_SLOT - 1), 0);
	expect_refused(&scratch, HEAD_MARK, "no slot");
	cr_assert_eq(ftruncate(fd, 0), 0); /* made, and not yet written to */
	{
		LOG struct sbx_head_log *log = open_log(&scratch);

		expect_head(log, 5, "base,l2,l3,l4,l5");
	}
}

Test(head_log, an_empty_or_foreign_file_is_an_error)
{
	static const char *const texts[] = {"", "\n", "hello\n", "0123456789abcdef 1 1 1 add {}\n"};
	SCRATCH struct scratch scratch = scratch_new();

	for (size_t i = 0; i < SBX_N_ELEMENTS(texts); i++) {
		struct sbx_head_log *log = NULL;

		put_log(&scratch, texts[i], strlen(texts[i]));
		cr_expect_eq(
			sbx_head_log_open(scratch.fd, true, &log, NULL), -EBADMSG, "%s", texts[i]);
	}
}

Test(head_log, a_failed_write_leaves_the_file_as_it_was)
{
	SCRATCH struct scratch scratch = scratch_new();
	LOG struct sbx_head_log *log = new_log(&scratch);
	SBX_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct sbx_err err = SBX_ERR_INIT;
	size_t size = log_size(&scratch);

	cr_assert_geq(full, 0);
	cr_expect_eq(sbx_head_log_write(full, "x", 1, &err), -ENOSPC);
	cr_expect(strstr(err.message, "head.log") != NULL, "%s", err.message);
	cr_expect_eq(log_size(&scratch), size);
}

/* Versions first to last, each replacing the layer of the one before; the stack stays short. */
static void publish_many(struct sbx_head_log *log, uint64_t first, uint64_t last)
{
	SBX_BUF struct sbx_buf batch = SBX_BUF_INIT;

	for (uint64_t version = first; version <= last; version++) {
		SBX_STACK struct sbx_stack run = SBX_STACK_INIT;
		char old[32], next[32];
		struct sbx_head_change change = {.add_layer = next, .remove = &run};

		(void)snprintf(old, sizeof(old), "l%d", (int)version - 1);
		(void)snprintf(next, sizeof(next), "l%d", (int)version);
		cr_assert_eq(sbx_stack_add(&run, old), 0);
		cr_assert_eq(sbx_head_log_format(log, version, &change, &batch), 0);
		cr_assert_eq(sbx_head_log_apply(log, version, &change), 0);
	}
	cr_assert_eq(sbx_head_log_write(sbx_head_log_fd(log), batch.data, batch.size, NULL), 0);
}

Test(head_log, compaction_keeps_the_head_and_the_newest_history)
{
	SCRATCH struct scratch scratch = scratch_new();
	LOG struct sbx_head_log *log = new_log(&scratch);
	SBX_CLEANUP(sbx_head_done) struct sbx_head head = {0};
	SBX_STACK struct sbx_stack gone = SBX_STACK_INIT;
	size_t before;

	publish(log, 2);
	publish_many(log, 3, 2099);
	before = log_size(&scratch);
	cr_assert_eq(sbx_head_log_forget(log, scratch.fd, 0, &gone, NULL), 0);
	cr_expect_eq(gone.n, 2099 - 1024 - 2); /* l2 up to the one before the snapshot's */
	cr_expect_lt(sbx_stack_find(&gone, "base"), 0);
	cr_expect_lt(log_size(&scratch), before * 2 / 3);
	for (int i = 0; i < 2; i++) {
		expect_head(log, 2099, "base,l2099");
		cr_expect_eq(sbx_head_log_at(log, 3, &head), -ENOENT);
		cr_assert_eq(sbx_head_log_at(log, 1500, &head), 0);
		expect_stack(&head.stack, "base,l1500");
		sbx_head_done(&head);
		sbx_head_log_free(log);
		log = open_log(&scratch);
	}
	publish(log, 2101); /* to the new file */
	sbx_head_log_free(log);
	log = open_log(&scratch);
	expect_head(log, 2101, "base,l2099,l2101");
	sbx_stack_done(&gone);
	cr_assert_eq(sbx_head_log_forget(log, scratch.fd, 0, &gone, NULL), 0); /* short: stays */
	cr_expect_eq(gone.n, 0);
	expect_head(log, 2101, "base,l2099,l2101");
}

Test(head_log, versions_are_forgotten_with_the_layers_that_only_they_named)
{
	static const struct {
		uint64_t oldest, ret_oldest;
		const char *gone;
	} cases[] = {
		{0, 1, ""}, {1, 1, ""}, {3, 3, ""}, /* l2 and l3 stand in version 3 */
		{4, 4, "l2"},                       /* l3 took the place of l2 in 4 */
		{6, 6, "l2,s4"}, {99, 6, "l2,s4"},  /* the head is never forgotten */
	};
	static const char *const first[] = {"l2"}, *const second[] = {"s4"};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SCRATCH struct scratch scratch = scratch_new();
		LOG struct sbx_head_log *log = new_log(&scratch);
		SBX_STACK struct sbx_stack gone = SBX_STACK_INIT;

		publish(log, 2);
		publish(log, 3);
		squash(log, 4, first, 1, "s4");
		publish(log, 5);
		squash(log, 6, second, 1, "s6");
		cr_assert_eq(sbx_head_log_forget(log, scratch.fd, cases[i].oldest, &gone, NULL), 0);
		cr_expect_eq(sbx_head_log_oldest(log), cases[i].ret_oldest, "case %zu", i);
		expect_stack(&gone, cases[i].gone);
		expect_head(log, 6, "base,s6,l3,l5");
	}
}
