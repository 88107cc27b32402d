/* SPDX-License-Identifier: MIT */
/* Where the data of a file with holes lies. */
#ifndef SBX_STORE_SPARSE_H
#define SBX_STORE_SPARSE_H

#include <sys/stat.h>

#include "sbx/util.h"

#define SPARSE_EXTENTS_MAX 65536u /* a file in more pieces counts as one without holes */

struct sparse_map {
	struct sparse_extent {
		uint64_t offset, size; /* bytes */
	} * extents;
	size_t n; /* 0: no holes */
};

/* Moves to the first data at or after *at and below end: 1 with where it ends, 0: none; -errno. */
int sparse_next(int fd, off_t *at, off_t end, off_t *ret_end);
/* Fills map; the last extent ends at the file's end, with size 0 when that is a hole. */
int sparse_map_read(struct sparse_map *map, int fd, const struct stat *st);
void sparse_map_done(struct sparse_map *map);

static inline bool sparse_is_likely(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
}

#endif
