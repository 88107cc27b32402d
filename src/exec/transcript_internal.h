/* SPDX-License-Identifier: MIT */
/* What the parts of a transcript share: the writer, the index, the rows, the windows. */
#ifndef SBX_EXEC_TRANSCRIPT_INTERNAL_H
#define SBX_EXEC_TRANSCRIPT_INTERNAL_H

#include "sbx/render.h"
#include "sbx/transcript.h"

#define TRANSCRIPT_BLOCK  (UINT64_C(64) << 10)     /* raw bytes from mark to mark */
#define TRANSCRIPT_BUFFER (2 * SBX_RENDER_RAW_MAX) /* what a reader looks at in one piece */
#define TRANSCRIPT_TRIES  16 /* of a reader to find the files at rest while they are written */
#define TRANSCRIPT_NAME   "transcript"
#define TRANSCRIPT_INDEX  "transcript.index"

/* The state that the index file starts with, in the order of the file. */
struct transcript_header {
	char magic[8];
	uint32_t block;         /* TRANSCRIPT_BLOCK */
	uint32_t hole_ends_row; /* the byte before hole_end was a newline */
	uint64_t hole_start;    /* what was dropped from the middle; both are multiples of block */
	uint64_t hole_end;
	uint64_t lost_bytes; /* that came after the file could not grow any more */
	uint64_t lost_rows;  /* newlines among them */
	uint64_t lost_open;  /* the last of them is no newline */
	uint64_t check;      /* of all before it */
};

/*
 * What the hole does to rows: row a is the one that it cuts at its start, row b at its end, those
 * between are gone as a whole. a and b may be the same row.
 *
 *     ... row a-1 \n row a ...|       hole       |... row b \n row b+1 ...
 */
struct transcript_hole {
	bool is_there;
	uint64_t a;
	uint64_t b;
};

struct sbx_transcript {
	int fd;
	int index_fd;
	bool is_writer;
	bool is_full; /* nothing more can be stored: the index or the hole cannot grow */
	uint64_t cap;
	struct transcript_header header;
	struct transcript_hole hole; /* follows from the header */
	uint64_t size;               /* bytes of the file, the hole included */
	uint64_t n_newlines;         /* in these */
	uint64_t n_marks;            /* marks 1 to n_marks stand in the index */
	bool ends_row;               /* the last byte is a newline, or there is none */
	/* for reading; nothing of it outlives a call but its memory */
	struct sbx_render render;
	char *buffer; /* bytes [buffer_at, buffer_at + buffer_n) of the file */
	uint64_t buffer_at;
	size_t buffer_n;
	char *scratch; /* SBX_RENDER_WINDOW bytes: the end of a long row, or a search */
};

/* transcript_index.c */

/* Makes the state that of the files: reads the header, finds the last good mark, counts the rest.
 */
int transcript_load(struct sbx_transcript *t, struct sbx_err *err);
int transcript_load_header(struct sbx_transcript *t, struct sbx_err *err);
/* To be called when header has another hole: makes hole what it says. */
int transcript_update_hole(struct sbx_transcript *t, struct sbx_err *err);
int transcript_store_header(struct sbx_transcript *t, struct sbx_err *err);
/* Newlines before raw offset k * TRANSCRIPT_BLOCK; not for marks inside of the hole. */
int transcript_mark(struct sbx_transcript *t, uint64_t k, uint64_t *ret, struct sbx_err *err);
/*
 * Takes note of bytes that the file now has behind size. A writer marks the blocks that end; if
 * that fails the transcript is_full, and stays readable with fewer marks.
 */
void transcript_count(struct sbx_transcript *t, const char *data, size_t size);
size_t transcript_count_newlines(const char *data, size_t size);
/* Where in the index mark k stands; k is 1 or more. */
uint64_t transcript_mark_offset(uint64_t k);
/* pread(2) until all is there; -EBADMSG when the file ends earlier. */
int transcript_pread(
	int fd, void *data, size_t size, uint64_t offset, const char *name, struct sbx_err *err);
int transcript_pwrite(int fd, const void *data, size_t size, uint64_t offset, size_t *ret_written);

/* transcript_rows.c */

/* A row as it lies in the file. */
struct transcript_row {
	struct sbx_render_row raw; /* its bytes; borrowed until the next call */
	const char *text;          /* instead of bytes, for a row that is not there; else NULL */
	bool complete;             /* a newline follows */
};

/* Steps through rows; start it with row set and the rest zero. */
struct transcript_cursor {
	uint64_t row;
	uint64_t at; /* raw offset of its start, when is_located */
	bool is_located;
};

/* Whether all of the row's bytes are in the hole. */
bool transcript_is_dropped(const struct sbx_transcript *t, uint64_t row);
uint64_t transcript_n_rows(const struct sbx_transcript *t);
/* The cursor's row; moves the cursor to the next one. cursor->row is below transcript_n_rows(). */
int transcript_next(struct sbx_transcript *t, struct transcript_cursor *cursor,
	struct transcript_row *ret, struct sbx_err *err);
/* Where row starts; for one that is not there, where the hole or the file ends. */
int transcript_row_offset(
	struct sbx_transcript *t, uint64_t row, uint64_t *ret, struct sbx_err *err);
/* The first row that starts at raw offset at or behind it, of those that are there. */
int transcript_row_at(
	struct sbx_transcript *t, uint64_t at, uint64_t *ret_row, struct sbx_err *err);

#endif
