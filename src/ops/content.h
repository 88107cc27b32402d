/* SPDX-License-Identifier: MIT */
/* Contents of files that we hold open, and copies of them. */
#ifndef SBX_OPS_CONTENT_H
#define SBX_OPS_CONTENT_H

#include <sys/stat.h>

#include "sbx/buf.h"
#include "sbx/err.h"

/* Whether two regular files of size bytes hold the same: 1, 0 or -errno. */
int sbx_content_equal(int a_fd, int b_fd, uint64_t size);
/* Whether two symbolic links have the same target: 1, 0 or -errno. */
int sbx_link_equal(int a_dir_fd, const char *a_name, int b_dir_fd, const char *b_name);
/* The target of a symbolic link, with a NUL after it. */
int sbx_link_read(int dir_fd, const char *name, struct sbx_buf *ret);

/* Opens a regular file for reading in a directory that we hold; never blocks. fd or -errno. */
int sbx_content_open(int dir_fd, const char *name);
int sbx_content_open_stat(int dir_fd, const char *name, struct stat *ret);
/* Copies the bytes, holes kept as holes, shared where the file system can. */
int sbx_content_copy(int from_fd, int to_fd);
/*
 * Makes to_dir_fd/to_name a copy of anything but a directory: content or target, and metadata
 * (meta.h). The name must be free.
 */
int sbx_file_copy(int from_dir_fd, const char *from_name, int to_dir_fd, const char *to_name);
/* A hard link; a copy where the file system allows no more of them. */
int sbx_file_link(int from_dir_fd, const char *from_name, int to_dir_fd, const char *to_name);

#endif
