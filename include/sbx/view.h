/* SPDX-License-Identifier: MIT */
/*
 * The merged view of a stack of layers, read without any mount: the same rules as overlayfs
 * (Documentation/filesystems/overlayfs.rst: whiteouts, opaque directories, merged directories).
 * Stored layers never contain redirect or metacopy marks, and only sandboxd's own processes write
 * them, before they are named in head.log; nothing here follows a symbolic link all the same.
 *
 * Metadata of a merged directory is that of its topmost layer.
 */
#ifndef SBX_VIEW_H
#define SBX_VIEW_H

#include <sys/stat.h>

#include "sbx/err.h"
#include "sbx/id.h"

/* An ordered list of layers, bottom first. */
struct sbx_stack {
	char (*ids)[SBX_ID_SIZE];
	size_t n;
};
void sbx_stack_done(struct sbx_stack *stack);
int sbx_stack_add(struct sbx_stack *stack, const char *layer_id);
int sbx_stack_copy(const struct sbx_stack *from, struct sbx_stack *ret);
/* The layers of top that are not in bottom, in order: what was published in between. */
int sbx_stack_since(
	const struct sbx_stack *bottom, const struct sbx_stack *top, struct sbx_stack *ret);

struct sbx_view;
/* layers_fd: <store>/layers (borrowed during the call). An empty stack is an empty tree. */
int sbx_view_open(
	int layers_fd, const struct sbx_stack *stack, struct sbx_view **ret, struct sbx_err *err);
void sbx_view_free(struct sbx_view *view);

struct sbx_node {
	struct stat st;
	size_t layer; /* index into the stack of the layer that shows it (topmost for directories) */
};

/* A directory of the view. Holds one descriptor for each layer that takes part in it. */
struct sbx_view_dir;
/* path: relative, "" is the root. -ENOENT, -ENOTDIR. No component is followed if a symlink. */
int sbx_view_dir_open(struct sbx_view *view, const char *path, struct sbx_view_dir **ret);
/* The directory name in dir. */
int sbx_view_dir_enter(struct sbx_view_dir *dir, const char *name, struct sbx_view_dir **ret);
void sbx_view_dir_free(struct sbx_view_dir *dir);
int sbx_view_dir_node(struct sbx_view_dir *dir, struct sbx_node *ret); /* of the directory itself */
/* One entry; -ENOENT when the view does not show it. */
int sbx_view_dir_lookup(struct sbx_view_dir *dir, const char *name, struct sbx_node *ret);
/* Opens an entry in the layer that shows it. flags as sbx_fs_open_beneath(). Returns fd or -errno. */
int sbx_view_dir_openat(struct sbx_view_dir *dir, const char *name, int flags);
/* The layer's own directory descriptor that holds the entry (borrowed), for linkat(2), readlinkat(2). */
int sbx_view_dir_fd_of(struct sbx_view_dir *dir, const char *name, int *ret_borrowed_fd);
/* Names in dir, sorted by bytes, without "." and "..": a NULL-terminated array; free each and it. */
int sbx_view_dir_list(struct sbx_view_dir *dir, char ***ret_names, size_t *ret_n);
void sbx_names_free(char **names);

/* By path, in one call. -ENOENT, -ENOTDIR, -ELOOP (a symlink inside the path). */
int sbx_view_lookup(struct sbx_view *view, const char *path, struct sbx_node *ret);
int sbx_view_openat(struct sbx_view *view, const char *path, int flags);

/* Overlay marks on a file of a layer or an upper directory. */
static inline bool sbx_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}
/* trusted.overlay.opaque is "y" on this directory: 1, 0 or -errno. */
int sbx_is_opaque(int dir_fd);

#endif
