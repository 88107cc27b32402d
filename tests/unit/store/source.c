/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "sbx/fs.h"
#include "scratch.h"

static void set_times(int dir_fd, const char *name, long nanoseconds)
{
	const struct timespec times[2] = {{1600000000, nanoseconds}, {1500000000, nanoseconds}};

	cr_assert_eq(utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void fill_names(int dir_fd)
{
	char long_name[256];

	memset(long_name, 'n', 255);
	long_name[255] = '\0';
	scratch_write(dir_fd, "new\nline", "1");
	scratch_write(dir_fd, "\xff\xfe not utf-8", "2");
	scratch_write(dir_fd, ".wh.foo", "3");
	scratch_write(dir_fd, "-rf", "4");
	scratch_write(dir_fd, "caf\xc3\xa9 = x", "5");
	scratch_write(dir_fd, long_name, "6");
	cr_assert_eq(symlinkat(long_name, dir_fd, "to a long name"), 0);
	cr_assert_eq(linkat(dir_fd, long_name, dir_fd, "again", 0), 0);
}

static void fill_modes(int dir_fd)
{
	static const mode_t modes[] = {0, 0444, 0600, 0755, 01777, 02755, 04755, 06711};

	for (size_t i = 0; i < SBX_N_ELEMENTS(modes); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%04o", modes[i]);
		scratch_write(dir_fd, name, name);
		cr_assert_eq(fchmodat(dir_fd, name, modes[i], 0), 0);
		set_times(dir_fd, name, 1 + (long)i);
		name[0] = 'd';
		cr_assert_eq(mkdirat(dir_fd, name, 0755), 0);
		cr_assert_eq(fchmodat(dir_fd, name, modes[i], 0), 0);
		set_times(dir_fd, name, 123456789);
	}
}

static void fill_kinds(int dir_fd)
{
	cr_assert_eq(symlinkat("nowhere/at/all", dir_fd, "symlink"), 0);
	set_times(dir_fd, "symlink", 42);
	cr_assert_eq(fchownat(dir_fd, "symlink", 5, 6, AT_SYMLINK_NOFOLLOW), 0);
	cr_assert_eq(mkfifoat(dir_fd, "fifo", 0640), 0);
	set_times(dir_fd, "fifo", 43);
	scratch_write(dir_fd, "before 1970", "x");
	cr_assert_eq(utimensat(dir_fd, "before 1970",
			     (const struct timespec[2]){{-5, 250000000}, {-5, 250000000}}, 0),
		0);
}

static void fill_xattrs(int dir_fd)
{
	/* version 2, cap_net_raw permitted and effective: linux/capability.h */
	static const unsigned char capability[20] = {1, 0, 0, 2, 0, 32};
	SBX_CLOSE int fd = -EBADF;

	scratch_write(dir_fd, "file", "x");
	fd = openat(dir_fd, "file", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(fsetxattr(fd, "user.note", "h\xe9\0\n=", 5, 0), 0);
	cr_assert_eq(fsetxattr(fd, "user.empty", "", 0, 0), 0);
	cr_assert_eq(fsetxattr(fd, "security.capability", capability, sizeof(capability), 0), 0);
	cr_assert_eq(fsetxattr(dir_fd, "user.dir", "d", 1, 0), 0);
}

static void fill_sizes(int dir_fd)
{
	char data[5000];

	memset(data, 'z', sizeof(data));
	for (int size = 0; size < 400000; size = size * 3 + 511) {
		SBX_CLOSE int fd = -EBADF;
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", size);
		fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		for (int left = size; left > 0; left -= (int)sizeof(data))
			cr_assert_eq(sbx_fs_write_all(
					     fd, data, (size_t)SBX_MIN(left, (int)sizeof(data))),
				0);
	}
}

static void fill_sparse(int dir_fd)
{
	SBX_CLOSE int fd = openat(dir_fd, SOURCE_SPARSE, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	cr_assert_eq(pwrite(fd, "begin", 5, 0), 5);
	cr_assert_eq(pwrite(fd, "middle", 6, SOURCE_SPARSE_SIZE / 2 + 77), 6);
	cr_assert_eq(ftruncate(fd, SOURCE_SPARSE_SIZE), 0);
}

static void fill_deep(int dir_fd, int n_levels)
{
	static const char name[] = "a-directory-name-that-is-long-enough-to-make-the-path-long";
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < n_levels; i++) {
		int next = scratch_mkdir(fd, name);

		scratch_write(fd, "beside", "x");
		sbx_fd_close(&fd);
		fd = next;
	}
	scratch_write(fd, "first", "linked far down");
	cr_assert_eq(linkat(fd, "first", fd, "second", 0), 0);
	sbx_fd_close(&fd);
}

void source_fill(int dir_fd, int n_levels)
{
	static const struct {
		const char *name;
		void (*fill)(int dir_fd);
	} parts[] = {{"names", fill_names}, {"modes", fill_modes}, {"kinds", fill_kinds},
		{"xattrs", fill_xattrs}, {"sizes", fill_sizes}};
	int fd;

	for (size_t i = 0; i < SBX_N_ELEMENTS(parts); i++) {
		fd = scratch_mkdir(dir_fd, parts[i].name);
		parts[i].fill(fd);
		sbx_fd_close(&fd);
	}
	fill_sparse(dir_fd);
	fd = scratch_mkdir(dir_fd, "deep");
	fill_deep(fd, n_levels);
	sbx_fd_close(&fd);
	fd = scratch_mkdir(dir_fd, "links");
	scratch_write(fd, "a", "three names");
	cr_assert_eq(linkat(fd, "a", fd, "b", 0), 0);
	cr_assert_eq(linkat(fd, "a", dir_fd, "c", 0), 0);
	sbx_fd_close(&fd);
	cr_assert_eq(fchmod(dir_fd, 02751), 0);
	set_times(dir_fd, ".", 987654321);
}
