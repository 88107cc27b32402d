/* SPDX-License-Identifier: MIT */
#include "dirlist.h"

#include <dirent.h>
#include <string.h>

#include "changeset.h"

#define READ_SIZE 32768 /* bytes of one getdents64(2), as readdir(3) does */

void sbx_dirlist_done(struct sbx_dirlist *list)
{
	sbx_buf_done(&list->names);
	sbx_free_pointer(&list->items);
	*list = SBX_DIRLIST_INIT;
}

static int add(struct sbx_dirlist *list, const char *name, uint8_t type, bool absent)
{
	size_t offset = list->names.size;

	if (list->n >= SBX_CHANGESET_ENTRIES_MAX)
		return -E2BIG;
	if (sbx_grow(&list->items, &list->capacity, list->n) < 0)
		return -ENOMEM;
	if (sbx_buf_append(&list->names, name, strlen(name) + 1) < 0)
		return -ENOMEM;
	list->items[list->n++] =
		(struct sbx_dirlist_item){.name = (uint32_t)offset, .type = type, .absent = absent};
	return 0;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static int add_records(struct sbx_dirlist *list, const char *records, size_t size)
{
	for (size_t at = 0; at < size;) {
		const struct dirent64 *entry = (const void *)(records + at);
		int r = is_dots(entry->d_name) ? 0 : add(list, entry->d_name, entry->d_type, false);

		if (r < 0)
			return r;
		at += entry->d_reclen;
	}
	return 0;
}

static int compare_items(const void *a, const void *b, void *names)
{
	const struct sbx_dirlist_item *x = a, *y = b;
	const char *data = names;

	return strcmp(data + x->name, data + y->name);
}

static void sort(struct sbx_dirlist *list)
{
	if (list->n)
		qsort_r(list->items, list->n, sizeof(*list->items), compare_items,
			list->names.data);
}

int sbx_dirlist_read(int dir_fd, size_t at_most, struct sbx_dirlist *ret)
{
	SBX_DIRLIST struct sbx_dirlist list = SBX_DIRLIST_INIT;
	_Alignas(struct dirent64) char records[READ_SIZE];
	ssize_t n = 1;
	int r;

	if (lseek(dir_fd, 0, SEEK_SET) < 0)
		return -errno;
	while (n > 0 && list.n < at_most) {
		n = getdents64(dir_fd, records, sizeof(records));
		if (n < 0)
			return -errno;
		r = add_records(&list, records, (size_t)n);
		if (r < 0)
			return r;
	}
	sort(&list);
	*ret = list;
	list = SBX_DIRLIST_INIT;
	return 0;
}

static bool has(const struct sbx_dirlist *list, size_t n, const char *name)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int r = strcmp(sbx_dirlist_name(list, middle), name);

		if (r == 0)
			return true;
		if (r < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

int sbx_dirlist_add_absent(struct sbx_dirlist *list, struct sbx_view_dir *dir)
{
	SBX_NAMES char **names = NULL;
	size_t n_names, n = list->n;
	int r;

	if (!dir)
		return 0;
	r = sbx_view_dir_list(dir, &names, &n_names);
	for (size_t i = 0; r == 0 && i < n_names; i++)
		if (!has(list, n, names[i]))
			r = add(list, names[i], DT_UNKNOWN, true);
	sort(list);
	return r;
}
