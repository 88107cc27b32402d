/* SPDX-License-Identifier: MIT */
/* Rows, windows and yields. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"
#include "sbx/json.h"
#include "sbx/loop.h"
#include "sbx/render.h"
#include "transcript_fixture.h"

#define BLOCK (64 << 10)

static const struct small {
	const char *raw;
	size_t size;
	enum sbx_transcript_window_flags flags;
	uint64_t start;
	uint64_t max_rows;
	const char *want;
	uint64_t end;
	uint64_t n_rows;
	bool partial;
} smalls[] = {
	{S(""), 0, 0, 200, "", 0, 0, false},
	{S("a"), 0, 0, 200, "a", 1, 1, true},
	{S("a\n"), 0, 0, 200, "a\n", 1, 1, false},
	{S("\n"), 0, 0, 200, "\n", 1, 1, false},
	{S("a\nb"), 0, 0, 200, "a\nb", 2, 2, true},
	{S("a\nb"), 0, 0, 1, "a\n", 1, 2, false},
	{S("a\nb"), 0, 1, 200, "b", 2, 2, true},
	{S("a\n\n\nb\n"), 0, 1, 2, "\n\n", 3, 4, false},
	{S("a\nb\n"), 0, 2, 200, "", 2, 2, false},
	{S("a\nb\n"), 0, 900, 200, "", 900, 2, false},
	{S("a\nb\n"), 0, 0, 0, "a\n", 1, 2, false},
	{S("a\r\nb\r\n"), 0, 0, 200, "a\nb\n", 2, 2, false},
	{S("\rp 1\rp 2\np\r"), 0, 0, 200, "p 2\np", 2, 2, true},
	{S("a\0b\nc\n"), 0, 0, 200, "ab\nc\n", 2, 2, false},
	{S("x \xe2"), 0, 0, 200, "x ", 1, 1, true},
	{S("x \xe2\x82"), SBX_TRANSCRIPT_CLOSED, 0, 200, "x \xef\xbf\xbd", 1, 1, true},
	{S("x \xe2\x82\n"), 0, 0, 200, "x \xef\xbf\xbd\n", 1, 1, false},
};

Test(transcript, rows_are_what_newlines_separate)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(smalls); i++) {
		const struct small *row = &smalls[i];
		SCRATCH struct scratch scratch;
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
		struct sbx_transcript_window w;

		scratch_init(&scratch);
		SBX_TRANSCRIPT struct sbx_transcript *t =
			open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
		SBX_TRANSCRIPT struct sbx_transcript *reader = open_transcript(&scratch, 0, 0);
		append(t, row->raw, row->size);
		for (int by_reader = 0; by_reader < 2; by_reader++) {
			w = window(by_reader ? reader : t, row->start, row->max_rows, row->flags,
				&out);
			cr_expect_str_eq(out.data, row->want, "row %zu", i);
			cr_expect_eq(w.start, row->start, "row %zu", i);
			cr_expect_eq(w.end, row->end, "row %zu: %lu", i, w.end);
			cr_expect_eq(w.n_rows, row->n_rows, "row %zu", i);
			cr_expect_eq(w.partial, row->partial, "row %zu", i);
			cr_expect_eq(w.n_bytes, out.size, "row %zu", i);
		}
	}
}

/* Bytes of every kind, with a row of some blocks now and then. */
static void random_bytes(struct sbx_buf *out, size_t n)
{
	static const struct {
		const char *s;
		size_t n;
	} pieces[] = {{S("text and more ")}, {S("\n")}, {S("\r\n")}, {S("\xe2\x82\xac")},
		{S("\xff")}, {S("\033[31mred\033[0m")}, {S("\rprogress")}, {S("\t")}, {S("\0")},
		{S("\xf0\x9f\x98\x80")}, {S("\n\n\n")}, {S("\033]0;title\007")}, {S("\b")},
		{S("0123456789 0123456789")}};

	while (out->size < n) {
		unsigned int i = random_below(SBX_N_ELEMENTS(pieces));

		for (unsigned int k = random_below(4000) ? 1 : 6000; k > 0; k--)
			cr_assert_eq(sbx_buf_append(out, pieces[i].s, pieces[i].n), 0);
	}
}

/* Renders all rows of raw one by one, the plain way. */
static void render_all(const struct sbx_buf *raw, bool closed, struct sbx_buf *out)
{
	SBX_CLEANUP(sbx_render_done) struct sbx_render render = SBX_RENDER_INIT;
	const char *p = raw->data, *end = raw->data + raw->size;

	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((newline ? newline : end) - p);
		struct sbx_render_row row = {.head = p, .head_n = n, .size = n};

		if (n > SBX_RENDER_RAW_MAX) {
			row.head_n = row.tail_n = SBX_RENDER_WINDOW;
			row.tail = p + n - SBX_RENDER_WINDOW;
		}
		row.flags = newline || closed ? 0 : SBX_RENDER_OPEN;
		cr_assert_eq(sbx_render_row(&render, &row, out, NULL), 0);
		if (newline)
			cr_assert_eq(sbx_buf_append(out, "\n", 1), 0);
		p += n + 1;
	}
}

/* Reads everything in windows of random sizes. */
static void read_all(
	struct sbx_transcript *t, enum sbx_transcript_window_flags flags, struct sbx_buf *ret)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_transcript_window w = {0};

	do {
		w = window(t, w.end, 1 + random_below(1000), flags, &out);
		cr_assert(sbx_utf8_valid(out.data, out.size));
		cr_assert_eq(sbx_buf_append(ret, out.data, out.size), 0);
	} while (w.end < w.n_rows);
}

static void append_in_chunks(
	struct sbx_transcript *t, const struct sbx_buf *raw, unsigned int chunk_max)
{
	for (size_t at = 0; at < raw->size;) {
		size_t n = SBX_MIN(raw->size - at, (size_t)1 + random_below(chunk_max));

		append(t, raw->data + at, n);
		at += n;
	}
}

Test(transcript, any_chunks_and_windows_of_the_same_bytes_give_the_same_rows)
{
	static const unsigned int chunk_max[] = {1, 7, 100, 5000, BLOCK, 300000};
	SBX_BUF struct sbx_buf raw = SBX_BUF_INIT, want = SBX_BUF_INIT;

	random_bytes(&raw, 300000);
	render_all(&raw, false, &want);
	for (size_t i = 0; i < SBX_N_ELEMENTS(chunk_max); i++) {
		SCRATCH struct scratch scratch;
		SBX_BUF struct sbx_buf got = SBX_BUF_INIT;

		scratch_init(&scratch);
		SBX_TRANSCRIPT struct sbx_transcript *t =
			open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
		append_in_chunks(t, &raw, chunk_max[i]);
		read_all(t, 0, &got);
		cr_assert_eq(got.size, want.size, "chunks to %u", chunk_max[i]);
		cr_assert_eq(
			memcmp(got.data, want.data, want.size), 0, "chunks to %u", chunk_max[i]);
	}
}

/* What was once read of finished rows is read again at each later state, also by another opener. */
Test(transcript, finished_rows_never_change)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf raw = SBX_BUF_INIT, seen = SBX_BUF_INIT;

	random_bytes(&raw, 200000);
	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	SBX_TRANSCRIPT struct sbx_transcript *reader = open_transcript(&scratch, 0, 0);
	for (size_t at = 0; at < raw.size;) {
		size_t n = SBX_MIN(raw.size - at, (size_t)1 + random_below(20000));
		SBX_BUF struct sbx_buf now = SBX_BUF_INIT;
		char *last;

		append(t, raw.data + at, n);
		at += n;
		read_all(random_below(2) ? t : reader, 0, &now);
		cr_assert_geq(now.size, seen.size);
		cr_assert_eq(memcmp(now.data, seen.data ? seen.data : "", seen.size), 0);
		last = memrchr(now.data, '\n', now.size);
		seen.size = 0;
		cr_assert_eq(
			sbx_buf_append(&seen, now.data, last ? (size_t)(last + 1 - now.data) : 0),
			0);
	}
	cr_expect_gt(seen.size, 100000);
}

Test(transcript, a_character_in_three_writes_is_one_character)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	append(t, S("x \xe2"));
	window(t, 0, 10, 0, &out);
	cr_expect_str_eq(out.data, "x ");
	append(t, S("\x82"));
	window(t, 0, 10, 0, &out);
	cr_expect_str_eq(out.data, "x ");
	append(t, S("\xac y\n"));
	window(t, 0, 10, 0, &out);
	cr_expect_str_eq(out.data, "x \xe2\x82\xac y\n");
	append(t, S("end \360\237"));
	yield(t, 1, 0, &out);
	cr_expect_str_eq(out.data, "end ");
	yield(t, 1, SBX_TRANSCRIPT_CLOSED, &out);
	cr_expect_str_eq(out.data, "end \xef\xbf\xbd");
}

Test(transcript, every_row_of_a_long_one_is_found_by_its_number)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	const uint64_t n = 2000000;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	append_numbered(t, 0, n);
	for (int i = 0; i < 3000; i++) {
		uint64_t row = i == 0 ? n - 1 : random_below((unsigned int)n);
		char want[32];

		struct sbx_transcript_window w = window(t, row, 1, 0, &out);
		snprintf(want, sizeof(want), "%lu\n", row);
		cr_assert_str_eq(out.data, want);
		cr_assert_eq(w.n_rows, n);
	}
}

Test(transcript, a_window_ends_at_its_bytes_and_its_rows)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT, raw = SBX_BUF_INIT;
	struct sbx_transcript_window w;
	struct sbx_err err = SBX_ERR_INIT;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	append_numbered(t, 0, 5000);
	w = window(t, 0, 100000, 0, &out);
	cr_expect_eq(w.end, SBX_TRANSCRIPT_ROWS_MAX);
	cr_assert_eq(sbx_transcript_window(t, 10, 100, 12, 0, &out, &w, &err), 0);
	cr_expect_eq(w.end, 14, "four rows of three bytes");
	cr_assert_eq(sbx_transcript_window(t, 10, 100, 1, 0, &out, &w, &err), 0);
	cr_expect_eq(w.end, 11, "one row at least");
	cr_expect_eq(sbx_transcript_tokens(&w), 1);
	/* rows that show little but hold much: the window ends early, not empty, and goes on */
	for (int i = 0; i < 60000; i++)
		cr_assert_eq(sbx_buf_append_string(&raw, "\r"), 0);
	cr_assert_eq(sbx_buf_append_string(&raw, "\n"), 0);
	for (int i = 0; i < 200; i++)
		append(t, raw.data, raw.size);
	w = window(t, 5000, 1000, 0, &out);
	cr_expect_gt(w.end, 5000);
	cr_expect_lt(w.end, 5200);
	w = window(t, w.end, 1000, 0, &out);
	cr_expect_gt(w.end - w.start, 10);
}

Test(transcript, a_row_without_end_gives_valid_windows)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	SBX_FREE char *piece = malloc(1 << 20);
	struct sbx_transcript_window w;
	uint64_t size = 0;

	cr_assert_not_null(piece);
	memset(piece, 'a', 1 << 20);
	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	append(t, S("first\nhead"));
	for (int i = 0; i < 96; i++, size += 1 << 20)
		append(t, piece, 1 << 20);
	append(t, S("tail"));
	for (int i = 0; i < 2; i++) {
		w = i ? yield(t, 0, 0, &out) : window(t, 0, 10, 0, &out);
		cr_expect_eq(w.end, 2);
		cr_expect_eq(w.partial, true);
		cr_expect_eq(w.n_bytes, 6 + size + 8);
		cr_expect_eq(strncmp(out.data, S("first\nheadaaaa")), 0);
		cr_expect_str_eq(out.data + out.size - 8, "aaaatail");
		cr_expect_not_null(strstr(out.data, "[row cut: 16384 of 100663304 bytes shown]"));
	}
	append(t, S("\nnext\n"));
	w = window(t, 1, 10, 0, &out);
	cr_expect_eq(w.end, 3);
	cr_expect_str_eq(out.data + out.size - 10, "tail\nnext\n");
}

Test(transcript, a_yield_shows_first_and_last_rows_and_names_the_gap)
{
	static const uint64_t starts[] = {0, 1, 1000, 150000};
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	const uint64_t n = 200000; /* the case of `seq 1 200000`: more than a yield can take */

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	append_numbered(t, 0, n);
	for (size_t i = 0; i < SBX_N_ELEMENTS(starts); i++) {
		struct sbx_transcript_window w = yield(t, starts[i], 0, &out);
		unsigned long first, last, again, expect = starts[i];
		char *gap = strchr(out.data, '[');

		cr_expect_eq(w.start, starts[i]);
		cr_expect_eq(w.end, n);
		cr_assert_not_null(gap);
		cr_expect_eq(sscanf(gap,
				     "[rows %lu..%lu omitted; read_command_lines "
				     "start_offset=%lu]\n",
				     &first, &last, &again),
			3);
		cr_expect_eq(again, first);
		for (char *p = out.data; p < out.data + out.size; p = strchr(p, '\n') + 1) {
			if (p == gap) {
				cr_expect_eq(first, expect);
				expect = last + 1;
				continue;
			}
			cr_assert_eq(strtoul(p, NULL, 10), expect, "start %lu", starts[i]);
			expect++;
		}
		cr_expect_eq(expect, n);
		cr_expect_gt(first - starts[i], 1000, "a good part at the start");
		cr_expect_gt(n - last, 1000, "and at the end");
		cr_expect_gt(out.size, SBX_TRANSCRIPT_YIELD_MAX * 3 / 4);
	}
}

Test(transcript, a_yield_that_fits_omits_nothing)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_transcript_window w;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	w = yield(t, 0, 0, &out);
	cr_expect_eq(w.end, 0);
	append_numbered(t, 0, 10000);
	w = yield(t, 0, 0, &out);
	cr_expect_null(strchr(out.data, '['));
	cr_expect_eq(w.n_bytes, out.size);
	append(t, S("prompt> "));
	w = yield(t, 10000, 0, &out);
	cr_expect_str_eq(out.data, "prompt> ");
	cr_expect_eq(w.partial, true);
	w = yield(t, 20000, 0, &out);
	cr_expect_eq(w.start, 20000);
	cr_expect_eq(w.end, 20000);
	cr_expect_eq(out.size, 0);
}

Test(transcript, tokens_count_what_was_omitted_or_cut)
{
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_transcript_window w;

	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, 0);
	for (int i = 0; i < 10000; i++)
		append(t, S("\033[31m12345678\033[0m\r\n123456789012345\r\n"));
	w = yield(t, 0, 0, &out);
	cr_expect_not_null(strstr(out.data, "omitted"));
	cr_expect_eq(w.n_bytes, 10000 * 25);
	cr_expect_eq(sbx_transcript_tokens(&w), 62500);
	for (int i = 0; i < 90000; i++)
		append(t, S("\033[31m12345678\033[0m\r\n123456789012345\r\n"));
	w = yield(t, 0, 0, &out);
	cr_expect_geq(w.n_bytes, 100000 * 25, "from the raw bytes when there are many");
	cr_expect_leq(w.n_bytes, 100000 * 37);
}

static uint64_t rss_kib(void)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	char *line;

	cr_assert_eq(sbx_fs_read_at(AT_FDCWD, "/proc/self/status", 1 << 16, &text), 0);
	line = strstr(text.data, "VmRSS:");
	cr_assert_not_null(line);
	return strtoul(line + 6, NULL, 10);
}

Test(transcript, a_flood_costs_no_memory_and_windows_stay_fast, .timeout = 60)
{
	const size_t n = 64 << 10, rounds = 4096; /* 256 MiB of `yes` */
	SCRATCH struct scratch scratch;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	SBX_FREE char *piece = malloc(n);
	uint64_t best = UINT64_MAX, rss;

	cr_assert_not_null(piece);
	for (size_t i = 0; i < n; i += 2)
		memcpy(piece + i, "y\n", 2);
	scratch_init(&scratch);
	SBX_TRANSCRIPT struct sbx_transcript *t =
		open_transcript(&scratch, SBX_TRANSCRIPT_WRITE, UINT64_C(256) << 20);
	append(t, piece, n);
	window(t, 0, 1000, 0, &out);
	rss = rss_kib();
	for (size_t i = 1; i < rounds; i++)
		append(t, piece, n);
	for (int i = 0; i < 50; i++) {
		uint64_t start = sbx_now_ns();
		struct sbx_transcript_window w = window(
			t, random_below((unsigned int)(n / 2 * rounds) - 1000), 1000, 0, &out);

		best = SBX_MIN(best, sbx_now_ns() - start);
		cr_assert_eq(w.end - w.start, 1000);
		cr_assert_eq(out.size, 2000);
	}
#ifdef __SANITIZE_ADDRESS__
	rss = UINT64_MAX - 1024; /* ASan keeps for a while what is freed: only the times count */
#endif
	cr_expect_leq(rss_kib(), rss + 1024);
	cr_expect_lt(best, 5 * SBX_NSEC_PER_MSEC, "%lu ns", best);
}
