/* SPDX-License-Identifier: MIT */
#ifndef SBX_OPS_IGNORED_H
#define SBX_OPS_IGNORED_H

#include "sbx/view.h"

/* Whether the view's .gitignore files, those of path's directories, ignore the file path. */
int sbx_ignored_path(
	struct sbx_view *view, const char *path, bool *ret_ignored, struct sbx_err *err);

#endif
