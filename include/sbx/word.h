/* SPDX-License-Identifier: MIT */
/* How far apart two words are: for "did you mean". */
#ifndef SBX_WORD_H
#define SBX_WORD_H

#include <string.h>

#include "sbx/util.h"

#define SBX_WORD_MAX 40 /* bytes; no name that we suggest is longer */

/*
 * Bytes to insert, delete, replace or swap with their neighbour to make b from a, not counting a
 * change between upper and lower case of ASCII. SIZE_MAX when one of them is over SBX_WORD_MAX.
 */
size_t sbx_word_distance(const char *a, const char *b);

/* The largest distance at which word may still be a mistyped other one. */
static inline size_t sbx_word_distance_max(const char *word)
{
	return SBX_MAX(strlen(word) / 3, (size_t)1);
}

#endif
