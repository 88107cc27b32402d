/* SPDX-License-Identifier: MIT */
/* A changeset for people: what changed, with differences of texts. */
#ifndef SBX_OPS_CHANGESET_DIFF_H
#define SBX_OPS_CHANGESET_DIFF_H

#include "changeset.h"
#include "sbx/view.h"

/*
 * "files" and "n_files" as in filediff.h, against the base. tree_fd is the captured tree; what
 * vanishes meanwhile from that of a live session is left out.
 */
int sbx_changeset_diff(const struct sbx_changeset *set, int tree_fd, struct sbx_view *base,
	struct json_object *ret_object, struct sbx_err *err);
/* The counts, "dropped", "paths" and "n_paths". */
int sbx_changeset_show(
	const struct sbx_changeset *set, struct json_object *ret_object, struct sbx_err *err);

#endif
