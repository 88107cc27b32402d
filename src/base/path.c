/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sbx/fs.h"

#define NAME_BYTES_MAX 255

static int refuse(struct sbx_err *err, const char *path, const char *why)
{
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "path '%.200s' %s", path, why);
}

/* Strips the workspace root from an absolute path: the rest, or NULL when it lies elsewhere. */
static const char *strip_root(const char *path, const char *root_at)
{
	size_t n = strlen(root_at);

	while (n > 1 && root_at[n - 1] == '/')
		n--;
	if (n == 1)
		return path; /* the root is "/" itself */
	if (strncmp(path, root_at, n) || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path + n;
}

static int append_component(
	const char *path, const char *start, size_t n, char *out, size_t *used, struct sbx_err *err)
{
	if (n == 0 || (n == 1 && start[0] == '.'))
		return 0;
	if (n == 2 && start[0] == '.' && start[1] == '.')
		return refuse(err, path, "contains '..'; give it relative to the workspace root");
	if (n > NAME_BYTES_MAX)
		return refuse(err, path, "has a component longer than 255 bytes");
	if (*used + n + 1 > SBX_PATH_MAX)
		return refuse(err, path, "is longer than 4095 bytes");
	if (*used)
		out[(*used)++] = '/';
	memcpy(out + *used, start, n);
	*used += n;
	return 0;
}

int sbx_fs_normalize(const char *path, size_t size, const char *root_at,
	char ret_path[static SBX_PATH_MAX + 1], struct sbx_err *err)
{
	char out[SBX_PATH_MAX + 2];
	const char *p = path;
	size_t used = 0;
	int r;

	if (memchr(path, '\0', size))
		return refuse(err, path, "contains U+0000");
	if (size == 0)
		return refuse(err, path, "is empty; name a file");
	if (*p == '/') {
		p = strip_root(path, root_at);
		if (!p)
			return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
				"path '%.200s' is outside the workspace %s; give a relative path "
				"or "
				"one under it",
				path, root_at);
	}
	while (*p) {
		const char *end = strchrnul(p, '/');

		r = append_component(path, p, (size_t)(end - p), out, &used, err);
		if (r < 0)
			return r;
		p = *end ? end + 1 : end;
	}
	memcpy(ret_path, out, used);
	ret_path[used] = '\0';
	return 0;
}
