/* SPDX-License-Identifier: MIT */
/*
 * "files" of an answer: what became of each path, with the text of the change.
 *
 *   {"path", "change": "add" | "modify" | "delete" | "replace" | "metadata",
 *    "old_kind", "new_kind", "old_mode", "new_mode": null where there is none,
 *    "diff": unified, of regular files and of the targets of symbolic links, else null,
 *    "diff_omitted": "binary" | "too_large", only when that is why there is no text}
 */
#ifndef SBX_OPS_FILEDIFF_H
#define SBX_OPS_FILEDIFF_H

#include "changeset.h"
#include "place.h"
#include "sbx/json.h"

#define SBX_FILEDIFF_FILES_MAX 10000       /* files that are listed; the rest is only counted */
#define SBX_FILEDIFF_INPUT_MAX (16u << 20) /* bytes of a file that is compared by lines */
#define SBX_FILEDIFF_TEXT_MAX  (1u << 20)  /* bytes of one file's diff */
#define SBX_FILEDIFF_TEXTS_MAX (16u << 20) /* bytes of all of them */

struct sbx_filediff {
	struct json_object *files;
	size_t n;         /* changed paths, listed or not */
	size_t text_size; /* bytes of diffs so far */
};
#define SBX_FILEDIFF_INIT ((struct sbx_filediff){0})

void sbx_filediff_done(struct sbx_filediff *diff);
#define SBX_FILEDIFF SBX_CLEANUP(sbx_filediff_done)

/* What happened between old and new, either of which may be NULL: an enum sbx_change, or -errno. */
int sbx_filediff_change(const struct sbx_place *old, const struct sbx_place *new);

/* Adds what became of path; old or new is NULL when there is none. Equal ones are not listed; of
 * directories neither content nor mtime is compared. */
int sbx_filediff_add(struct sbx_filediff *diff, const char *path, const struct sbx_place *old,
	const struct sbx_place *new, struct sbx_err *err);

/* Puts "files" and "n_files" into an answer. */
void sbx_filediff_answer(struct sbx_filediff *diff, struct json_object *ret_object);

#endif
