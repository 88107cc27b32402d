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

/*
 * Whether dir hides what layers below the view's lowest may have at its path: it is opaque, or
 * something that is no directory lies under it.
 */
bool view_dir_covers(const struct sbx_view_dir *dir);
/* As sbx_view_dir_list(), with the names that a whiteout is shown for too. */
int view_dir_list_raw(struct sbx_view_dir *dir, char ***ret_names, size_t *ret_n);
/*
 * Closes the descriptors of dir that below, a directory in it, can find again: those of the layers
 * that have both. Of each layer only one directory of a way down stays open then, its last.
 */
int view_dir_give_up(struct sbx_view_dir *dir, const struct sbx_view_dir *below);
/* -ESTALE: a directory was moved away, which layers never see. */
int view_dir_find_again(struct sbx_view_dir *dir, const struct sbx_view_dir *below);
/* Descriptors that dir holds. */
size_t view_dir_n_fds(const struct sbx_view_dir *dir);
/* The topmost layer's directory: carries the metadata. -EBADF for an empty stack. */
int view_dir_top_fd(const struct sbx_view_dir *dir);

struct sbx_view {
	unsigned int n_refs;
	size_t n;
	struct view_layer layers[]; /* bottom first */
};

#endif
