/* SPDX-License-Identifier: MIT */
/*
 * The lines file of a publication: who owns each line of each file whose content it changed. Runs
 * on the resolved tree. Lines that were there before, in the head at the same path or in the base
 * where a renamed directory came from, keep their owners; so do lines that moved between files of
 * the changeset, and the lines of a deleted file that lives on under another name.
 */
#ifndef SBX_OPS_OWNERSHIP_H
#define SBX_OPS_OWNERSHIP_H

#include "changeset.h"
#include "sbx/owners.h"
#include "sbx/tally.h"
#include "sbx/view.h"

/*
 * Files are compared with each other in batches of at most so many files and bytes (old and new
 * together); between batches no line is found to have moved.
 */
#define SBX_OWNERSHIP_BATCH_FILES   4096
#define SBX_OWNERSHIP_BATCH_BYTES   (UINT64_C(256) << 20)
#define SBX_OWNERSHIP_DELETED_FILES 4096                 /* deleted files looked at for renames */
#define SBX_OWNERSHIP_DELETED_BYTES (UINT64_C(64) << 20) /* and their bytes */

struct sbx_ownership {
	const struct sbx_changeset *set;
	int tree_fd;
	struct sbx_view *base;
	struct sbx_view *head;
	const char *owner; /* of what is new */
	/*
	 * Of a layer that was sealed already and is resolved again: its records stay true for what
	 * was not merged now. NULL: none.
	 */
	const struct sbx_owners *prior;
	struct sbx_tally *tally; /* of the tree: gets every entry, since it is walked anyway */
};

/*
 * Writes SBX_LAYER_LINES into layer_fd. Also removes forged marks of overlayfs from the new files,
 * since it opens them anyway, and our own marks from renamed directories, which are of no use in a
 * layer.
 */
int sbx_ownership_write(const struct sbx_ownership *ownership, int layer_fd, struct sbx_err *err);

#endif
