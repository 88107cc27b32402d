/* SPDX-License-Identifier: MIT */
#include "head_mark.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checksum.h"
#include "sbx/fs.h"

#define N_SLOTS   2
#define FILE_SIZE (N_SLOTS * HEAD_MARK_SLOT)

/* The slot's line. */
static void put_slot(uint64_t version, char ret[static HEAD_MARK_SLOT])
{
	char text[24]; /* 20 digits at most */
	char hex[CHECKSUM_HEX_SIZE];
	int n = snprintf(text, sizeof(text), "%" PRIu64, version);

	checksum_hex(text, (size_t)n, hex);
	memset(ret, ' ', HEAD_MARK_SLOT);
	memcpy(ret, hex, CHECKSUM_HEX_SIZE - 1);
	memcpy(ret + CHECKSUM_HEX_SIZE, text, (size_t)n);
	ret[HEAD_MARK_SLOT - 1] = '\n';
}

/* The version of a slot that is as it was written, else 0. */
static uint64_t slot_version(const char slot[static HEAD_MARK_SLOT])
{
	char expect[HEAD_MARK_SLOT];
	uint64_t version = 0;

	for (const char *at = slot + CHECKSUM_HEX_SIZE; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(version, 10, &version) ||
			__builtin_add_overflow(version, (uint64_t)(*at - '0'), &version))
			return 0;
	put_slot(version, expect);
	return memcmp(slot, expect, HEAD_MARK_SLOT) == 0 ? version : 0;
}

int head_mark_read(int store_fd, uint64_t *ret_version, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(store_fd, HEAD_MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char slots[FILE_SIZE + 1] = {0};
	uint64_t version = 0;
	ssize_t n;

	if (fd < 0 && errno == ENOENT) {
		*ret_version = 0;
		return 0;
	}
	n = fd < 0 ? -1 : pread(fd, slots, FILE_SIZE, 0);
	if (n < 0)
		return sbx_err_set(err, errno, "read " HEAD_MARK ": %m");
	for (int i = 0; i < N_SLOTS; i++)
		version = SBX_MAX(version, slot_version(slots + i * HEAD_MARK_SLOT));
	/* empty: made, and the first version not yet noted */
	if (n && !version)
		return sbx_err_set(err, EBADMSG,
			HEAD_MARK " is damaged: nothing tells whether head.log is complete; "
				  "remove " HEAD_MARK " to take head.log as it is");
	*ret_version = version;
	return 0;
}

int head_mark_open(int store_fd, int *ret_fd, struct sbx_err *err)
{
	int fd = openat(store_fd, HEAD_MARK, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return sbx_err_set(err, errno, "open " HEAD_MARK ": %m");
	*ret_fd = fd;
	return 0;
}

int head_mark_write(int fd, uint64_t version)
{
	char slot[HEAD_MARK_SLOT];
	off_t at = (off_t)(version % N_SLOTS) * HEAD_MARK_SLOT;
	ssize_t n;

	put_slot(version, slot);
	n = pwrite(fd, slot, HEAD_MARK_SLOT, at);
	if (n < 0)
		return -errno;
	return n == HEAD_MARK_SLOT ? 0 : -EIO;
}
