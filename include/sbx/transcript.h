/* SPDX-License-Identifier: MIT */
/*
 * A command's output on disk: what it printed, byte for byte, in the file "transcript" of the
 * command's directory, and in "transcript.index" what is needed to find any row of it at once.
 * The formats are described in src/exec/transcript_index.c.
 *
 * Rows are what newlines separate, numbered from 0. Bytes after the last newline are a partial row,
 * which counts. A row that is finished never changes its number nor, but for the limit below, its
 * text. Memory is the same for any length: about 200 KiB, and the row at work (see render.h).
 *
 * Limit. When the file holds more than cap bytes, what stands in its middle is given back to the
 * file system (fallocate(2), punched out): the first cap/2 bytes and the newest ones stay. Rows
 * that were there keep their numbers; in place of their text stands SBX_TRANSCRIPT_ROW_DROPPED, and
 * the two rows at the edges say which end was not kept. On a file system that cannot punch holes,
 * and likewise when the disk is full, what comes later is counted and not stored: its rows have
 * numbers and show SBX_TRANSCRIPT_ROW_LOST.
 *
 * One process writes, any number read, also while it writes and after it was killed at any point:
 * what write(2) has taken is there. Nothing is synced; after a power cut the newest bytes may be
 * missing.
 */
#ifndef SBX_TRANSCRIPT_H
#define SBX_TRANSCRIPT_H

#include "sbx/buf.h"
#include "sbx/err.h"

#define SBX_TRANSCRIPT_CAP_DEFAULT (UINT64_C(2) << 30)
#define SBX_TRANSCRIPT_CAP_MIN     (UINT64_C(1) << 20) /* smaller ones act as this */
#define SBX_TRANSCRIPT_YIELD_MAX   (64 << 10)          /* bytes of a yield's output */
#define SBX_TRANSCRIPT_READ_MAX    (256 << 10)         /* bytes of a read_command_lines output */
#define SBX_TRANSCRIPT_ROWS_MAX    1000                /* rows of one */
/* Raw bytes that one window looks at; one that meets more ends earlier than asked, never empty. */
#define SBX_TRANSCRIPT_SCAN_MAX (4 << 20)
/* Raw bytes of omitted rows up to which their rendered size is computed rather than estimated. */
#define SBX_TRANSCRIPT_COUNT_MAX (1 << 20)

#define SBX_TRANSCRIPT_ROW_DROPPED "[row not kept: the transcript is over its limit]"
#define SBX_TRANSCRIPT_ROW_LOST    "[row not kept: the transcript could not grow]"

struct sbx_transcript;

enum sbx_transcript_open_flags {
	/* for appending: makes the files if they are missing, else goes on after their last byte.
	 * Without it they are only read. */
	SBX_TRANSCRIPT_WRITE = 1 << 0,
};

/*
 * Opens the transcript in dir_fd (borrowed, only for the call). cap counts for writers; 0 is the
 * default. -ENOENT when there is none to read; -EBADMSG for an index that is damaged other than by
 * a torn end.
 */
int sbx_transcript_open(int dir_fd, enum sbx_transcript_open_flags flags, uint64_t cap,
	struct sbx_transcript **ret, struct sbx_err *err);
void sbx_transcript_close(struct sbx_transcript *transcript);
#define SBX_TRANSCRIPT SBX_CLEANUP(sbx_transcript_closep)
static inline void sbx_transcript_closep(struct sbx_transcript **transcript)
{
	sbx_transcript_close(*transcript);
}

/*
 * Appends bytes, in portions of any size. A full disk is not an error (see above); an index that
 * can no longer be written is, and then the bytes are not in the transcript.
 */
int sbx_transcript_append(
	struct sbx_transcript *transcript, const void *data, size_t size, struct sbx_err *err);

struct sbx_transcript_stat {
	uint64_t n_rows;    /* a partial last one included */
	uint64_t n_bytes;   /* that were appended, kept or not */
	uint64_t n_dropped; /* of these, dropped from the middle */
	uint64_t n_lost;    /* of these, not stored at the end */
	bool partial;       /* the last row has no newline yet */
};

/* For a reader: as of now. */
int sbx_transcript_stat(
	struct sbx_transcript *transcript, struct sbx_transcript_stat *ret, struct sbx_err *err);

struct sbx_transcript_window {
	uint64_t start;   /* first row of the output */
	uint64_t end;     /* the row after its last */
	uint64_t n_rows;  /* of the transcript */
	uint64_t n_bytes; /* of rows [start, end) rendered, newlines included, nothing cut or
			   * omitted; raw bytes count for rows that are not rendered as a whole */
	bool partial;     /* the output's last row is the partial one: it may still grow */
};

/* original_token_count of a window. */
static inline uint64_t sbx_transcript_tokens(const struct sbx_transcript_window *window)
{
	return (window->n_bytes + 3) / 4;
}

enum sbx_transcript_window_flags {
	/* No more bytes will come. Without it, an incomplete character at the end is withheld. */
	SBX_TRANSCRIPT_CLOSED = 1 << 0,
};

/*
 * Appends to out the rendered rows from start on: at most max_rows of them (1 to
 * SBX_TRANSCRIPT_ROWS_MAX; others act as the nearest) and max_bytes bytes, but one row at least.
 * Each finished row ends in a newline. Past the end: nothing, and start and end are what was asked.
 */
int sbx_transcript_window(struct sbx_transcript *transcript, uint64_t start, uint64_t max_rows,
	size_t max_bytes, enum sbx_transcript_window_flags flags, struct sbx_buf *out,
	struct sbx_transcript_window *ret, struct sbx_err *err);

/*
 * Appends to out all rows from start to the end, in at most SBX_TRANSCRIPT_YIELD_MAX bytes: when
 * they are more, the first and the last ones, about half of the room each, and between them a row
 * "[rows A..B omitted; read_command_lines start_offset=A]", A and B being the first and the last
 * that is left out. For omitted rows of more than SBX_TRANSCRIPT_COUNT_MAX raw bytes, ret's n_bytes
 * takes the raw bytes for the rendered ones.
 */
int sbx_transcript_yield(struct sbx_transcript *transcript, uint64_t start,
	enum sbx_transcript_window_flags flags, struct sbx_buf *out,
	struct sbx_transcript_window *ret, struct sbx_err *err);

#endif
