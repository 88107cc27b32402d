/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sbx/fs.h"

static char directory[] = "/tmp/sbx-fs-XXXXXX";
static int dir_fd;

static void set_up(void)
{
	cr_assert(mkdtemp(directory));
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(dir_fd, 0);
}

static void tear_down(void)
{
	cr_assert_eq(sbx_fs_remove_tree(AT_FDCWD, directory), 0);
	sbx_fd_close(&dir_fd);
}

TestSuite(fs, .init = set_up, .fini = tear_down);

Test(fs, open_beneath_follows_no_link_and_never_leaves)
{
	SBX_CLOSE int fd = -EBADF;

	cr_assert_eq(mkdirat(dir_fd, "d", 0755), 0);
	cr_assert_eq(symlinkat("/etc", dir_fd, "out"), 0);
	cr_assert_eq(symlinkat("d", dir_fd, "in"), 0);
	cr_assert_eq(sbx_fs_open_beneath(dir_fd, "out/passwd", O_RDONLY, 0, 0), -ELOOP);
	cr_assert_eq(sbx_fs_open_beneath(dir_fd, "in", O_RDONLY, 0, 0), -ELOOP);
	cr_assert_eq(sbx_fs_open_beneath(dir_fd, "../etc", O_RDONLY, 0, 0), -EXDEV);
	cr_assert_eq(sbx_fs_open_beneath(dir_fd, "/etc", O_RDONLY, 0, 0), -EXDEV);
	fd = sbx_fs_open_beneath(dir_fd, "d", O_RDONLY | O_DIRECTORY, 0, 0);
	cr_assert_geq(fd, 0);
}

Test(fs, opening_a_fifo_does_not_wait, .timeout = 5)
{
	SBX_CLOSE int fd = -EBADF;

	cr_assert_eq(mkfifoat(dir_fd, "p", 0644), 0);
	fd = sbx_fs_open_beneath(dir_fd, "p", O_RDONLY, 0, 0);
	cr_assert_geq(fd, 0);
}

Test(fs, a_file_is_replaced_as_a_whole)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct stat st;

	cr_assert_eq(sbx_fs_write_at(dir_fd, "f", 0640, "one", 3, SBX_FS_DURABLE), 0);
	cr_assert_eq(sbx_fs_write_at(dir_fd, "f", 0600, "second", 6, 0), 0);
	cr_assert_eq(sbx_fs_read_at(dir_fd, "f", 100, &text), 0);
	cr_assert_str_eq(text.data, "second");
	cr_assert_eq(fstatat(dir_fd, "f", &st, 0), 0);
	cr_assert_eq(st.st_mode & 07777, 0600);
	sbx_buf_clear(&text);
	cr_assert_eq(sbx_fs_read_at(dir_fd, "f", 5, &text), -EFBIG);
}

Test(fs, removing_goes_to_any_depth_and_follows_nothing)
{
	enum { DEPTH = 3000 };
	int fd = dup(dir_fd);
	SBX_CLOSE int outside = open("/tmp/sbx-fs-outside", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_assert_geq(outside, 0);
	for (int i = 0; i < DEPTH; i++) {
		int next;

		cr_assert_eq(mkdirat(fd, "a-rather-long-name-of-a-directory", 0700), 0);
		next = openat(fd, "a-rather-long-name-of-a-directory", O_RDONLY | O_CLOEXEC);
		cr_assert_geq(next, 0);
		cr_assert_eq(symlinkat("/tmp/sbx-fs-outside", next, "link"), 0);
		(void)close(fd);
		fd = next;
	}
	(void)close(fd);
	cr_assert_eq(sbx_fs_remove_tree(dir_fd, "a-rather-long-name-of-a-directory"), 0);
	cr_assert_eq(faccessat(dir_fd, "a-rather-long-name-of-a-directory", F_OK, 0), -1);
	cr_assert_eq(access("/tmp/sbx-fs-outside", F_OK), 0);
	(void)unlink("/tmp/sbx-fs-outside");
	cr_assert_eq(sbx_fs_remove_tree(dir_fd, "never-there"), 0);
}

/* Directories with something in them between files and empty ones: the list is gone on with. */
static void remove_wide(int parent_fd)
{
	enum { N = 1500 };
	SBX_CLOSE int fd = -EBADF;
	char path[32];

	cr_assert_eq(mkdirat(parent_fd, "sbx-fs-wide", 0755), 0);
	fd = openat(parent_fd, "sbx-fs-wide", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	for (int i = 0; i < N; i++) {
		(void)snprintf(path, sizeof(path), "%d", i);
		cr_assert_eq(i % 3 ? mkdirat(fd, path, 0) : mknodat(fd, path, S_IFREG, 0), 0);
		(void)snprintf(path, sizeof(path), "%d/d", i);
		cr_assert(i % 3 != 1 || mkdirat(fd, path, 0) == 0);
	}
	cr_assert_eq(sbx_fs_remove_tree(parent_fd, "sbx-fs-wide"), 0);
	cr_assert_eq(faccessat(parent_fd, "sbx-fs-wide", F_OK, 0), -1);
}

Test(fs, removing_leaves_nothing_of_a_wide_directory)
{
	SBX_CLOSE int shm = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert_geq(shm, 0);
	remove_wide(dir_fd);
	remove_wide(shm); /* tmpfs: other lists, other positions in them */
}
