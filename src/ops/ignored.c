/* SPDX-License-Identifier: MIT */
#include "ignored.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"
#include "sbx/ignore.h"

#define GITIGNORE "/.gitignore"

/* Adds the .gitignore of a directory when it has one; git takes none but regular files. */
static int add_one(
	struct sbx_ignore *ignore, struct sbx_view *view, const char *dir, struct sbx_err *err)
{
	char name[SBX_PATH_MAX + sizeof(GITIGNORE)];
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_CLOSE int fd = -EBADF;
	struct sbx_node node;
	int r;

	(void)snprintf(name, sizeof(name), "%s" GITIGNORE, dir);
	r = sbx_view_lookup(view, *dir ? name : name + 1, &node);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || (r == 0 && !S_ISREG(node.st.st_mode)))
		return 0;
	fd = r < 0 ? r : sbx_view_openat(view, *dir ? name : name + 1, O_RDONLY);
	if (fd < 0)
		return sbx_err_set(err, -fd, "open '%s': %m", name);
	r = sbx_fs_read_fd(fd, SBX_IGNORE_BYTES_MAX, &text);
	if (r == 0)
		r = sbx_ignore_add(ignore, dir, text.data, text.size, err);
	/* beyond the limits patterns ignore nothing: that costs a check, never a line */
	if (r < 0 && r != -EFBIG && r != -E2BIG)
		return sbx_err_set(err, -r, "read '%s': %m", name);
	return 0;
}

int sbx_ignored_path(
	struct sbx_view *view, const char *path, bool *ret_ignored, struct sbx_err *err)
{
	SBX_IGNORE struct sbx_ignore *ignore = NULL;
	char dir[SBX_PATH_MAX + 1] = "";
	int r;

	r = sbx_ignore_new(&ignore);
	if (r < 0)
		return sbx_err_set(err, -r, "look for .gitignore files: %m");
	for (const char *end = path; end; end = strchr(end + 1, '/')) {
		memcpy(dir, path, (size_t)(end - path));
		dir[end - path] = '\0';
		r = add_one(ignore, view, dir, err);
		if (r < 0)
			return r;
	}
	*ret_ignored = sbx_ignore_match(ignore, path, false);
	return 0;
}
