/* SPDX-License-Identifier: MIT */
/*
 * Shell patterns as git's wildmatch reads them with its path rule on ('*' and '?' stop at '/', a
 * whole component "**" does not), compiled once and matched without backtracking.
 */
#ifndef SBX_TEXT_GLOB_H
#define SBX_TEXT_GLOB_H

#include "sbx/util.h"

#define GLOB_CODE_MAX 4096 /* bytes of a pattern, and so instructions of its program */

struct glob_set {
	uint64_t bits[4]; /* a bit per byte value */
};

struct glob {
	uint16_t *code; /* enum glob_op, a literal byte, or GLOB_SET + index */
	size_t n_code;
	struct glob_set *sets;
	size_t n_sets;
	bool is_suffix; /* '*' and then nothing but literal bytes: what most patterns are */
};

/*
 * Compiles pattern. 0; -EINVAL for one that can match nothing (open bracket, unknown class, lone
 * backslash at the end); -E2BIG above GLOB_CODE_MAX; -ENOMEM.
 */
int glob_compile(const char *pattern, size_t size, struct glob *ret);
void glob_done(struct glob *glob);

bool glob_match(const struct glob *glob, const char *text, size_t size);

#endif
