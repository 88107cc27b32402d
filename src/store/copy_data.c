/* SPDX-License-Identifier: MIT */
#include "copy_data.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "sbx/fs.h"
#include "sparse.h"

#define BUFFER_SIZE (128u * 1024)
#define RANGE_MAX   ((size_t)1 << 30) /* one copy_file_range(2): it stays interruptible */

int copy_data_init(struct copy_data *data)
{
	*data = (struct copy_data){.buffer = malloc(BUFFER_SIZE)};
	return data->buffer ? 0 : -ENOMEM;
}

void copy_data_done(struct copy_data *data)
{
	sbx_free_pointer(&data->buffer);
}

/* Copies from offset at up to end through the buffer; returns where it stopped. */
static off_t copy_by_buffer(struct copy_data *data, int in, int out, off_t at, off_t end)
{
	if (lseek(out, at, SEEK_SET) < 0)
		return -errno;
	while (at < end) {
		size_t want = (size_t)SBX_MIN(end - at, (off_t)BUFFER_SIZE);
		ssize_t n = pread(in, data->buffer, want, at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		r = sbx_fs_write_all(out, data->buffer, (size_t)n);
		if (r < 0)
			return r;
		at += n;
	}
	return at;
}

/* copy_file_range(2) does not work between these two, for this or any file (its man page). */
static bool is_unable(int error)
{
	return error == EXDEV || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP ||
	       error == EPERM;
}

static off_t copy_extent(struct copy_data *data, int in, int out, off_t at, off_t end)
{
	while (at < end && !data->no_range) {
		off_t from = at, to = at;
		size_t want = (size_t)SBX_MIN(end - at, (off_t)RANGE_MAX);
		ssize_t n = copy_file_range(in, &from, out, &to, want, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !is_unable(errno))
			return -errno;
		if (n < 0)
			data->no_range = true;
		/* 0 is the end of the file, or a file system that lies about it (procfs, 5.x) */
		if (n <= 0)
			break;
		at += n;
	}
	return at < end ? copy_by_buffer(data, in, out, at, end) : at;
}

static int copy_extents(struct copy_data *data, int in, int out, off_t size)
{
	off_t at = 0, end = 0;
	int r;

	while (at < size && (r = sparse_next(in, &at, size, &end)) != 0) {
		if (r < 0)
			return r;
		at = copy_extent(data, in, out, at, end);
		if (at < 0)
			return (int)at;
		if (at < end) /* it got shorter */
			return 0;
	}
	return ftruncate(out, size) < 0 ? -errno : 0; /* a hole at the end */
}

int copy_data_run(struct copy_data *data, int in, int out, const struct stat *st)
{
	off_t r;

	if (st->st_size == 0)
		return COPY_DATA_COPIED;
	if (!data->no_share && ioctl(out, FICLONE, in) == 0)
		return COPY_DATA_SHARED;
	data->no_share = true;
	/* one read and one write beat the bookkeeping of copy_file_range(2) for small files */
	if (st->st_size <= (off_t)BUFFER_SIZE && !sparse_is_likely(st))
		r = copy_by_buffer(data, in, out, 0, st->st_size);
	else
		r = copy_extents(data, in, out, st->st_size);
	return r < 0 ? (int)r : COPY_DATA_COPIED;
}
