/* SPDX-License-Identifier: MIT */
#include "own_gone.h"

#include <string.h>

#include "content.h"

struct sbx_gone {
	struct sbx_digest digest;
	uint64_t size;
	char *path;
	bool is_taken;
};

void sbx_own_gone_done(struct sbx_own_gone *gone)
{
	for (size_t i = 0; i < gone->n; i++)
		sbx_free_pointer(&gone->files[i].path);
	sbx_free_pointer(&gone->files);
	*gone = (struct sbx_own_gone){0};
}

static int compare_contents(const struct sbx_gone *x, const struct sbx_gone *y)
{
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return memcmp(&x->digest, &y->digest, sizeof(x->digest));
}

static int by_content(const void *a, const void *b)
{
	const struct sbx_gone *x = a, *y = b;
	int order = compare_contents(x, y);

	return order ? order : strcmp(x->path, y->path);
}

static int make_room(struct sbx_own_gone *gone)
{
	size_t capacity = gone->capacity * 2 + 16;
	struct sbx_gone *files;

	if (gone->n < gone->capacity)
		return 0;
	files = reallocarray(gone->files, capacity, sizeof(*files));
	if (!files)
		return -ENOMEM;
	gone->files = files;
	gone->capacity = capacity;
	return 0;
}

int sbx_own_gone_add(struct sbx_own_gone *gone, const struct sbx_place *place, const char *path)
{
	struct sbx_gone file = {.size = (uint64_t)place->st.st_size};
	SBX_CLOSE int fd = sbx_content_open(place->dir_fd, place->name);
	int r = fd < 0 ? fd : sbx_digest_fd(fd, &file.digest, NULL);

	if (r == 0)
		r = make_room(gone);
	if (r < 0)
		return r;
	file.path = strdup(path);
	if (!file.path)
		return -ENOMEM;
	gone->files[gone->n++] = file;
	return 0;
}

/* The first file that does not come before a content. */
static size_t lower_bound(const struct sbx_own_gone *gone, const struct sbx_gone *wanted)
{
	size_t low = 0, high = gone->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_contents(&gone->files[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *sbx_own_gone_take(
	struct sbx_own_gone *gone, const struct sbx_digest *digest, uint64_t size)
{
	const struct sbx_gone wanted = {.digest = *digest, .size = size};

	if (!size || !gone->n)
		return NULL;
	if (!gone->is_sorted)
		qsort(gone->files, gone->n, sizeof(*gone->files), by_content);
	gone->is_sorted = true;
	for (size_t i = lower_bound(gone, &wanted); i < gone->n; i++) {
		struct sbx_gone *file = &gone->files[i];

		if (compare_contents(file, &wanted) != 0)
			return NULL;
		if (!file->is_taken) {
			file->is_taken = true;
			return file->path;
		}
	}
	return NULL;
}
