/* SPDX-License-Identifier: MIT */
#include "content.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/fs.h>

#include "meta.h"
#include "sbx/fs.h"

#define CHUNK_SIZE (128u << 10)

/* a new atime would make each file that is only looked at dirty */
#define OPEN_FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_NOATIME | O_CLOEXEC)

/* Fills buf from offset; fewer bytes only at the end of the file. */
static ssize_t read_chunk(int fd, char *buf, size_t size, off_t offset)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, buf + got, size - got, offset + (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int sbx_content_equal(int a_fd, int b_fd, uint64_t size)
{
	size_t chunk = SBX_MIN(size, (uint64_t)CHUNK_SIZE);
	SBX_FREE char *a = malloc(chunk + 1);
	SBX_FREE char *b = malloc(chunk + 1);

	if (!a || !b)
		return -ENOMEM;
	for (uint64_t at = 0; at < size;) {
		ssize_t n = read_chunk(a_fd, a, chunk, (off_t)at);
		ssize_t m = n < 0 ? n : read_chunk(b_fd, b, chunk, (off_t)at);

		if (m < 0)
			return (int)m;
		if (n != m || memcmp(a, b, (size_t)n) != 0)
			return 0;
		if (n == 0)
			break;
		at += (uint64_t)n;
	}
	return 1;
}

int sbx_link_read(int dir_fd, const char *name, struct sbx_buf *ret)
{
	ssize_t n;
	int r;

	sbx_buf_clear(ret);
	r = sbx_buf_reserve(ret, PATH_MAX);
	if (r < 0)
		return r;
	n = readlinkat(dir_fd, name, ret->data, PATH_MAX);
	if (n < 0)
		return -errno;
	ret->size = (size_t)n;
	ret->data[n] = '\0';
	return 0;
}

int sbx_link_equal(int a_dir_fd, const char *a_name, int b_dir_fd, const char *b_name)
{
	SBX_BUF struct sbx_buf a = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf b = SBX_BUF_INIT;
	int r;

	r = sbx_link_read(a_dir_fd, a_name, &a);
	if (r == 0)
		r = sbx_link_read(b_dir_fd, b_name, &b);
	return r < 0 ? r : a.size == b.size && !memcmp(a.data, b.data, a.size);
}

int sbx_content_open_stat(int dir_fd, const char *name, struct stat *ret)
{
	SBX_CLOSE int fd = openat(dir_fd, name, OPEN_FILE_FLAGS);

	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? sbx_fd_take(&fd) : -EINVAL;
}

int sbx_content_open(int dir_fd, const char *name)
{
	struct stat st;

	return sbx_content_open_stat(dir_fd, name, &st);
}

static int copy_range(int from_fd, int to_fd, off_t start, off_t end)
{
	SBX_FREE char *buf = NULL;

	if (lseek(to_fd, start, SEEK_SET) < 0)
		return -errno;
	buf = malloc(CHUNK_SIZE);
	if (!buf)
		return -ENOMEM;
	while (start < end) {
		size_t want = (size_t)SBX_MIN(end - start, (off_t)CHUNK_SIZE);
		ssize_t n = read_chunk(from_fd, buf, want, start);
		int r = n < 0 ? (int)n : sbx_fs_write_all(to_fd, buf, (size_t)n);

		if (r < 0)
			return r;
		if (n == 0)
			break;
		start += n;
	}
	return 0;
}

int sbx_content_copy(int from_fd, int to_fd)
{
	off_t data = 0, hole;
	struct stat st;
	int r;

	/* file systems that cannot share answer EOPNOTSUPP, EXDEV, EINVAL or ENOTTY */
	if (ioctl(to_fd, FICLONE, from_fd) == 0)
		return 0;
	if (fstat(from_fd, &st) < 0 || ftruncate(to_fd, st.st_size) < 0)
		return -errno;
	while (data < st.st_size) {
		data = lseek(from_fd, data, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : -errno; /* only a hole is left */
		hole = lseek(from_fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		r = copy_range(from_fd, to_fd, data, hole);
		if (r < 0)
			return r;
		data = hole;
	}
	return 0;
}

static int copy_regular(int from_dir_fd, const char *from_name, int to_dir_fd, const char *to_name)
{
	SBX_CLOSE int from_fd = sbx_content_open(from_dir_fd, from_name);
	SBX_CLOSE int to_fd = -EBADF;

	if (from_fd < 0)
		return from_fd;
	to_fd = openat(
		to_dir_fd, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to_fd < 0)
		return -errno;
	return sbx_content_copy(from_fd, to_fd);
}

static int copy_link(int from_dir_fd, const char *from_name, int to_dir_fd, const char *to_name)
{
	SBX_BUF struct sbx_buf target = SBX_BUF_INIT;
	int r = sbx_link_read(from_dir_fd, from_name, &target);

	if (r < 0)
		return r;
	return symlinkat(target.data, to_dir_fd, to_name) < 0 ? -errno : 0;
}

int sbx_file_copy(int from_dir_fd, const char *from_name, int to_dir_fd, const char *to_name)
{
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int r;

	r = sbx_meta_read(from_dir_fd, from_name, NULL, 0, &meta);
	if (r < 0)
		return r;
	if (S_ISREG(meta.st.st_mode))
		r = copy_regular(from_dir_fd, from_name, to_dir_fd, to_name);
	else if (S_ISLNK(meta.st.st_mode))
		r = copy_link(from_dir_fd, from_name, to_dir_fd, to_name);
	else if (S_ISFIFO(meta.st.st_mode))
		r = mknodat(to_dir_fd, to_name, S_IFIFO | 0600, 0) < 0 ? -errno : 0;
	else
		r = -EINVAL;
	if (r == 0)
		r = sbx_meta_apply(to_dir_fd, to_name, &meta);
	return r;
}

int sbx_file_link(int from_dir_fd, const char *from_name, int to_dir_fd, const char *to_name)
{
	if (linkat(from_dir_fd, from_name, to_dir_fd, to_name, 0) == 0)
		return 0;
	if (errno != EMLINK)
		return -errno;
	return sbx_file_copy(from_dir_fd, from_name, to_dir_fd, to_name);
}
