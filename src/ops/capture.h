/* SPDX-License-Identifier: MIT */
/*
 * From the upper directory of an overlay to a changeset.
 *
 * The capture also cleans the tree, so that what is left is a layer as sbx/view.h describes them:
 *   - copy-ups that changed nothing, whiteouts and opaque marks that hide nothing, sockets and
 *     devices are removed; so is every other mark of overlayfs and every forgery of one
 *   - a directory that was renamed (trusted.overlay.redirect) is made whole: hard links to the
 *     base's files, then an opaque mark instead of the redirect
 * Whenever it is cut short, capturing the same tree again gives the same layer.
 *
 * The tree must have no other writer: the session is dead. Nothing in it is trusted all the same:
 * no link is followed, nothing but regular files and directories is opened, no mount is crossed,
 * depth, number and names are limited (changeset.h). Takes root's rights over the files.
 */
#ifndef SBX_OPS_CAPTURE_H
#define SBX_OPS_CAPTURE_H

#include "changeset.h"
#include "sbx/view.h"

enum sbx_capture_flags {
	/*
	 * Looks only. The tree may be that of a live session: what vanishes meanwhile is left out.
	 * The untouched files of a renamed directory are not listed.
	 */
	SBX_CAPTURE_READ_ONLY = 1 << 0,
};

/*
 * tree_fd: the upper directory. scratch_fd: the directory that holds it, which is our own
 * (-EBADF with READ_ONLY): it gets the mark of unshare.h. The error names the path. The caller ends
 * ret.
 */
int sbx_capture(int tree_fd, int scratch_fd, struct sbx_view *base, enum sbx_capture_flags flags,
	struct sbx_changeset *ret, struct sbx_err *err);

#endif
