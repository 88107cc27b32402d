/* SPDX-License-Identifier: MIT */
/* Which extended attributes a stored tree keeps, and reading and copying those. */
#ifndef SBX_STORE_XATTR_H
#define SBX_STORE_XATTR_H

#include "sbx/buf.h"

#define XATTR_VALUE_MAX 65536 /* the kernel's XATTR_SIZE_MAX */
#define XATTR_NAME_MAX  255   /* the kernel's, without the NUL */

/* Which attributes are meant. */
typedef bool (*xattr_filter)(const char *name);
/* What crosses a sandbox's border: user.* but for user.overlay.*, and security.capability. */
bool xattr_is_portable(const char *name);
/* What a stored tree holds: that and POSIX access lists, whose ids only mean something inside. */
bool xattr_is_content(const char *name);

/*
 * The names that pass the filter of an open file or directory, sorted, each with its NUL, one
 * after the other; *ret_n_dropped (may be NULL) counts the others. None where the file system has
 * no attributes.
 */
int xattr_list(int fd, xattr_filter filter, struct sbx_buf *ret_names, size_t *ret_n_dropped);
/* Replaces value by the attribute's bytes. -ENODATA. */
int xattr_get(int fd, const char *name, struct sbx_buf *value);
/* Sets the attributes of from_fd that pass the filter on to_fd. */
int xattr_copy(int from_fd, int to_fd, xattr_filter filter, size_t *ret_n_dropped);

#endif
