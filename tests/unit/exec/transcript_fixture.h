/* SPDX-License-Identifier: MIT */
/* What tests of transcripts share. Each checks by itself that it worked. */
#ifndef TRANSCRIPT_FIXTURE_H
#define TRANSCRIPT_FIXTURE_H

#include "sbx/transcript.h"

/* A string literal and its length, so that it may hold NULs. */
#define S(s) s, sizeof(s) - 1

/* A directory for one test, removed at its end. */
struct scratch {
	char path[64];
	int fd;
};

void scratch_init(struct scratch *scratch);
void scratch_done(struct scratch *scratch);
#define SCRATCH SBX_CLEANUP(scratch_done)

/* The same numbers in each run. */
unsigned int random_below(unsigned int n);

struct sbx_transcript *open_transcript(
	const struct scratch *scratch, enum sbx_transcript_open_flags flags, uint64_t cap);
void append(struct sbx_transcript *t, const char *data, size_t size);
/* Rows that have their number as text, ended like a terminal does. */
void append_numbered(struct sbx_transcript *t, uint64_t first, uint64_t n);

/* These replace out by the window's text, NUL-terminated. */
struct sbx_transcript_window window(struct sbx_transcript *t, uint64_t start, uint64_t max_rows,
	enum sbx_transcript_window_flags flags, struct sbx_buf *out);
struct sbx_transcript_window yield(struct sbx_transcript *t, uint64_t start,
	enum sbx_transcript_window_flags flags, struct sbx_buf *out);
/* The text of one row, without its newline. */
void row_text(struct sbx_transcript *t, uint64_t row, struct sbx_buf *out);

struct tally {
	uint64_t kept_first; /* rows before the first that is not whole */
	uint64_t kept_last;  /* rows behind the last that is not whole */
	uint64_t dropped;
	uint64_t cut;
};

/*
 * Reads rows 0 to n (exclusive) of a transcript of numbered rows: each has its number as text, or
 * says why not.
 */
struct tally tally_numbered(struct sbx_transcript *t, uint64_t n);

#endif
