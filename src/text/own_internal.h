/* SPDX-License-Identifier: MIT */
/* The parts of computing owners. Files are in the order of their paths here. */
#ifndef SBX_TEXT_OWN_INTERNAL_H
#define SBX_TEXT_OWN_INTERNAL_H

#include "sbx/diff.h"
#include "sbx/own.h"

#define OWN_OPEN UINT32_MAX /* of an added line: no owner yet; of a removed one: given out */

/* A file on its way through the computation. */
struct own_file {
	struct sbx_own_file *file;
	const struct sbx_own_file *source; /* whose old content it is compared with, or NULL */
	bool is_source;                    /* its old content went to another path */
	struct sbx_lines old_lines;        /* of source */
	struct sbx_lines new_lines;
	uint32_t *owners; /* of the new lines; OWN_OPEN: not known yet */
};

void own_file_done(struct own_file *own);

/* Letters, digits and bytes beyond ASCII say more about a text than blanks and braces. */
static inline bool own_has_weight(unsigned char c)
{
	unsigned char lower = c | 0x20;

	return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c >= 0x80;
}

/* A line that was removed or added. */
struct own_line {
	uint32_t file; /* index */
	uint32_t line;
	uint32_t owner;
	uint32_t class; /* lines of one class are equal; private to the matching */
};

struct own_line_list {
	struct own_line *items;
	uint32_t n;
	uint32_t capacity;
};

/* The removed and the added lines among which moves are looked for, in the order of files. */
struct own_pool {
	struct own_line_list removed;
	struct own_line_list added;
};

int own_line_list_add(struct own_line_list *list, const struct own_line *line);
void own_pool_done(struct own_pool *pool);

/*
 * Splits one file, compares it with its source, gives its new lines the owners of unchanged ones
 * and finds moves within it. Appends what is left, removed or added, to far if there is one.
 */
int own_file_compare(
	struct own_file *files, uint32_t index, struct own_pool *far, struct sbx_err *err);
/* Turns owners into the file's runs; open lines are new_owner's. -ENOMEM. */
int own_file_finish(struct own_file *own, uint32_t new_owner);

/* Gives owners of removed lines to added ones that are equal. across: between files. -ENOMEM. */
int own_match(struct own_file *files, struct own_pool *pool, bool across);

/* Sets source of renamed files. */
int own_pair_renames(struct own_file *files, size_t n_files, struct sbx_err *err);

#endif
