/* SPDX-License-Identifier: MIT */
/*
 * Which paths a tree's .gitignore files ignore, by git's rules: what `git check-ignore --no-index`
 * answers for the same files, with two differences. A path with a component ".git" is not ignored
 * (git never asks about one), unless a directory above that component is. And the limits below.
 *
 * Pure: text in, answers out; no file is opened. Matching time is at most proportional to the
 * bytes of the patterns times the bytes of the path, whatever the patterns are.
 */
#ifndef SBX_IGNORE_H
#define SBX_IGNORE_H

#include "sbx/err.h"

#define SBX_IGNORE_FILES_MAX    16384     /* .gitignore files of one tree */
#define SBX_IGNORE_PATTERNS_MAX 65536     /* patterns of all files together */
#define SBX_IGNORE_BYTES_MAX    (4 << 20) /* bytes of all patterns together */
#define SBX_IGNORE_LINE_MAX     4096      /* bytes of a pattern; a longer line matches nothing */

struct sbx_ignore;

int sbx_ignore_new(struct sbx_ignore **ret);
void sbx_ignore_free(struct sbx_ignore *ignore);
#define SBX_IGNORE SBX_CLEANUP(sbx_ignore_freep)
static inline void sbx_ignore_freep(struct sbx_ignore **ignore)
{
	sbx_ignore_free(*ignore);
}

/*
 * Adds the .gitignore of directory dir ("" for the root, else "a/b"). Files may come in any order;
 * a second text for one directory counts as further lines of the first. text may hold anything;
 * lines that are no pattern match nothing, as in git. On failure (-E2BIG: a limit; -ENOMEM) the
 * patterns read so far stay.
 */
int sbx_ignore_add(struct sbx_ignore *ignore, const char *dir, const char *text, size_t size,
	struct sbx_err *err);

/*
 * Whether path ("a/b/c", relative, normalized) is ignored: itself or by a directory above it.
 * is_dir says whether path names a directory. Not for two threads at once: the verdict on the last
 * directory is remembered.
 */
bool sbx_ignore_match(const struct sbx_ignore *ignore, const char *path, bool is_dir);

#endif
