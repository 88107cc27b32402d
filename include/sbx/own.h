/* SPDX-License-Identifier: MIT */
/*
 * Who wrote each line: computed from bytes alone when a changeset is published.
 *
 *  - Lines that the comparison of old and new content finds unchanged keep their owner. What lies
 *    at a line's end (blanks, tabs, '\r', the final newline) does not count.
 *  - Lines that were removed in one place and appear in another have moved and keep their owner:
 *    see the figures below. Each removed line is given out once, so a copy belongs to who made it.
 *  - A file added while another was deleted is that file renamed when their contents are equal,
 *    else when they are similar; it is then compared with that file's content. So is a file that
 *    was renamed over another one, or exchanged its name with it: old and new content of its path
 *    are not similar, and the new one (of SBX_OWN_MOVE_MIN at least) equals the old one of a path
 *    that is deleted or has changed as much.
 *  - All other lines belong to the publication.
 *
 * The result depends on the files, not on their order. Beyond the limits below lines are only
 * looked for less far: some that moved go to the publication then.
 */
#ifndef SBX_OWN_H
#define SBX_OWN_H

#include "sbx/err.h"

/* count lines of one owner; runs tile a file, neighbours differ. */
struct sbx_run {
	uint32_t count; /* at least 1 */
	uint32_t owner; /* index into a table of names, less than UINT32_MAX */
};

#define SBX_OWN_ORIGINAL 0 /* owner of base content that nobody has changed yet */

/*
 * A block of consecutive lines has moved when it holds this many letters, digits and bytes beyond
 * ASCII. Less is needed around a distinct line: one that occurs once in what was removed and once
 * in what was added, and within one file nowhere else in its old or new content.
 */
#define SBX_OWN_MOVE_MIN                 20 /* within a file */
#define SBX_OWN_MOVE_MIN_DISTINCT        1
#define SBX_OWN_MOVE_MIN_ACROSS          40 /* between files */
#define SBX_OWN_MOVE_MIN_ACROSS_DISTINCT 10

/* Per cent of the larger file's bytes, in lines that both have, that make a rename. */
#define SBX_OWN_RENAME_MIN 50

#define SBX_OWN_MOVE_COST_MAX    (UINT64_C(1) << 26) /* lines looked at, per file and between them */
#define SBX_OWN_ACROSS_LINES_MAX (UINT32_C(1) << 22) /* removed and added lines between files */
#define SBX_OWN_RENAME_PAIRS_MAX (UINT32_C(1) << 20) /* of files compared for similarity */
#define SBX_OWN_RENAME_COST_MAX  (UINT64_C(1) << 27) /* lines looked at for similarity */

/* One path of the changeset. All pointers but runs are borrowed. */
struct sbx_own_file {
	const char *path;

	/* Content before; without has_old the file is added. Binary content counts as none. */
	bool has_old;
	const void *old_data;
	size_t old_size;
	/* Its owners; none at all: every line is SBX_OWN_ORIGINAL. */
	const struct sbx_run *old_runs;
	uint32_t n_old_runs;

	/* Content after; without has_new the file is deleted. */
	bool has_new;
	const void *new_data;
	size_t new_size;

	/* The result, of files with has_new; sbx_own_file_done() frees it. */
	struct sbx_run *runs;
	uint32_t n_runs;
	uint32_t n_lines;
	const char *renamed_from; /* path of another file of the call, or NULL */
};

/*
 * Fills in the results of all files, whose paths must differ. Lines of the publication get
 * new_owner. Files that stayed as they are need not be given, and nothing is ever inherited from
 * them. -EFBIG (content over the limits of sbx/lines.h) and -EINVAL (old runs that do not tile the
 * old content) name the path; -ENOMEM. After a failure no file has a result.
 */
int sbx_own_compute(
	struct sbx_own_file *files, size_t n_files, uint32_t new_owner, struct sbx_err *err);
void sbx_own_file_done(struct sbx_own_file *file);

#endif
