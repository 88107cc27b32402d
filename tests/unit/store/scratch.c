/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sbx/fs.h"

struct scratch scratch_new(void)
{
	const char *parent = getenv("TMPDIR");
	struct scratch scratch = {.fd = -EBADF};

	(void)snprintf(scratch.path, sizeof(scratch.path), "%s/sbx-store-XXXXXX",
		parent && strlen(parent) < 32 ? parent : "/tmp");
	cr_assert_not_null(mkdtemp(scratch.path), "%s", scratch.path);
	scratch.fd = open(scratch.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(scratch.fd, 0);
	return scratch;
}

void scratch_done(struct scratch *scratch)
{
	sbx_fd_close(&scratch->fd);
	cr_expect_eq(sbx_fs_remove_tree(AT_FDCWD, scratch->path), 0);
}

size_t scratch_count_at(int dir_fd)
{
	DIR *dirp = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t n = 0;

	cr_assert_not_null(dirp);
	for (struct dirent *entry; (entry = readdir(dirp));)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(dirp); /* only read from */
	return n;
}

size_t scratch_count(const struct scratch *scratch)
{
	return scratch_count_at(scratch->fd);
}

void scratch_write(int dir_fd, const char *name, const char *text)
{
	SBX_CLOSE int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0, "%s", name);
	cr_assert_eq(sbx_fs_write_all(fd, text, strlen(text)), 0);
}

int scratch_mkdir(int dir_fd, const char *name)
{
	int fd;

	cr_assert_eq(sbx_fs_ensure_dir(dir_fd, name, 0755, &fd), 0);
	return fd;
}
