/* SPDX-License-Identifier: MIT */
/* Finding the ends of characters and of terminal control sequences in a row's bytes. */
#ifndef SBX_EXEC_ESCAPE_H
#define SBX_EXEC_ESCAPE_H

#include "sbx/util.h"

#define REPLACEMENT_CHARACTER 0xfffd

struct character {
	uint32_t code; /* REPLACEMENT_CHARACTER when the bytes are not UTF-8 */
	size_t size;   /* bytes; of what is not UTF-8, a maximal part of a sequence */
	bool invalid;
	bool incomplete; /* invalid only because the bytes end here */
};

/* The character at p; p < end. */
struct character character_at(const unsigned char *p, const unsigned char *end);

struct escape {
	const unsigned char *end; /* the first byte after it */
	bool complete;            /* it did not run into the end of the bytes or something else */
	char action; /* the final byte of a plain CSI with at most one number, else 0 */
	bool has_number;
	unsigned int number; /* at most 99999 */
};

/* The sequence at p, where an ESC stands. */
struct escape escape_at(const unsigned char *p, const unsigned char *end);

/*
 * The same where an 8-bit control stands (0x80 to 0x9f). hopeless[2], zeroed at the start of a row,
 * remembers how far a search for a terminator was in vain, so that a row full of introducers
 * takes linear time.
 */
struct escape escape_at_8bit(
	const unsigned char *p, const unsigned char *end, const unsigned char *hopeless[2]);

#endif
