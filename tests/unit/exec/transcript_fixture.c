/* SPDX-License-Identifier: MIT */
#include "transcript_fixture.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"

void scratch_init(struct scratch *scratch)
{
	strcpy(scratch->path, "/tmp/sbx-test-transcript-XXXXXX");
	cr_assert_not_null(mkdtemp(scratch->path));
	scratch->fd = open(scratch->path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	cr_assert_geq(scratch->fd, 0);
}

void scratch_done(struct scratch *scratch)
{
	sbx_fd_close(&scratch->fd);
	cr_expect_eq(sbx_fs_remove_tree(AT_FDCWD, scratch->path), 0);
}

struct sbx_transcript *open_transcript(
	const struct scratch *scratch, enum sbx_transcript_open_flags flags, uint64_t cap)
{
	struct sbx_transcript *t = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_transcript_open(scratch->fd, flags, cap, &t, &err), 0, "%s", err.message);
	return t;
}

void append(struct sbx_transcript *t, const char *data, size_t size)
{
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_transcript_append(t, data, size, &err), 0, "%s", err.message);
}

struct sbx_transcript_window window(struct sbx_transcript *t, uint64_t start, uint64_t max_rows,
	enum sbx_transcript_window_flags flags, struct sbx_buf *out)
{
	struct sbx_transcript_window w = {0};
	struct sbx_err err = SBX_ERR_INIT;

	out->size = 0;
	cr_assert_eq(sbx_transcript_window(
			     t, start, max_rows, SBX_TRANSCRIPT_READ_MAX, flags, out, &w, &err),
		0, "%s", err.message);
	cr_assert_eq(sbx_buf_append(out, "", 1), 0);
	out->size--;
	return w;
}

struct sbx_transcript_window yield(struct sbx_transcript *t, uint64_t start,
	enum sbx_transcript_window_flags flags, struct sbx_buf *out)
{
	struct sbx_transcript_window w = {0};
	struct sbx_err err = SBX_ERR_INIT;

	out->size = 0;
	cr_assert_eq(sbx_transcript_yield(t, start, flags, out, &w, &err), 0, "%s", err.message);
	cr_assert_leq(out->size, SBX_TRANSCRIPT_YIELD_MAX);
	cr_assert_eq(sbx_buf_append(out, "", 1), 0);
	out->size--;
	return w;
}

static uint64_t random_state = 88172645463325252;

unsigned int random_below(unsigned int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned int)(random_state >> 33) % n;
}

void append_numbered(struct sbx_transcript *t, uint64_t first, uint64_t n)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	for (uint64_t i = first; i < first + n; i++) {
		cr_assert_eq(sbx_buf_printf(&text, "%lu\r\n", i), 0);
		if (text.size > 1 << 20 || i + 1 == first + n) {
			append(t, text.data, text.size);
			text.size = 0;
		}
	}
}

void row_text(struct sbx_transcript *t, uint64_t row, struct sbx_buf *out)
{
	struct sbx_transcript_window w = window(t, row, 1, 0, out);

	cr_assert_eq(w.end, row + 1);
	if (out->size && out->data[out->size - 1] == '\n')
		out->data[--out->size] = '\0';
}

struct tally tally_numbered(struct sbx_transcript *t, uint64_t n)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct tally tally = {0};
	uint64_t row = 0;

	while (row < n) {
		struct sbx_transcript_window w = window(t, row, 1000, 0, &out);
		char *p = out.data;

		cr_assert_gt(w.end, row);
		cr_assert_geq(w.n_rows, n);
		for (; row < SBX_MIN(w.end, n); row++) {
			char *end = strchr(p, '\n');
			char want[32];

			cr_assert_not_null(end);
			*end = '\0';
			snprintf(want, sizeof(want), "%lu", row);
			if (!strcmp(p, SBX_TRANSCRIPT_ROW_DROPPED) ||
				!strcmp(p, SBX_TRANSCRIPT_ROW_LOST))
				tally.dropped++;
			else if (strstr(p, "[row cut: its "))
				tally.cut++;
			else
				cr_assert_str_eq(p, want);
			if (*p != '[' && !strchr(p, '['))
				++*(tally.dropped + tally.cut ? &tally.kept_last
							      : &tally.kept_first);
			p = end + 1;
		}
	}
	return tally;
}
