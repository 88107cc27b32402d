/* SPDX-License-Identifier: MIT */
/*
 * A reject for people who go on by hand. dest is made:
 *
 *   files/       what the changeset added or changed, as ordinary files and directories
 *   deleted      the paths that it deleted, each ended by a NUL (they may hold newlines)
 *   reject.json  why, and which conflicts
 *
 * Files of in-session root belong to the owner of the imported directory, as in an export.
 */
#ifndef SBX_OPS_REJECT_EXPORT_H
#define SBX_OPS_REJECT_EXPORT_H

#include "changeset.h"

struct sbx_reject_export {
	const struct sbx_changeset *set;
	int tree_fd;
	int sandbox_fd;
	struct json_object *json;
};

/*
 * dest: an absolute path that must not exist (SBX_KIND_CONFLICT) in a place where the owner of
 * the sandbox may make it. On failure it stays, without files/.
 */
int sbx_reject_export(const struct sbx_reject_export *export, const char *dest,
	uint64_t *ret_n_files, struct sbx_err *err);

#endif
