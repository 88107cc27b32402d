/* SPDX-License-Identifier: MIT */
#include "sbx/transcript.h"

#include <fcntl.h>

#include "transcript_internal.h"

#define MODE 0600

/* The least that is dropped at a time, so that punching costs little per byte. */
static uint64_t drop_step(const struct sbx_transcript *t)
{
	return SBX_MAX(t->cap / 16 / TRANSCRIPT_BLOCK, UINT64_C(1)) * TRANSCRIPT_BLOCK;
}

static int open_file(int dir_fd, const char *name, enum sbx_transcript_open_flags flags,
	int *ret_fd, struct sbx_err *err)
{
	int access = flags & SBX_TRANSCRIPT_WRITE ? O_RDWR | O_CREAT : O_RDONLY;
	int fd = openat(dir_fd, name, access | O_CLOEXEC | O_NOFOLLOW, MODE);

	if (fd < 0)
		return sbx_err_kind(err, errno == ENOENT ? SBX_KIND_NOT_FOUND : SBX_KIND_FAILED,
			errno, "open %s: %m", name);
	*ret_fd = fd;
	return 0;
}

static struct sbx_transcript *transcript_new(enum sbx_transcript_open_flags flags, uint64_t cap)
{
	struct sbx_transcript *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fd = t->index_fd = -EBADF;
	t->is_writer = flags & SBX_TRANSCRIPT_WRITE;
	t->cap = SBX_MAX(cap ? cap : SBX_TRANSCRIPT_CAP_DEFAULT, SBX_TRANSCRIPT_CAP_MIN);
	t->buffer = malloc(TRANSCRIPT_BUFFER);
	t->scratch = malloc(SBX_RENDER_WINDOW);
	if (!t->buffer || !t->scratch) {
		sbx_transcript_close(t);
		return NULL;
	}
	return t;
}

static int punch(int fd, uint64_t start, uint64_t end)
{
	if (start >= end)
		return 0;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
		    (off_t)(end - start)) < 0)
		return -errno;
	return 0;
}

/* Brings the files into the state that the writer goes on from, whatever the last one left. */
static int prepare_writing(struct sbx_transcript *t, struct sbx_err *err)
{
	int r;

	r = transcript_store_header(t, err);
	if (r < 0)
		return r;
	/* cuts off a torn mark; marks that were missing are there again since loading */
	if (ftruncate(t->index_fd, (off_t)transcript_mark_offset(t->n_marks + 1)) < 0)
		return sbx_err_set(err, errno, "truncate " TRANSCRIPT_INDEX ": %m");
	/* It was possible before, or there would be no hole; at worst it stays unpunched. */
	(void)punch(t->fd, t->header.hole_start, t->header.hole_end);
	return 0;
}

int sbx_transcript_open(int dir_fd, enum sbx_transcript_open_flags flags, uint64_t cap,
	struct sbx_transcript **ret, struct sbx_err *err)
{
	SBX_TRANSCRIPT struct sbx_transcript *t = transcript_new(flags, cap);
	int r;

	if (!t)
		return sbx_err_set(err, ENOMEM, "open " TRANSCRIPT_NAME ": %m");
	/* in this order: where there is a transcript there is an index */
	r = open_file(dir_fd, TRANSCRIPT_INDEX, flags, &t->index_fd, err);
	if (r >= 0)
		r = open_file(dir_fd, TRANSCRIPT_NAME, flags, &t->fd, err);
	if (r >= 0)
		r = transcript_load(t, err);
	if (r >= 0 && t->is_writer)
		r = prepare_writing(t, err);
	if (r < 0)
		return r;
	*ret = sbx_take(&t);
	return 0;
}

void sbx_transcript_close(struct sbx_transcript *t)
{
	int saved = errno;

	if (!t)
		return;
	sbx_fd_close(&t->fd);
	sbx_fd_close(&t->index_fd);
	sbx_render_done(&t->render);
	free(t->buffer);
	free(t->scratch);
	free(t);
	errno = saved;
}

/* Counts bytes that cannot be stored. From the first such on, none are stored any more. */
static int lose(struct sbx_transcript *t, const char *data, size_t size, struct sbx_err *err)
{
	if (size == 0)
		return 0;
	t->header.lost_bytes += size;
	t->header.lost_rows += transcript_count_newlines(data, size);
	t->header.lost_open = data[size - 1] != '\n';
	return transcript_store_header(t, err);
}

/*
 * Makes the hole larger so that at most cap bytes are held. The header comes first: whoever reads
 * it takes nothing from the hole, whether or not it is punched already. Marks inside of the hole
 * are not needed any more either.
 */
static int drop_middle(struct sbx_transcript *t, struct sbx_err *err)
{
	struct transcript_header before = t->header;
	uint64_t held = t->size - (before.hole_end - before.hole_start);
	uint64_t end, newest = t->size / TRANSCRIPT_BLOCK * TRANSCRIPT_BLOCK;
	char last;
	int r;

	if (held <= t->cap)
		return 0;
	if (t->header.hole_end == 0)
		t->header.hole_start = t->header.hole_end =
			t->cap / 2 / TRANSCRIPT_BLOCK * TRANSCRIPT_BLOCK;
	end = t->header.hole_end + held - t->cap + drop_step(t);
	end = SBX_MIN(end / TRANSCRIPT_BLOCK * TRANSCRIPT_BLOCK, newest);
	r = transcript_pread(t->fd, &last, 1, end - 1, TRANSCRIPT_NAME, err);
	if (r < 0)
		return r;
	t->header.hole_end = end;
	t->header.hole_ends_row = last == '\n';
	r = transcript_store_header(t, err);
	if (r < 0)
		return r;
	if (punch(t->fd, SBX_MAX(before.hole_end, t->header.hole_start), end) < 0) {
		t->header = before;
		t->is_full = true;
		return transcript_store_header(t, err);
	}
	(void)punch(t->index_fd,
		transcript_mark_offset(t->header.hole_start / TRANSCRIPT_BLOCK + 1),
		transcript_mark_offset(end / TRANSCRIPT_BLOCK)); /* small in any case */
	return transcript_update_hole(t, err);
}

int sbx_transcript_append(
	struct sbx_transcript *t, const void *data, size_t size, struct sbx_err *err)
{
	size_t stored = 0;
	int r;

	if (t->header.lost_bytes == 0 && !t->is_full) {
		/* A failure to store is no failure of the call: the rest is counted as lost. */
		(void)transcript_pwrite(t->fd, data, size, t->size, &stored);
		t->buffer_n = 0;
	}
	transcript_count(t, data, stored);
	r = lose(t, (const char *)data + stored, size - stored, err);
	if (r >= 0 && stored > 0 && !t->is_full)
		r = drop_middle(t, err);
	return r;
}

int sbx_transcript_stat(
	struct sbx_transcript *t, struct sbx_transcript_stat *ret, struct sbx_err *err)
{
	int r;

	if (!t->is_writer) {
		r = transcript_load(t, err);
		if (r < 0)
			return r;
	}
	*ret = (struct sbx_transcript_stat){
		.n_rows = transcript_n_rows(t),
		.n_bytes = t->size + t->header.lost_bytes,
		.n_dropped = t->header.hole_end - t->header.hole_start,
		.n_lost = t->header.lost_bytes,
		.partial = t->header.lost_bytes ? t->header.lost_open : !t->ends_row,
	};
	return 0;
}
