/* SPDX-License-Identifier: MIT */
/*
 * Where the first name of a file with several went, so that the others become hard links to it. An
 * entry goes once all names of its file were met; the map holds as many as the tree has open ends.
 */
#ifndef SBX_STORE_LINK_MAP_H
#define SBX_STORE_LINK_MAP_H

#include <sys/stat.h>

#include "sbx/util.h"

struct link_map;
int link_map_new(struct link_map **ret);
void link_map_free(struct link_map *map);

/* The path given for this file, or NULL. Valid until the next call. */
const char *link_map_find(const struct link_map *map, const struct stat *st);
/* Notes the first name of a file. */
int link_map_add(struct link_map *map, const struct stat *st, const char *path);
/* Counts one more name of a file that was found; forgets it when that was the last. */
void link_map_seen(struct link_map *map, const struct stat *st);

#endif
