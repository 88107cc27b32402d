/* SPDX-License-Identifier: MIT */
/* What owners.c needs of a view: its layers and a place to keep their lines files. */
#ifndef SBX_STORE_VIEW_INTERNAL_H
#define SBX_STORE_VIEW_INTERNAL_H

#include "sbx/owners.h"
#include "sbx/view.h"

struct view_layer {
	int tree_fd; /* <layers>/<id>/tree; "../lines" is beside it */
	char id[SBX_ID_SIZE];
	bool has_lines;            /* false once the lines file was found missing */
	struct sbx_owners *owners; /* NULL until somebody asks */
};

struct sbx_view {
	size_t n;
	struct view_layer layers[]; /* bottom first */
};

#endif
