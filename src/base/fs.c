/* SPDX-License-Identifier: MIT */
#include "sbx/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sbx/id.h"
#include "sbx/sys.h"

#define WALK_TRIES 64 /* against a command that renames in a loop */

int sbx_fs_open_beneath(
	int root_fd, const char *path, int flags, mode_t mode, enum sbx_fs_open_flags how_flags)
{
	bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
		.mode = creates ? mode : 0, /* openat2 refuses one that is not used */
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int r, tries = 0;

	/* openat2 refuses flags that O_PATH ignores */
	if (!(flags & O_PATH))
		how.flags |= O_NONBLOCK | O_NOCTTY;
	if (!(how_flags & SBX_FS_CROSS))
		how.resolve |= RESOLVE_NO_XDEV;
	do {
		/* EAGAIN: a rename raced with the walk and the kernel could not prove that we
		 * stayed beneath (openat2(2)); another walk can. Or a lease is held on the file
		 * (fcntl(2), F_SETLEASE), for as long as its holder likes: that is the answer. */
		r = sbx_sys_openat2(root_fd, *path ? path : ".", &how);
	} while (r == -EINTR || (r == -EAGAIN && ++tries < WALK_TRIES));
	return r;
}

int sbx_fs_read_fd(int fd, size_t max, struct sbx_buf *ret)
{
	size_t room, want;
	struct stat st;
	ssize_t n;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > 0 && (uint64_t)st.st_size > max)
		return -EFBIG;
	room = (size_t)st.st_size + 2; /* more, to see the end without a second read */
	for (;;) {
		r = sbx_buf_reserve(ret, room);
		if (r < 0)
			return r;
		want = ret->capacity - ret->size - 1;
		n = pread(fd, ret->data + ret->size, want, (off_t)ret->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		ret->size += (size_t)n;
		ret->data[ret->size] = '\0';
		/* files of /proc have no size, and may give less than there is */
		if (n == 0 ||
			((size_t)n < want && st.st_size > 0 && ret->size == (size_t)st.st_size))
			return 0;
		if (ret->size > max)
			return -EFBIG;
		room = ret->capacity - ret->size > 1 ? 0 : 4096;
	}
}

int sbx_fs_read_at(int dir_fd, const char *name, size_t max, struct sbx_buf *ret)
{
	SBX_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	return sbx_fs_read_fd(fd, max, ret);
}

int sbx_fs_write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size > 0) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_temporary(
	int dir_fd, const char *name, mode_t mode, const void *data, size_t size, bool durable)
{
	SBX_CLOSE int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	int r;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode) < 0) /* whatever the umask is */
		return -errno;
	r = sbx_fs_write_all(fd, data, size);
	if (r < 0)
		return r;
	if (durable && fsync(fd) < 0)
		return -errno;
	return 0;
}

int sbx_fs_write_at(int dir_fd, const char *name, mode_t mode, const void *data, size_t size,
	enum sbx_fs_write_flags flags)
{
	bool durable = flags & SBX_FS_DURABLE;
	char temporary[SBX_ID_SIZE];
	int r;

	r = sbx_id_new(".tmp", temporary);
	if (r < 0)
		return r;
	r = write_temporary(dir_fd, temporary, mode, data, size, durable);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir_fd, temporary, 0); /* a stale temporary file is harmless */
		return r;
	}
	if (durable && fsync(dir_fd) < 0)
		return -errno;
	return 0;
}

int sbx_fs_ensure_dir(int dir_fd, const char *name, mode_t mode, int *ret_fd)
{
	bool made;
	int fd;

	made = mkdirat(dir_fd, name, mode) == 0;
	if (!made && errno != EEXIST)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (made && fchmod(fd, mode) < 0) {
		sbx_fd_close(&fd);
		return -errno;
	}
	*ret_fd = fd;
	return 0;
}

int sbx_fs_holds(int above_fd, int below_fd)
{
	SBX_CLOSE int fd = openat(below_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat above, here, last = {0};

	if (fd < 0 || fstat(above_fd, &above) < 0)
		return -errno;
	for (;;) {
		int up;

		if (fstat(fd, &here) < 0)
			return -errno;
		if (here.st_dev == above.st_dev && here.st_ino == above.st_ino)
			return 1;
		if (here.st_dev == last.st_dev && here.st_ino == last.st_ino)
			return 0; /* "/" is its own parent */
		last = here;
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0)
			return -errno;
		sbx_fd_close(&fd);
		fd = up;
	}
}

const char *sbx_fs_kind_name(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *name;
	} kinds[] = {
		{S_IFREG, "a regular file"},
		{S_IFDIR, "a directory"},
		{S_IFLNK, "a symbolic link"},
		{S_IFIFO, "a FIFO"},
		{S_IFSOCK, "a socket"},
		{S_IFCHR, "a character device"},
		{S_IFBLK, "a block device"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++)
		if ((mode & S_IFMT) == kinds[i].type)
			return kinds[i].name;
	return "something unknown";
}
