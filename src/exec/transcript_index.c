/* SPDX-License-Identifier: MIT */
/*
 * "transcript" holds the raw bytes at the offsets at which they were printed; a hole of the file
 * system may stand in its middle. "transcript.index", in host byte order:
 *
 *   offset  size
 *   0       64    struct transcript_header
 *   64      16    mark 1: the newlines in the first 65,536 bytes, and a check of that and of the 1
 *   80      16    mark 2: the newlines in the first 131,072 bytes, ...
 *
 * Bytes are written before the marks that count them, the header says that a hole is there before
 * it is punched, and a mark never changes. So a writer may be killed at any point: what the marks
 * do not cover is counted again, a torn mark at the end does not pass its check and is not there.
 */
#include <string.h>
#include <sys/stat.h>

#include "transcript_internal.h"

static const char header_magic[8] = "sbxtidx1";

struct mark {
	uint64_t n_newlines;
	uint64_t check;
};

_Static_assert(sizeof(struct transcript_header) == 64, "the header has no padding");
_Static_assert(sizeof(struct mark) == 16, "a mark has no padding");

/* FNV-1a: against torn and misplaced data, not against an enemy. */
static uint64_t check_of(const void *data, size_t size, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ seed;

	for (size_t i = 0; i < size; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

static uint64_t mark_check(const struct mark *mark, uint64_t k)
{
	return check_of(&mark->n_newlines, sizeof(mark->n_newlines), k);
}

uint64_t transcript_mark_offset(uint64_t k)
{
	return sizeof(struct transcript_header) + (k - 1) * sizeof(struct mark);
}

int transcript_pread(
	int fd, void *data, size_t size, uint64_t offset, const char *name, struct sbx_err *err)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sbx_err_set(err, errno, "read %s: %m", name);
		if (n == 0)
			return sbx_err_set(err, EBADMSG, "%s ends at byte %llu, before its index",
				name, (unsigned long long)(offset + done));
		done += (size_t)n;
	}
	return 0;
}

int transcript_pwrite(int fd, const void *data, size_t size, uint64_t offset, size_t *ret_written)
{
	size_t done = 0;
	int r = 0;

	while (done < size) {
		ssize_t n =
			pwrite(fd, (const char *)data + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = -errno;
			break;
		}
		done += (size_t)n;
	}
	*ret_written = done;
	return r;
}

int transcript_store_header(struct sbx_transcript *t, struct sbx_err *err)
{
	size_t written;
	int r;

	t->header.check = check_of(&t->header, offsetof(struct transcript_header, check), 0);
	r = transcript_pwrite(t->index_fd, &t->header, sizeof(t->header), 0, &written);
	if (r < 0)
		return sbx_err_set(err, -r, "write " TRANSCRIPT_INDEX ": %m");
	return 0;
}

static void header_init(struct transcript_header *header)
{
	*header = (struct transcript_header){.block = TRANSCRIPT_BLOCK};
	memcpy(header->magic, header_magic, sizeof(header->magic));
}

static bool header_is_valid(const struct transcript_header *header)
{
	return memcmp(header->magic, header_magic, sizeof(header_magic)) == 0 &&
	       header->block == TRANSCRIPT_BLOCK && header->hole_start <= header->hole_end &&
	       header->hole_start % TRANSCRIPT_BLOCK == 0 &&
	       header->hole_end % TRANSCRIPT_BLOCK == 0 &&
	       header->check == check_of(header, offsetof(struct transcript_header, check), 0);
}

int transcript_load_header(struct sbx_transcript *t, struct sbx_err *err)
{
	struct transcript_header header;
	ssize_t n;

	/* it may be met half written, but not again and again */
	for (int i = 0; i < TRANSCRIPT_TRIES; i++) {
		n = pread(t->index_fd, &header, sizeof(header), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sbx_err_set(err, errno, "read " TRANSCRIPT_INDEX ": %m");
		if ((size_t)n < sizeof(header)) {
			/* the writer was stopped before it wrote any */
			header_init(&t->header);
			return 0;
		}
		if (header_is_valid(&header)) {
			t->header = header;
			return 0;
		}
	}
	return sbx_err_set(
		err, EBADMSG, TRANSCRIPT_INDEX " is damaged: its header does not add up");
}

/* 0, or -EBADMSG without a message when mark k is torn or never was written. */
static int read_mark(struct sbx_transcript *t, uint64_t k, uint64_t *ret, struct sbx_err *err)
{
	struct mark mark;
	int r;

	r = transcript_pread(
		t->index_fd, &mark, sizeof(mark), transcript_mark_offset(k), TRANSCRIPT_INDEX, err);
	if (r < 0)
		return r;
	if (mark.check != mark_check(&mark, k))
		return -EBADMSG;
	*ret = mark.n_newlines;
	return 0;
}

int transcript_mark(struct sbx_transcript *t, uint64_t k, uint64_t *ret, struct sbx_err *err)
{
	int r;

	if (k == 0) {
		*ret = 0;
		return 0;
	}
	r = read_mark(t, k, ret, err);
	if (r == -EBADMSG)
		return sbx_err_set(err, EBADMSG, TRANSCRIPT_INDEX " is damaged at mark %llu",
			(unsigned long long)k);
	return r;
}

static int write_mark(struct sbx_transcript *t)
{
	struct mark mark = {.n_newlines = t->n_newlines};
	uint64_t k = t->size / TRANSCRIPT_BLOCK;
	size_t written;
	int r;

	mark.check = mark_check(&mark, k);
	r = transcript_pwrite(
		t->index_fd, &mark, sizeof(mark), transcript_mark_offset(k), &written);
	if (r < 0)
		return r;
	t->n_marks = k;
	return 0;
}

/*
 * Compares 16 bytes at a time, with vector instructions on every machine that has them. A lane sums
 * at most 127 hits before they are added up.
 */
size_t transcript_count_newlines(const char *data, size_t size)
{
	typedef signed char lanes __attribute__((vector_size(16)));
	size_t n = 0, at = 0;

	while (size - at >= sizeof(lanes)) {
		size_t rounds = SBX_MIN((size - at) / sizeof(lanes), (size_t)127);
		lanes sum = {0};

		for (size_t i = 0; i < rounds; i++, at += sizeof(lanes)) {
			lanes piece;

			memcpy(&piece, data + at, sizeof(piece));
			sum -= piece == '\n'; /* a hit is -1 */
		}
		for (size_t i = 0; i < sizeof(lanes); i++)
			n += (size_t)sum[i];
	}
	for (; at < size; at++)
		n += data[at] == '\n';
	return n;
}

void transcript_count(struct sbx_transcript *t, const char *data, size_t size)
{
	while (size > 0) {
		uint64_t left = TRANSCRIPT_BLOCK - t->size % TRANSCRIPT_BLOCK;
		size_t n = SBX_MIN(size, (size_t)left);

		t->n_newlines += transcript_count_newlines(data, n);
		t->size += n;
		t->ends_row = data[n - 1] == '\n';
		data += n;
		size -= n;
		if (t->is_writer && !t->is_full && n == left && write_mark(t) < 0)
			t->is_full = true; /* without this mark there can be no next one */
	}
}

int transcript_update_hole(struct sbx_transcript *t, struct sbx_err *err)
{
	struct transcript_hole hole = {.is_there = t->header.hole_end > t->header.hole_start};
	int r = 0;

	if (hole.is_there)
		r = transcript_mark(t, t->header.hole_start / TRANSCRIPT_BLOCK, &hole.a, err);
	if (r >= 0 && hole.is_there)
		r = transcript_mark(t, t->header.hole_end / TRANSCRIPT_BLOCK, &hole.b, err);
	if (r >= 0)
		t->hole = hole;
	return r;
}

/* The last good mark: n_marks, size and n_newlines become what it says. */
static int load_last_mark(struct sbx_transcript *t, uint64_t file_size, struct sbx_err *err)
{
	struct stat st;
	uint64_t n_bytes, k;
	int r;

	if (fstat(t->index_fd, &st) < 0)
		return sbx_err_set(err, errno, "stat " TRANSCRIPT_INDEX ": %m");
	n_bytes = (uint64_t)st.st_size - SBX_MIN((uint64_t)st.st_size, sizeof(t->header));
	k = SBX_MIN(n_bytes / sizeof(struct mark), file_size / TRANSCRIPT_BLOCK);
	t->n_newlines = 0;
	for (; k * TRANSCRIPT_BLOCK > t->header.hole_end; k--) {
		r = read_mark(t, k, &t->n_newlines, err);
		if (r >= 0)
			break;
		if (r != -EBADMSG)
			return r;
	}
	if (k * TRANSCRIPT_BLOCK < t->header.hole_end)
		return sbx_err_set(
			err, EBADMSG, TRANSCRIPT_INDEX " is damaged: it ends in the hole");
	if (k * TRANSCRIPT_BLOCK == t->header.hole_end) {
		r = transcript_mark(t, k, &t->n_newlines, err);
		if (r < 0)
			return r;
	}
	t->n_marks = k;
	t->size = k * TRANSCRIPT_BLOCK;
	return 0;
}

/* Counts what the file has behind size, up to file_size. */
static int count_rest(struct sbx_transcript *t, uint64_t file_size, struct sbx_err *err)
{
	while (t->size < file_size) {
		size_t n = (size_t)SBX_MIN(file_size - t->size, (uint64_t)SBX_RENDER_WINDOW);
		int r;

		r = transcript_pread(t->fd, t->scratch, n, t->size, TRANSCRIPT_NAME, err);
		if (r < 0)
			return r;
		transcript_count(t, t->scratch, n);
	}
	return 0;
}

static int load_last_byte(struct sbx_transcript *t, struct sbx_err *err)
{
	char last = '\n';
	int r;

	if (t->size > 0) {
		r = transcript_pread(t->fd, &last, 1, t->size - 1, TRANSCRIPT_NAME, err);
		if (r < 0)
			return r;
	}
	t->ends_row = last == '\n';
	return 0;
}

static int load_once(struct sbx_transcript *t, struct sbx_err *err)
{
	uint64_t known_size = t->size, known_newlines = t->n_newlines;
	struct stat st;
	int r;

	if (fstat(t->fd, &st) < 0)
		return sbx_err_set(err, errno, "stat " TRANSCRIPT_NAME ": %m");
	r = load_last_mark(t, (uint64_t)st.st_size, err);
	if (r >= 0)
		r = transcript_update_hole(t, err);
	if (r < 0)
		return r;
	if (known_size > t->size && known_size <= (uint64_t)st.st_size) {
		/* counted by an earlier load, and bytes do not change */
		t->size = known_size;
		t->n_newlines = known_newlines;
	}
	r = load_last_byte(t, err);
	return r < 0 ? r : count_rest(t, (uint64_t)st.st_size, err);
}

int transcript_load(struct sbx_transcript *t, struct sbx_err *err)
{
	int r;

	r = transcript_load_header(t, err);
	for (int i = 0; r >= 0 && i < TRANSCRIPT_TRIES; i++) {
		uint64_t hole_end = t->header.hole_end;
		int loaded = load_once(t, err);

		if (loaded >= 0)
			return 0;
		r = transcript_load_header(t, err);
		if (r >= 0 && t->header.hole_end == hole_end)
			return loaded;
	}
	return r < 0 ? r : sbx_err_set(err, EBUSY, TRANSCRIPT_INDEX " changes too fast to be read");
}
