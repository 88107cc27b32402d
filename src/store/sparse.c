/* SPDX-License-Identifier: MIT */
#include "sparse.h"

int sparse_next(int fd, off_t *at, off_t end, off_t *ret_end)
{
	off_t start = lseek(fd, *at, SEEK_DATA);

	if (start < 0 && errno == ENXIO)
		return 0;
	if (start < 0 && errno == EINVAL) { /* the file system cannot tell: all is data */
		*ret_end = end;
		return 1;
	}
	if (start < 0)
		return -errno;
	if (start >= end)
		return 0;
	*at = start;
	start = lseek(fd, start, SEEK_HOLE);
	if (start < 0)
		return errno == ENXIO ? 0 : -errno;
	*ret_end = SBX_MIN(start, end);
	return 1;
}

static int add_extent(struct sparse_map *map, off_t at, off_t end)
{
	struct sparse_extent *extents;

	extents = reallocarray(map->extents, map->n + 1, sizeof(*extents));
	if (!extents)
		return -ENOMEM;
	map->extents = extents;
	extents[map->n++] = (struct sparse_extent){(uint64_t)at, (uint64_t)(end - at)};
	return 0;
}

void sparse_map_done(struct sparse_map *map)
{
	sbx_free_pointer(&map->extents);
	map->n = 0;
}

/* A compressed or inlined file has few blocks, too, but no hole. */
static bool has_hole(const struct sparse_map *map, off_t size)
{
	return map->n != 1 || map->extents[0].offset || map->extents[0].size < (uint64_t)size;
}

int sparse_map_read(struct sparse_map *map, int fd, const struct stat *st)
{
	off_t at = 0, end = 0;
	int r = 0;

	if (!sparse_is_likely(st))
		return 0;
	while (at < st->st_size && (r = sparse_next(fd, &at, st->st_size, &end)) > 0) {
		if (map->n + 1 >= SPARSE_EXTENTS_MAX) {
			sparse_map_done(map);
			return 0;
		}
		r = add_extent(map, at, end);
		if (r < 0)
			return r;
		at = end;
	}
	if (r < 0)
		return r;
	if (!has_hole(map, st->st_size))
		sparse_map_done(map);
	else if (end < st->st_size)
		return add_extent(map, st->st_size, st->st_size);
	return 0;
}
