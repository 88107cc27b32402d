/* SPDX-License-Identifier: MIT */
#include "xattr.h"

#include <string.h>
#include <sys/xattr.h>

#define LIST_TRIES 8 /* the list may grow between asking for its size and reading it */

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

bool xattr_is_portable(const char *name)
{
	if (!strcmp(name, "security.capability"))
		return true;
	return starts_with(name, "user.") && !starts_with(name, "user.overlay.");
}

bool xattr_is_content(const char *name)
{
	return xattr_is_portable(name) || starts_with(name, "system.posix_acl_");
}

/* All names as the kernel gives them. */
static int list_all(int fd, struct sbx_buf *list)
{
	for (int i = 0; i < LIST_TRIES; i++) {
		ssize_t size = flistxattr(fd, NULL, 0);
		int r;

		if (size <= 0)
			return size == 0 || errno == ENOTSUP ? 0 : -errno;
		r = sbx_buf_reserve(list, (size_t)size);
		if (r < 0)
			return r;
		size = flistxattr(fd, list->data, (size_t)size);
		if (size >= 0) {
			list->size = (size_t)size;
			return 0;
		}
		if (errno != ERANGE)
			return -errno;
	}
	return -EAGAIN;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int put_sorted(const char **names, size_t n, struct sbx_buf *ret_names)
{
	qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n; i++) {
		int r = sbx_buf_append(ret_names, names[i], strlen(names[i]) + 1);

		if (r < 0)
			return r;
	}
	return 0;
}

int xattr_list(int fd, xattr_filter filter, struct sbx_buf *ret_names, size_t *ret_n_dropped)
{
	SBX_BUF struct sbx_buf list = SBX_BUF_INIT;
	SBX_FREE const char **names = NULL;
	size_t n = 0, n_dropped = 0;
	int r = list_all(fd, &list);

	sbx_buf_clear(ret_names);
	if (r < 0)
		return r;
	/* each name takes two bytes at least */
	names = list.size ? calloc(list.size / 2 + 1, sizeof(*names)) : NULL;
	if (list.size && !names)
		return -ENOMEM;
	for (size_t at = 0; at < list.size; at += strlen(list.data + at) + 1) {
		if (filter(list.data + at))
			names[n++] = list.data + at;
		else
			n_dropped++;
	}
	if (ret_n_dropped)
		*ret_n_dropped = n_dropped;
	return n ? put_sorted(names, n, ret_names) : 0;
}

int xattr_get(int fd, const char *name, struct sbx_buf *value)
{
	ssize_t size;
	int r;

	sbx_buf_clear(value);
	r = sbx_buf_reserve(value, XATTR_VALUE_MAX);
	if (r < 0)
		return r;
	size = fgetxattr(fd, name, value->data, XATTR_VALUE_MAX);
	if (size < 0)
		return -errno;
	value->size = (size_t)size;
	return 0;
}

int xattr_copy(int from_fd, int to_fd, xattr_filter filter, size_t *ret_n_dropped)
{
	SBX_BUF struct sbx_buf names = SBX_BUF_INIT, value = SBX_BUF_INIT;
	int r = xattr_list(from_fd, filter, &names, ret_n_dropped);

	if (r < 0)
		return r;
	for (size_t at = 0; at < names.size; at += strlen(names.data + at) + 1) {
		r = xattr_get(from_fd, names.data + at, &value);
		if (r == -ENODATA)
			continue; /* gone since it was listed */
		if (r < 0)
			return r;
		if (fsetxattr(to_fd, names.data + at, value.data, value.size, 0) < 0)
			return -errno;
	}
	return 0;
}
