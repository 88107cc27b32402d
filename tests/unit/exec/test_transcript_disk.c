/* SPDX-License-Identifier: MIT */
/* The limit on disk, full disks, and writers that end at any point. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "sbx/fs.h"
#include "transcript_fixture.h"

static uint64_t disk_bytes(const struct scratch *scratch)
{
	static const char *const names[] = {"transcript", "transcript.index"};
	uint64_t sum = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		struct stat st;

		cr_assert_eq(fstatat(scratch->fd, names[i], &st, 0), 0);
		sum += (uint64_t)st.st_blocks * 512;
	}
	return sum;
}

Test(transcript_disk, beyond_its_limit_head_and_tail_are_kept_and_rows_keep_their_numbers)
{
	const uint64_t cap = 1 << 20, step = 50000;
	SCRATCH struct scratch scratch;
	struct sbx_transcript_stat st;
	struct tally tally;
	uint64_t n = 0;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, cap);
	for (; n < 500000; n += step) {
		append_numbered(t, n, step);
		cr_assert_leq(disk_bytes(&scratch), cap + (1 << 17));
	}
	tally = tally_numbered(t, n);
	cr_expect_gt(tally.kept_first, 50000);
	cr_expect_gt(tally.kept_last, 20000);
	cr_expect_leq(tally.cut, 2);
	cr_expect_eq(tally.kept_first + tally.cut + tally.dropped + tally.kept_last, n);
	cr_assert_eq(sbx_transcript_stat(t, &st, NULL), 0);
	cr_expect_eq(st.n_rows, n);
	cr_expect_eq(st.n_lost, 0);
	cr_expect_gt(st.n_dropped, 2 << 20);
	/* the same for somebody who opens it later, and for the writer after a restart */
	SBX_TRANSCRIPT struct sbx_transcript *reader = open_transcript(&scratch, 0, 0);
	struct tally again = tally_numbered(reader, n);
	cr_expect_eq(memcmp(&tally, &again, sizeof(tally)), 0);
	sbx_transcript_close(sbx_take(&t));
	t = open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, cap);
	append_numbered(t, n, step);
	cr_expect_eq(tally_numbered(reader, n + step).kept_first, tally.kept_first);
}

Test(transcript_disk, a_yield_over_the_dropped_middle_shows_what_is_there)
{
	static const uint64_t starts[] = {0, 70000, 100000, 1000000};
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	const uint64_t n = 2000000;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 1 << 20);
	append_numbered(t, 0, n);
	for (size_t i = 0; i < SBX_N_ELEMENTS(starts); i++) {
		struct sbx_transcript_window w = yield(t, starts[i], 0, &out);

		cr_expect_eq(w.end, n);
		cr_expect_str_eq(out.data + out.size - 16, "1999998\n1999999\n");
		cr_expect_null(strstr(out.data, SBX_TRANSCRIPT_ROW_DROPPED));
		cr_expect_not_null(strstr(out.data, "omitted; read_command_lines start_offset="));
		cr_expect_gt(w.n_bytes, (n - starts[i]) * 6);
	}
}

Test(transcript_disk, a_row_larger_than_the_limit_keeps_both_ends)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	SBX_FREE char *piece = malloc(1 << 20);

	cr_assert_not_null(piece);
	memset(piece, 'a', 1 << 20);
	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 1 << 20);
	append(t, S("one\nhead"));
	for (int i = 0; i < 20; i++)
		append(t, piece, 1 << 20);
	append(t, S("tail\nlast\n"));
	row_text(t, 1, &out);
	cr_expect_eq(strncmp(out.data, "headaaaa", 8), 0);
	cr_expect_not_null(strstr(out.data, "[row cut: 16384 of 20971528 bytes shown]"));
	cr_expect_str_eq(out.data + out.size - 8, "aaaatail");
	row_text(t, 2, &out);
	cr_expect_str_eq(out.data, "last");
	row_text(t, 0, &out);
	cr_expect_str_eq(out.data, "one");
	cr_expect_leq(disk_bytes(&scratch), (1 << 20) + (1 << 17));
}

/* A small file system of its own for the scratch directory. False when that is not allowed here. */
static bool mount_scratch(struct scratch *scratch, const char *type, const char *options)
{
	if (mount("none", scratch->path, type, 0, options) < 0)
		return false;
	sbx_fd_close(&scratch->fd);
	scratch->fd = open(scratch->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	cr_assert_geq(scratch->fd, 0);
	return true;
}

static void umount_scratch(struct scratch *scratch)
{
	sbx_fd_close(&scratch->fd);
	cr_expect_eq(umount2(scratch->path, MNT_DETACH), 0);
}

/* Where the file cannot grow, at a full disk or without holes at the limit: counted, not stored. */
static void rows_are_lost_but_counted(const char *type, const char *options, uint64_t cap)
{
	const uint64_t n = 300000;
	struct scratch scratch;
	struct sbx_transcript_stat st = {0}, again = {0};
	struct tally tally, reread;

	scratch_init(&scratch);
	if (!mount_scratch(&scratch, type, options)) {
		scratch_done(&scratch);
		cr_skip_test("cannot mount a %s here", type);
	}
	struct sbx_transcript *t = open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, cap);
	struct sbx_transcript *reader = open_transcript(&scratch, 0, 0);
	append_numbered(t, 0, n);
	tally = tally_numbered(t, n);
	reread = tally_numbered(reader, n);
	cr_expect_eq(sbx_transcript_stat(t, &st, NULL), 0);
	append(t, S("more"));
	cr_expect_eq(sbx_transcript_stat(t, &again, NULL), 0);
	sbx_transcript_close(reader);
	sbx_transcript_close(t);
	umount_scratch(&scratch);
	scratch_done(&scratch);
	cr_expect_gt(tally.kept_first, 50000);
	cr_expect_gt(tally.dropped, 100000);
	cr_expect_leq(tally.cut, 1);
	cr_expect_eq(tally.kept_last, 0);
	cr_expect_eq(memcmp(&tally, &reread, sizeof(tally)), 0);
	cr_expect_eq(st.n_rows, n);
	cr_expect_gt(st.n_lost, 900000);
	cr_expect_not(st.partial);
	cr_expect_eq(again.n_rows, n + 1);
	cr_expect(again.partial);
}

Test(transcript_disk, rows_that_a_full_disk_refuses_are_named)
{
	rows_are_lost_but_counted("tmpfs", "size=1m", 0);
}

Test(transcript_disk, without_holes_the_head_is_kept_and_later_rows_are_named)
{
	rows_are_lost_but_counted("ramfs", "", 1 << 20);
}

/* Appends rows of its own numbers, in pieces that do not end with rows, until it is killed. */
static _Noreturn void write_for_ever(int dir_fd, uint64_t cap, uint64_t first)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct sbx_transcript *t;

	if (sbx_transcript_open(dir_fd, SBX_TRANSCRIPT_WRITE, cap, &t, NULL) < 0)
		_exit(1);
	for (uint64_t i = first;; i++) {
		if (sbx_buf_printf(&text, "%lu\r\n", i) < 0)
			_exit(2);
		if (text.size < 30000)
			continue;
		if (sbx_transcript_append(t, text.data, 29000, NULL) < 0)
			_exit(3);
		sbx_buf_consume(&text, 29000);
	}
}

/* Waits until the transcript has grown by so much, then kills its writer there and then. */
static void kill_writer_after(pid_t pid, const struct scratch *scratch, uint64_t n_bytes)
{
	struct stat st = {0};
	int status;

	while (fstatat(scratch->fd, "transcript", &st, 0) < 0 || (uint64_t)st.st_size < n_bytes)
		cr_assert_eq(waitpid(pid, &status, WNOHANG), 0, "the writer ended by itself");
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status));
}

static uint64_t count_rows_in_file(const struct scratch *scratch, uint64_t *ret_size)
{
	SBX_BUF struct sbx_buf raw = SBX_BUF_INIT;
	uint64_t n = 0;

	cr_assert_eq(sbx_fs_read_at(scratch->fd, "transcript", 1 << 30, &raw), 0);
	for (size_t i = 0; i < raw.size; i++)
		n += raw.data[i] == '\n';
	*ret_size = raw.size;
	return n + (raw.size && raw.data[raw.size - 1] != '\n');
}

/* Cuts or soils the end of the index as a killed or half-written writer could leave it. */
static void tear_index(const struct scratch *scratch, unsigned int how)
{
	SBX_CLOSE int fd = openat(scratch->fd, "transcript.index", O_RDWR | O_CLOEXEC);
	struct stat st;

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &st), 0);
	switch (how % 4) {
	case 0:
		break;
	case 1:
		cr_assert_eq(ftruncate(fd, st.st_size - 5), 0);
		break;
	case 2:
		cr_assert_eq(pwrite(fd, "garbage at the end", 18, st.st_size), 18);
		break;
	case 3:
		cr_assert_eq(ftruncate(fd, 64 + 16 * (st.st_size - 64) / 32), 0);
		break;
	}
}

Test(transcript_disk, a_killed_writer_leaves_every_byte_that_it_wrote, .timeout = 60)
{
	for (unsigned int i = 0; i < 24; i++) {
		SCRATCH struct scratch scratch;
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
		uint64_t n_rows, size;
		pid_t pid;

		scratch_init(&scratch);
		pid = fork();
		cr_assert_geq(pid, 0);
		if (pid == 0)
			write_for_ever(scratch.fd, 0, 0);
		kill_writer_after(pid, &scratch, 100000 + random_below(700000));
		tear_index(&scratch, i);
		n_rows = count_rows_in_file(&scratch, &size);
		SBX_TRANSCRIPT struct sbx_transcript *reader = open_transcript(&scratch, 0, 0);
		struct sbx_transcript_stat st;
		cr_assert_eq(sbx_transcript_stat(reader, &st, NULL), 0);
		cr_assert_eq(st.n_rows, n_rows);
		cr_assert_eq(st.n_bytes, size);
		tally_numbered(reader, st.n_rows - st.partial);
		/* somebody goes on where it ended */
		SBX_TRANSCRIPT struct sbx_transcript *t =
			open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
		append(t, S("\nafter the crash\n"));
		window(reader, n_rows, 1, 0, &out);
		cr_assert_eq(sbx_transcript_stat(reader, &st, NULL), 0);
		row_text(reader, st.n_rows - 1, &out);
		cr_assert_str_eq(out.data, "after the crash");
	}
}

Test(transcript_disk, a_killed_writer_that_was_dropping_leaves_rows_with_their_numbers,
	.timeout = 60)
{
	SCRATCH struct scratch scratch;
	struct sbx_transcript_stat st;
	uint64_t written = 0;

	scratch_init(&scratch);
	for (unsigned int i = 0; i < 12; i++) {
		uint64_t first = 0;
		pid_t pid;

		if (written) {
			/* let the next writer start with a whole row */
			SBX_TRANSCRIPT struct sbx_transcript *t =
				open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 1 << 20);
			cr_assert_eq(sbx_transcript_stat(t, &st, NULL), 0);
			append(t, S("[row cut: its writer was killed]\n"));
			first = st.n_rows + !st.partial;
		}
		written += 1200000 + random_below(500000);
		pid = fork();
		cr_assert_geq(pid, 0);
		if (pid == 0)
			write_for_ever(scratch.fd, 1 << 20, first);
		kill_writer_after(pid, &scratch, written);
		SBX_TRANSCRIPT struct sbx_transcript *reader = open_transcript(&scratch, 0, 0);
		cr_assert_eq(sbx_transcript_stat(reader, &st, NULL), 0);
		cr_assert_gt(st.n_dropped, 0);
		tally_numbered(reader, st.n_rows - st.partial);
		written = st.n_bytes;
	}
}

/* A reader in another process, while the writer floods and drops, never sees a wrong row. */
Test(transcript_disk, a_reader_is_right_while_the_writer_drops, .timeout = 60)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_transcript_stat st = {0};
	struct sbx_err err = SBX_ERR_INIT;
	uint64_t n_seen = 0;
	int status;
	pid_t pid;

	scratch_init(&scratch);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		write_for_ever(scratch.fd, 1 << 20, 0);
	while (faccessat(scratch.fd, "transcript", F_OK, 0) < 0)
		cr_assert_eq(waitpid(pid, &status, WNOHANG), 0);
	SBX_TRANSCRIPT struct sbx_transcript *reader = open_transcript(&scratch, 0, 0);
	for (int i = 0; i < 1500 || st.n_dropped <= 1 << 20 || n_seen <= 10000; i++) {
		struct sbx_transcript_window w;
		uint64_t row;
		char *p;
		int r;

		cr_assert_eq(sbx_transcript_stat(reader, &st, &err), 0, "%s", err.message);
		if (st.n_rows < 10)
			continue;
		/* mostly near the edges of the hole, where the writer is at work */
		row = i % 3 == 0 ? random_below((unsigned int)st.n_rows)
				 : st.n_rows - SBX_MIN(st.n_rows, random_below(150000) + 2);
		out.size = 0;
		r = sbx_transcript_window(reader, row, 20, 100000, 0, &out, &w, &err);
		cr_assert(r == 0 || r == -EBUSY, "%s", err.message);
		if (r < 0)
			continue;
		cr_assert_eq(sbx_buf_append(&out, "", 1), 0);
		p = out.data;
		for (row = w.start; row < w.end - w.partial; row++, n_seen++) {
			char want[32];

			snprintf(want, sizeof(want), "%lu\n", row);
			if (*p != '[' && strncmp(p, want, strlen(want)) != 0)
				cr_assert_not_null(strstr(p, "[row cut"), "row %lu: %.40s", row, p);
			p = strchr(p, '\n') + 1;
		}
	}
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
}

Test(transcript_disk, damage_in_the_index_is_an_error_that_names_it)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_transcript_window w;
	struct sbx_transcript *reader = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	append_numbered(t, 0, 200000);
	SBX_CLOSE int fd = openat(scratch.fd, "transcript.index", O_RDWR | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, "\xff", 1, 64 + 16 * 10), 1);
	cr_expect_eq(sbx_transcript_window(t, 110000, 10, 1000, 0, &out, &w, &err), -EBADMSG);
	cr_expect_not_null(strstr(err.message, "transcript.index"), "%s", err.message);
	cr_assert_eq(pwrite(fd, "\xff", 1, 20), 1);
	cr_expect_eq(sbx_transcript_open(scratch.fd, 0, 0, &reader, &err), -EBADMSG);
	cr_expect_null(reader);
}

Test(transcript_disk, there_is_nothing_to_read_where_none_was_written)
{
	SCRATCH struct scratch scratch;
	struct sbx_transcript *reader = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	scratch_init(&scratch);
	cr_expect_eq(sbx_transcript_open(scratch.fd, 0, 0, &reader, &err), -ENOENT);
	cr_expect_eq(err.kind, SBX_KIND_NOT_FOUND);
}
