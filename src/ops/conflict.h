/* SPDX-License-Identifier: MIT */
/* What keeps a changeset from being published: every path, with both owners. */
#ifndef SBX_OPS_CONFLICT_H
#define SBX_OPS_CONFLICT_H

#include "sbx/json.h"
#include "sbx/merge.h"
#include "sbx/view.h"

#define SBX_CONFLICTS_MAX       10000 /* listed; all are counted */
#define SBX_CONFLICT_RANGES_MAX 1000  /* line ranges listed for one path */

enum sbx_conflict_kind {
	SBX_CONFLICT_CONTENT,       /* overlapping lines */
	SBX_CONFLICT_DELETE_MODIFY, /* ours deleted what theirs changed or added */
	SBX_CONFLICT_MODIFY_DELETE, /* ours changed or added to what theirs deleted */
	SBX_CONFLICT_BINARY,
	SBX_CONFLICT_TYPE, /* a file here, a directory or a link there */
	SBX_CONFLICT_SYMLINK,
	SBX_CONFLICT_ADD_ADD,
	SBX_CONFLICT_METADATA, /* mode, owner or an xattr set to two different values */
};

struct sbx_conflicts {
	int layers_fd; /* borrowed, as all below */
	struct sbx_view *head;
	const struct sbx_stack *head_stack;
	const bool *newer; /* for each layer of the head: published since the base */
	const char *ours_owner;

	struct json_object *list; /* [{"path", "kind", "ours_owner", "theirs_owner", ranges}] */
	uint64_t n;
	char **owners; /* of the head's layers, as far as asked for */
};
void sbx_conflicts_done(struct sbx_conflicts *conflicts);
#define SBX_CONFLICTS SBX_CLEANUP(sbx_conflicts_done)

/* No layer of the head shows the path any more. */
#define SBX_CONFLICT_NO_LAYER SIZE_MAX

/*
 * layer: the one of the head that shows the path; merge: of a content conflict, the line ranges,
 * else NULL. -errno only when it cannot be recorded: then nothing may be published either.
 */
int sbx_conflicts_add(struct sbx_conflicts *conflicts, const char *path,
	enum sbx_conflict_kind kind, size_t layer, const struct sbx_merge *merge);

#endif
