/* SPDX-License-Identifier: MIT */
/*
 * Any pattern files and any path: what is below an ignored directory is ignored; a comment changes
 * nothing; a path that the last line takes back by its very name is not ignored unless a directory
 * above it is. The input is the root's file, that of directory "a", and the path, with a byte of
 * 0xff between them.
 */
#include <assert.h>
#include <string.h>

#include "sbx/buf.h"
#include "sbx/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *next_piece(const uint8_t *data, const uint8_t *end)
{
	const uint8_t *separator = data < end ? memchr(data, 0xff, (size_t)(end - data)) : NULL;

	return separator ? separator : end;
}

/* "!/path", each byte that could be special behind a backslash. */
static void append_negation(struct sbx_buf *out, const char *path)
{
	assert(sbx_buf_append_string(out, "\n!/") == 0);
	for (; *path; path++) {
		if (*path != '/')
			assert(sbx_buf_append(out, "\\", 1) == 0);
		assert(sbx_buf_append(out, path, 1) == 0);
	}
	assert(sbx_buf_append(out, "\n", 1) == 0);
}

static void check_path(struct sbx_ignore *ignore, char *path)
{
	bool above = false;

	for (char *slash = path; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		assert(!above || sbx_ignore_match(ignore, path, true));
		above = above || sbx_ignore_match(ignore, path, true);
		*slash = '/';
	}
	assert(!above || sbx_ignore_match(ignore, path, false));
	assert(!above || sbx_ignore_match(ignore, path, true));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBX_IGNORE struct sbx_ignore *ignore = NULL;
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf line = SBX_BUF_INIT;
	const uint8_t *end = data + size, *root = next_piece(data, end);
	const uint8_t *below = root < end ? root + 1 : end, *name = next_piece(below, end);
	bool ignored;

	assert(sbx_ignore_new(&ignore) == 0);
	assert(sbx_ignore_add(ignore, "a", (const char *)below, (size_t)(name - below), NULL) == 0);
	assert(sbx_ignore_add(ignore, "", (const char *)data, (size_t)(root - data), NULL) == 0);
	name += name < end;
	assert(sbx_buf_append(&path, name, strnlen((const char *)name, (size_t)(end - name))) == 0);
	if (path.size == 0 || path.size > 1000 || path.data[0] == '/' || strstr(path.data, "//") ||
		path.data[path.size - 1] == '/' || strpbrk(path.data, "\n\r"))
		return 0;
	check_path(ignore, path.data);
	ignored = sbx_ignore_match(ignore, path.data, false);
	assert(sbx_ignore_add(ignore, "", "\n# *\n", 5, NULL) == 0);
	assert(sbx_ignore_match(ignore, path.data, false) == ignored);
	append_negation(&line, path.data);
	assert(sbx_ignore_add(ignore, "", line.data, line.size, NULL) == 0);
	if (!strchr(path.data, '/'))
		assert(!sbx_ignore_match(ignore, path.data, false));
	return 0;
}
