/* SPDX-License-Identifier: MIT */
/*
 * A renamed directory is made whole by hard links to files of layers. In a layer or a reject that
 * is fine: neither is ever written to. But when such a tree goes back to a session that lives on,
 * its commands would write through the links into the layers. So capture leaves a mark at home
 * before the first link, and whoever gives the tree back ends the sharing.
 */
#ifndef SBX_OPS_UNSHARE_H
#define SBX_OPS_UNSHARE_H

#include "sbx/err.h"

/* Sets the mark. */
int sbx_unshare_mark(int home_fd);
/*
 * When home is marked and has the tree: gives every file of home_fd/tree_name that has several
 * links an inode of its own, then removes the mark. (Links among the session's own files end too.)
 */
int sbx_unshare_tree(int home_fd, const char *tree_name, struct sbx_err *err);

#endif
