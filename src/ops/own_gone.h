/* SPDX-License-Identifier: MIT */
/*
 * Deleted files that are known by their content as a whole, for they are binary or too large to be
 * compared by lines: one that was added with the same content is that file under another name.
 */
#ifndef SBX_OPS_OWN_GONE_H
#define SBX_OPS_OWN_GONE_H

#include "place.h"
#include "sbx/digest.h"

struct sbx_gone;
struct sbx_own_gone {
	struct sbx_gone *files;
	size_t n;
	size_t capacity;
	bool is_sorted;
};
void sbx_own_gone_done(struct sbx_own_gone *gone);

/* Reads the file's content. Not after the first sbx_own_gone_take(). */
int sbx_own_gone_add(struct sbx_own_gone *gone, const struct sbx_place *place, const char *path);
/*
 * The path of a file with that content, each of them once, the first by path at first; or NULL.
 * Borrowed. An empty content is nobody's.
 */
const char *sbx_own_gone_take(
	struct sbx_own_gone *gone, const struct sbx_digest *digest, uint64_t size);

#endif
