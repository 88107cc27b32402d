/* SPDX-License-Identifier: MIT */
#ifndef SBX_STORE_SQUASH_H
#define SBX_STORE_SQUASH_H

#include "sbx/owners.h"
#include "sbx/store.h"

/* Writes layer_fd/lines for run, of which view is the view; none when there is no record. */
int squash_lines(int layers_fd, const struct sbx_stack *run, struct sbx_view *view, int layer_fd,
	struct sbx_err *err);

#endif
