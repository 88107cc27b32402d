/* SPDX-License-Identifier: MIT */
/*
 * Writes a tar archive: ustar headers (POSIX.1-1988), with pax records (POSIX.1-2001) where these
 * are too narrow: long names, large numbers, nanoseconds, extended attributes (SCHILY.xattr), and
 * files with holes as GNU sparse format 1.0. GNU tar, bsdtar and Python's tarfile read it.
 */
#ifndef SBX_STORE_TAR_H
#define SBX_STORE_TAR_H

#include <sys/stat.h>

#include "sbx/buf.h"

struct tar {
	int fd;             /* borrowed */
	struct sbx_buf out; /* not written yet */
	char *chunk;
};

int tar_init(struct tar *tar, int fd);
void tar_done(struct tar *tar);

struct tar_entry {
	const char *path;      /* directories without a slash at the end; "." for the root */
	const char *target;    /* of a symbolic or hard link, or NULL */
	bool is_hard_link;     /* to target, an entry before */
	const struct stat *st; /* mode, size, times */
	uid_t uid;
	gid_t gid;
	int fd; /* file or directory: attributes and content; -EBADF for the others */
};
/* Writes one entry with its content; *ret_n_dropped is increased by the attributes left out. */
int tar_put(struct tar *tar, const struct tar_entry *entry, uint64_t *ret_n_dropped);
/* Ends the archive and writes what is buffered. */
int tar_finish(struct tar *tar);

#endif
