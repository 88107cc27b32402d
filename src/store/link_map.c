/* SPDX-License-Identifier: MIT */
#include "link_map.h"

#include <string.h>

struct link {
	struct link *next;
	dev_t dev;
	ino_t ino;
	uint64_t n_left; /* names not met yet */
	char path[];
};

struct link_map {
	struct link **buckets;
	size_t n_buckets; /* a power of two */
	size_t n;
};

int link_map_new(struct link_map **ret)
{
	SBX_FREE struct link_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	map->n_buckets = 64;
	map->buckets = calloc(map->n_buckets, sizeof(struct link *));
	if (!map->buckets)
		return -ENOMEM;
	*ret = sbx_take(&map);
	return 0;
}

void link_map_free(struct link_map *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->n_buckets; i++) {
		while (map->buckets[i]) {
			struct link *link = map->buckets[i];

			map->buckets[i] = link->next;
			sbx_free_pointer(&link);
		}
	}
	sbx_free_pointer(&map->buckets);
	sbx_free_pointer(&map);
}

static size_t bucket_of(size_t n_buckets, dev_t dev, ino_t ino)
{
	uint64_t h = (ino ^ (dev << 32)) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(h >> 32) & (n_buckets - 1);
}

static struct link **find(const struct link_map *map, const struct stat *st)
{
	struct link **at = &map->buckets[bucket_of(map->n_buckets, st->st_dev, st->st_ino)];

	while (*at && ((*at)->ino != st->st_ino || (*at)->dev != st->st_dev))
		at = &(*at)->next;
	return at;
}

const char *link_map_find(const struct link_map *map, const struct stat *st)
{
	struct link *link = *find(map, st);

	return link ? link->path : NULL;
}

static int grow(struct link_map *map)
{
	size_t n_buckets = map->n_buckets * 2;
	struct link **buckets = calloc(n_buckets, sizeof(struct link *));

	if (!buckets)
		return -ENOMEM;
	for (size_t i = 0; i < map->n_buckets; i++) {
		while (map->buckets[i]) {
			struct link *link = map->buckets[i];
			size_t to = bucket_of(n_buckets, link->dev, link->ino);

			map->buckets[i] = link->next;
			link->next = buckets[to];
			buckets[to] = link;
		}
	}
	free(map->buckets);
	map->buckets = buckets;
	map->n_buckets = n_buckets;
	return 0;
}

int link_map_add(struct link_map *map, const struct stat *st, const char *path)
{
	size_t size = strlen(path) + 1;
	struct link *link, **at;

	if (map->n >= map->n_buckets) {
		int r = grow(map);

		if (r < 0)
			return r;
	}
	link = malloc(sizeof(*link) + size);
	if (!link)
		return -ENOMEM;
	*link = (struct link){.dev = st->st_dev, .ino = st->st_ino, .n_left = st->st_nlink - 1};
	memcpy(link->path, path, size);
	at = find(map, st);
	link->next = *at;
	*at = link;
	map->n++;
	return 0;
}

void link_map_seen(struct link_map *map, const struct stat *st)
{
	struct link **at = find(map, st), *link = *at;

	if (!link || --link->n_left > 0)
		return;
	*at = link->next;
	free(link);
	map->n--;
}
