/* SPDX-License-Identifier: MIT */
/* Replacing a file in a live session, as one step that a command can only see before or after. */
#ifndef SBX_OPS_SESSION_PUT_H
#define SBX_OPS_SESSION_PUT_H

#include <sys/stat.h>

#include "sbx/err.h"

struct sbx_put {
	const char *path; /* relative to the workspace root, not "" */
	const void *data;
	size_t size;
	const struct stat *expected; /* the file that this was made from; NULL: whatever is there */
};

/*
 * Writes a temporary file beside the old one and renames it over it: mode, owner and xattrs of the
 * old one are kept, its hard links are not (the other names keep the old content). Missing parents
 * are made. What is made belongs to in-session root, host id id_base.
 *
 * SBX_KIND_INVALID when a component is no directory or path no regular file; -ESTALE when it is
 * not the expected file any more. Nothing is changed then, except that parents may have been made.
 */
int sbx_session_put(int root_fd, uid_t id_base, const struct sbx_put *put, bool *ret_created,
	struct sbx_err *err);

#endif
