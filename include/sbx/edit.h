/* SPDX-License-Identifier: MIT */
/*
 * file_edit's algorithm: exact, literal replacements in a buffer, in order, all or nothing. Each
 * edit sees the result of the ones before it. Bytes are bytes: nothing is decoded or normalised,
 * and no byte outside a match changes.
 *
 * Line ends. Texts come from callers who think in "\n", files may hold "\r\n":
 *   - an old_string that contains '\r' is taken literally, and so is its new_string;
 *   - in a file whose line ends are all "\r\n", '\n' in old_string stands for "\r\n", and a '\n' in
 *     new_string that has no '\r' before it becomes "\r\n";
 *   - in a file with both kinds, old_string is first looked for literally, with new_string put in
 *     literally; only when that finds nothing, the "\r\n" spelling of both is tried.
 */
#ifndef SBX_EDIT_H
#define SBX_EDIT_H

#include "sbx/buf.h"
#include "sbx/err.h"

#define SBX_EDIT_SIZE_MAX  (16 << 20) /* bytes of the file, before and after each edit */
#define SBX_EDIT_COUNT_MAX 1000       /* edits of one call */

struct sbx_edit {
	const char *old_s; /* what to find */
	size_t old_n;
	const char *new_s; /* what to put there; may be empty */
	size_t new_n;
	bool replace_all; /* every match, left to right, instead of the only one */
};

/*
 * Applies n edits to text and puts the result into ret (empty before), the number of replaced
 * places into ret_replacements. On failure ret stays empty and err, always of kind
 * SBX_KIND_INVALID except for -ENOMEM, names the edit by its number, counted from 1:
 *   -EINVAL    no edits, or an empty old_string
 *   -E2BIG     more than SBX_EDIT_COUNT_MAX edits
 *   -EFBIG     text or a result above SBX_EDIT_SIZE_MAX
 *   -ENOENT    no match; the message shows the closest line and its number, and says when other
 *              white space or line ends would match
 *   -ENOTUNIQ  more than one match without replace_all; the message gives the first ten lines
 *   -EALREADY  the edit changes nothing
 */
int sbx_edit_apply(const char *text, size_t size, const struct sbx_edit *edits, size_t n,
	struct sbx_buf *ret, size_t *ret_replacements, struct sbx_err *err);

#endif
