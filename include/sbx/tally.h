/* SPDX-License-Identifier: MIT */
/*
 * The digest of a layer's tree, entry by entry (docs/store-format.md), for who walks the tree
 * anyway and knows its contents: sbx_layer_digest() walks and reads it itself.
 */
#ifndef SBX_TALLY_H
#define SBX_TALLY_H

#include <sys/stat.h>

#include "sbx/digest.h"

struct sbx_tally;
int sbx_tally_new(struct sbx_tally **ret);
void sbx_tally_free(struct sbx_tally *tally);
static inline void sbx_tally_freep(struct sbx_tally **tally)
{
	sbx_tally_free(*tally);
}
#define SBX_TALLY SBX_CLEANUP(sbx_tally_freep)

struct sbx_tally_item {
	const char *path; /* from the root, "" for it */
	int dir_fd;       /* holds the entry; of a directory: is it */
	const char *name;
	struct stat st;
	/* of a regular file, what is known about it */
	int fd;                           /* open, or -EBADF */
	const struct sbx_digest *content; /* NULL: to be read */
	bool has_no_xattrs;               /* that count; false: to be asked for */
};
/*
 * Every entry of the tree, siblings in byte order of their names, a directory after all that is in
 * it, the root last.
 */
int sbx_tally_add(struct sbx_tally *tally, const struct sbx_tally_item *item);

struct sbx_tally_result {
	char hex[SBX_DIGEST_HEX_SIZE];
	uint64_t n_entries; /* without the root */
	uint64_t n_bytes;
};
void sbx_tally_end(struct sbx_tally *tally, struct sbx_tally_result *ret);

#endif
