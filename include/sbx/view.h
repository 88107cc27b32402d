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
#include <sys/types.h>

#include "sbx/err.h"
#include "sbx/id.h"

#define SBX_STACK_MAX     500 /* layers: overlayfs mounts no more (EINVAL at the 501st lower layer) */
#define SBX_STACK_SET_MAX 65536 /* layers in a set of them, of which nobody mounts all */

/* An ordered list of layers, bottom first. */
struct sbx_stack {
	char (*ids)[SBX_ID_SIZE];
	size_t n;
};
#define SBX_STACK_INIT ((struct sbx_stack){0})

void sbx_stack_done(struct sbx_stack *stack);
#define SBX_STACK SBX_CLEANUP(sbx_stack_done)
/* -EINVAL for what cannot be an id, -E2BIG beyond SBX_STACK_MAX, -ENOMEM. */
int sbx_stack_add(struct sbx_stack *stack, const char *layer_id);
/*
 * Takes stack for a set, such as the layers that several stacks have: adds a layer that is not in
 * it yet. -EINVAL for what cannot be an id, -E2BIG beyond SBX_STACK_SET_MAX, -ENOMEM.
 */
int sbx_stack_include(struct sbx_stack *set, const char *layer_id);
/* The same for each layer of a stack. */
int sbx_stack_include_all(struct sbx_stack *set, const struct sbx_stack *stack);
int sbx_stack_copy(const struct sbx_stack *from, struct sbx_stack *ret);
/* Where layer_id is, or -ENOENT. */
ssize_t sbx_stack_find(const struct sbx_stack *stack, const char *layer_id);

/*
 * layers_fd: <store>/layers (borrowed during the call). An empty stack is an empty tree. Holds one
 * descriptor for each layer. Everything taken from a view ends before the view does.
 */
struct sbx_view;
int sbx_view_open(
	int layers_fd, const struct sbx_stack *stack, struct sbx_view **ret, struct sbx_err *err);
/*
 * The same for who looks at one head after the other: *kept (NULL at first) is the view of the last
 * call, given once more for the same stack. Of another stack its layers are used again where they
 * stand at the same place. Freed each as often as it was given, and *kept at the end.
 */
int sbx_view_open_kept(int layers_fd, const struct sbx_stack *stack, struct sbx_view **kept,
	struct sbx_view **ret, struct sbx_err *err);
void sbx_view_free(struct sbx_view *view);
/* Cleanup of a struct sbx_view *. */
static inline void sbx_view_freep(struct sbx_view **view)
{
	sbx_view_free(*view);
}
#define SBX_VIEW SBX_CLEANUP(sbx_view_freep)

struct sbx_node {
	struct stat st;
	size_t layer; /* index into the stack: the layer that shows it (a directory: topmost) */
};

/* A directory of the view. Holds one descriptor for each layer that takes part in it. */
struct sbx_view_dir;
/* path: relative, "" is the root. -ENOENT, -ENOTDIR (also for a symlink: none is followed). */
int sbx_view_dir_open(struct sbx_view *view, const char *path, struct sbx_view_dir **ret);
/* The directory name in dir: -ENOENT, -ENOTDIR. ret lives on when dir is freed. */
int sbx_view_dir_enter(struct sbx_view_dir *dir, const char *name, struct sbx_view_dir **ret);
void sbx_view_dir_free(struct sbx_view_dir *dir);
static inline void sbx_view_dir_freep(struct sbx_view_dir **dir)
{
	sbx_view_dir_free(*dir);
}
#define SBX_VIEW_DIR SBX_CLEANUP(sbx_view_dir_freep)
/* Of the directory itself. The root of an empty stack is a made-up one: mode 0755, owner 0:0. */
int sbx_view_dir_node(struct sbx_view_dir *dir, struct sbx_node *ret);
/* One entry; -ENOENT when the view does not show it. */
int sbx_view_dir_lookup(struct sbx_view_dir *dir, const char *name, struct sbx_node *ret);
/* Opens an entry in the layer that shows it; flags as sbx_fs_open_beneath(). An fd or -errno. */
int sbx_view_dir_openat(struct sbx_view_dir *dir, const char *name, int flags);
/* The layer's own directory that holds the entry (borrowed), for linkat(2), readlinkat(2). */
int sbx_view_dir_fd_of(struct sbx_view_dir *dir, const char *name, int *ret_borrowed_fd);
/* Names in dir, sorted by bytes, without "." and "..": a NULL-terminated array; free each and it.
 */
int sbx_view_dir_list(struct sbx_view_dir *dir, char ***ret_names, size_t *ret_n);
void sbx_names_free(char **names);
static inline void sbx_names_freep(char ***names)
{
	sbx_names_free(*names);
}
#define SBX_NAMES SBX_CLEANUP(sbx_names_freep)

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
