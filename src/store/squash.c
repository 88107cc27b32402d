/* SPDX-License-Identifier: MIT */
/*
 * A run of layers becomes one. Files are linked, so nothing is copied and all metadata is the
 * same; directories are made anew with the metadata of the topmost one.
 *
 * What the run hides of the layers below it must stay hidden, and nothing else: a name that the
 * run only deletes becomes a whiteout if the layers below show it; a directory that covers those
 * of the same path below becomes opaque. Whiteouts that hide nothing must go, since overlayfs
 * lists a directory that is in one layer only as it is, whiteouts included.
 */
#include "squash.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "copy.h"
#include "sbx/fs.h"
#include "view_walk.h"

struct squash {
	int layers_fd; /* borrowed */
	struct sbx_layer_info *info;
	bool is_made; /* layers/<id> is there and not complete */
	int layer_fd, tree_fd;
	struct sbx_view *view;  /* of the run */
	struct sbx_view *below; /* NULL: the run is at the bottom */
	struct copier *copier;
	char *whiteout; /* path in tree_fd of a whiteout to link to, or NULL */
};

static void squash_done(struct squash *squash)
{
	if (squash->is_made) /* else the sweep does it */
		(void)sbx_fs_remove_tree(squash->layers_fd, squash->info->id);
	copier_free(squash->copier);
	sbx_view_free(squash->below);
	sbx_view_free(squash->view);
	sbx_free_pointer(&squash->whiteout);
	sbx_fd_close(&squash->tree_fd);
	sbx_fd_close(&squash->layer_fd);
}

/* Ids on disk are in-session ids already. */
static bool map_same(const void *data SBX_UNUSED, uid_t *uid SBX_UNUSED, gid_t *gid SBX_UNUSED)
{
	return false;
}

static int make_layer(struct squash *squash, struct sbx_err *err)
{
	int r;

	if (mkdirat(squash->layers_fd, squash->info->id, 0700) < 0)
		return sbx_err_set(err, errno, "make layer %s: %m", squash->info->id);
	squash->is_made = true;
	squash->layer_fd = openat(squash->layers_fd, squash->info->id,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = squash->layer_fd < 0 ? -errno : 0;
	if (r == 0)
		r = sbx_fs_ensure_dir(squash->layer_fd, SBX_LAYER_TREE, 0700, &squash->tree_fd);
	if (r == 0)
		r = copier_new(squash->tree_fd, map_same, NULL, xattr_is_content, &squash->copier);
	return r < 0 ? sbx_err_set(err, -r, "make layer %s: %m", squash->info->id) : 0;
}

static int open_views(struct squash *squash, const struct sbx_stack *below,
	const struct sbx_stack *run, struct sbx_err *err)
{
	int r = sbx_view_open(squash->layers_fd, run, &squash->view, err);

	if (r == 0 && below->n)
		r = sbx_view_open(squash->layers_fd, below, &squash->below, err);
	return r;
}

/* All whiteouts of a layer are names of one file, as in those that overlayfs makes. */
static int put_whiteout(struct squash *squash, const struct view_walk_item *item)
{
	if (squash->whiteout &&
		linkat(squash->tree_fd, squash->whiteout, item->mirror_fd, item->name, 0) == 0)
		return 0;
	/* none yet, its path is too long, or it has as many names as the file system takes */
	if (mknodat(item->mirror_fd, item->name, S_IFCHR, makedev(0, 0)) < 0)
		return -errno;
	sbx_free_pointer(&squash->whiteout);
	squash->whiteout = strdup(item->path);
	return squash->whiteout ? 0 : -ENOMEM;
}

static int squash_whiteout(struct squash *squash, const struct view_walk_item *item)
{
	struct sbx_node node;
	int r;

	if (!squash->below || item->is_covered)
		return 0;
	r = sbx_view_lookup(squash->below, item->path, &node);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	return r < 0 ? r : put_whiteout(squash, item);
}

static int squash_file(
	struct squash *squash, const struct view_walk_item *item, struct sbx_err *err)
{
	struct copy_to to = {item->mirror_fd, item->name, item->path};
	struct copy_from from = {.name = item->name, .st = &item->node.st};
	int r = sbx_view_dir_fd_of(item->dir, item->name, &from.dir_fd);

	if (r < 0)
		return sbx_err_set(err, -r, "squash %s: %m", item->path);
	if (linkat(from.dir_fd, from.name, to.dir_fd, to.name, 0) == 0)
		return 0;
	if (errno != EMLINK)
		return sbx_err_set(err, errno, "link %s: %m", item->path);
	/* the file has as many names as the file system takes */
	r = copier_entry(squash->copier, &from, &to, err);
	if (r == COPY_VANISHED || r == COPY_NOT_KEPT)
		return sbx_err_set(
			err, EBADMSG, "squash %s: not what a layer may hold", item->path);
	return r < 0 ? r : 0;
}

static int squash_entry(struct squash *squash, struct view_walk *walk,
	const struct view_walk_item *item, struct sbx_err *err)
{
	int r;

	if (item->is_whiteout)
		r = squash_whiteout(squash, item);
	else if (!S_ISDIR(item->node.st.st_mode))
		return squash_file(squash, item, err);
	else if (mkdirat(item->mirror_fd, item->name, 0700) == 0)
		return view_walk_enter(walk, err);
	else
		r = -errno;
	return r < 0 ? sbx_err_set(err, -r, "squash %s: %m", item->path) : 0;
}

static int squash_directory(
	struct squash *squash, const struct view_walk_item *item, struct sbx_err *err)
{
	if (squash->below && view_dir_covers(item->dir) &&
		fsetxattr(item->mirror_fd, "trusted.overlay.opaque", "y", 1, 0) < 0)
		return sbx_err_set(err, errno, "make %s opaque: %m", item->path);
	return copier_finish_directory(
		squash->copier, view_dir_top_fd(item->dir), &item->node.st, item->mirror_fd, err);
}

static int squash_tree(struct squash *squash, struct sbx_err *err)
{
	VIEW_WALK struct view_walk *walk = NULL;
	struct view_walk_item item;
	int r = view_walk_new(squash->view, squash->tree_fd, true, &walk, err);

	if (r < 0)
		return r;
	while ((r = view_walk_next(walk, &item, err)) > 0) {
		if (r == WALK_LEAVE)
			r = squash_directory(squash, &item, err);
		else
			r = squash_entry(squash, walk, &item, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int add_counts(
	int layers_fd, const char *id, struct sbx_layer_info *info, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info one = {0};
	SBX_CLOSE int fd = openat(layers_fd, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return sbx_err_set(err, errno, "open layer %s: %m", id);
	r = sbx_layer_info_load(fd, &one, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "layer %s", id);
	info->added += one.added;
	info->modified += one.modified;
	info->deleted += one.deleted;
	info->merged += one.merged;
	info->ignored += one.ignored;
	return 0;
}

static int describe(struct squash *squash, const struct sbx_stack *run, struct sbx_err *err)
{
	struct sbx_layer_info *info = squash->info;
	int r = 0;

	info->added = info->modified = info->deleted = info->merged = info->ignored = 0;
	for (size_t i = 0; i < run->n && r == 0; i++)
		r = add_counts(squash->layers_fd, run->ids[i], info, err);
	if (r == 0)
		r = sbx_layer_digest(
			squash->tree_fd, info->tree_digest, &info->n_entries, &info->n_bytes, err);
	if (r == 0)
		r = sbx_layer_info_save(squash->layer_fd, info, err);
	return r;
}

int sbx_store_squash(int layers_fd, const struct sbx_stack *below, const struct sbx_stack *run,
	struct sbx_layer_info *info, struct sbx_err *err)
{
	SBX_CLEANUP(squash_done)
	struct squash squash = {
		.layers_fd = layers_fd,
		.info = info,
		.layer_fd = -EBADF,
		.tree_fd = -EBADF,
	};
	int r;

	if (run->n == 0 || !sbx_id_valid(info->id))
		return sbx_err_set(err, EINVAL, "squash: no layers, or no id for the new one");
	r = make_layer(&squash, err);
	if (r == 0)
		r = open_views(&squash, below, run, err);
	if (r == 0)
		r = squash_tree(&squash, err);
	if (r == 0)
		r = squash_lines(layers_fd, run, squash.view, squash.layer_fd, err);
	if (r == 0)
		r = describe(&squash, run, err);
	if (r == 0 && syncfs(layers_fd) < 0)
		r = sbx_err_set(err, errno, "sync layer %s: %m", info->id);
	if (r < 0)
		return sbx_err_wrap(err, r, "squash");
	squash.is_made = false;
	return 0;
}
