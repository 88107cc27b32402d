/* SPDX-License-Identifier: MIT */
/*
 * The tree is built top down. Directories on the way are given the metadata that the head shows,
 * since a merged directory has that of its topmost layer; each one's mtime is set when its only
 * entry has been made.
 */
#include "layer_tree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "meta.h"
#include "sbx/loop.h"
#include "sbx/store.h"

#define NEW_FILE_MODE (S_IFREG | 0644)
#define NEW_DIR_MODE  (S_IFDIR | 0755)

/* One directory on the way down: in the head, and in the layer's tree. */
struct level {
	struct sbx_view_dir *dir; /* NULL: the head has none */
	int tree_fd;
	struct sbx_meta meta;
};
#define LEVEL_INIT ((struct level){.tree_fd = -EBADF})

static void level_done(struct level *level)
{
	sbx_view_dir_free(level->dir);
	sbx_fd_close(&level->tree_fd);
	sbx_meta_done(&level->meta);
	*level = LEVEL_INIT;
}

static struct timespec now(void)
{
	uint64_t ns = sbx_realtime_ns();

	return (struct timespec){
		.tv_sec = (time_t)(ns / SBX_NSEC_PER_SEC),
		.tv_nsec = (long)(ns % SBX_NSEC_PER_SEC),
	};
}

/* What something new in parent is given, by the rules of mkdir(2) and open(2). */
static void new_meta(const struct sbx_meta *parent, mode_t mode, struct sbx_meta *ret)
{
	*ret = SBX_META_INIT;
	ret->st.st_mode = mode;
	ret->st.st_mtim = now();
	if (parent->st.st_mode & S_ISGID) {
		ret->st.st_gid = parent->st.st_gid;
		if (S_ISDIR(mode))
			ret->st.st_mode |= S_ISGID;
	}
}

/* Metadata of name in the head's directory: 1, 0 when there is nothing of that name, -errno. */
static int head_meta(struct sbx_view_dir *dir, const char *name, struct sbx_meta *ret)
{
	struct sbx_node node;
	int fd = -EBADF;
	int r;

	r = dir ? sbx_view_dir_lookup(dir, name, &node) : -ENOENT;
	if (r == 0)
		r = sbx_view_dir_fd_of(dir, name, &fd);
	if (r == 0)
		r = sbx_meta_read(fd, name, &node.st, 0, ret);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return 1;
}

static int refuse_parent(const char *path, size_t size, mode_t mode, struct sbx_err *err)
{
	return sbx_err_kind(err, SBX_KIND_INVALID, ENOTDIR,
		"'%.*s' in the path '%s' is %s, not a directory%s", (int)size, path, path,
		sbx_fs_kind_name(mode), S_ISLNK(mode) ? "; give the path that it leads to" : "");
}

/* A new entry has moved the directory's mtime: back to what the head shows. */
static int settle_mtime(const struct level *level)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, level->meta.st.st_mtim};

	return futimens(level->tree_fd, times) < 0 ? -errno : 0;
}

static int make_dir(const struct level *parent, const char *name, struct level *child)
{
	int r;

	if (mkdirat(parent->tree_fd, name, 0700) < 0)
		return -errno;
	r = sbx_meta_apply(parent->tree_fd, name, &child->meta);
	if (r == 0)
		r = settle_mtime(parent);
	if (r < 0)
		return r;
	child->tree_fd =
		openat(parent->tree_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return child->tree_fd < 0 ? -errno : 0;
}

/* Goes down into the component of path that ends at size bytes. */
static int descend(
	struct level *level, const char *path, const char *name, size_t size, struct sbx_err *err)
{
	SBX_CLEANUP(level_done) struct level child = LEVEL_INIT;
	int r;

	r = head_meta(level->dir, name, &child.meta);
	if (r == 1 && !S_ISDIR(child.meta.st.st_mode))
		return refuse_parent(path, size, child.meta.st.st_mode, err);
	if (r == 0)
		new_meta(&level->meta, NEW_DIR_MODE, &child.meta);
	if (r == 1)
		r = sbx_view_dir_enter(level->dir, name, &child.dir);
	if (r == 0)
		r = make_dir(level, name, &child);
	if (r < 0)
		return sbx_err_set(err, -r, "make directory '%.*s': %m", (int)size, path);
	level_done(level);
	*level = child;
	child = LEVEL_INIT;
	return 0;
}

/* The root's metadata is that of the topmost layer, which always has a root. */
static int root_meta(const struct sbx_job *job, struct sbx_meta *ret, struct sbx_err *err)
{
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;
	SBX_CLOSE int layer_fd = -EBADF;
	int r;

	r = sbx_job_stack(job, "head", &stack, err);
	if (r < 0)
		return r;
	if (!stack.n) {
		ret->st.st_mode = NEW_DIR_MODE;
		ret->st.st_mtim = now();
		return 0;
	}
	layer_fd = openat(job->context->layers_fd, stack.ids[stack.n - 1],
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = layer_fd < 0 ? -errno : sbx_meta_read(layer_fd, SBX_LAYER_TREE, NULL, 0, ret);
	if (r < 0)
		return sbx_err_set(err, -r, "look at layer %s: %m", stack.ids[stack.n - 1]);
	return 0;
}

static int make_root(const struct sbx_job *job, struct sbx_view *view, int layer_fd, int tree_fd,
	struct level *ret, struct sbx_err *err)
{
	int r;

	r = root_meta(job, &ret->meta, err);
	if (r < 0)
		return r;
	r = sbx_view_dir_open(view, "", &ret->dir);
	if (r == 0)
		r = sbx_meta_apply(layer_fd, SBX_LAYER_TREE, &ret->meta);
	if (r == 0) {
		ret->tree_fd = fcntl(tree_fd, F_DUPFD_CLOEXEC, 0);
		r = ret->tree_fd < 0 ? -errno : 0;
	}
	return r < 0 ? sbx_err_set(err, -r, "make the root of the layer: %m") : 0;
}

/* Makes the file itself, with the old one's metadata but its mtime. */
static int make_file(const struct level *level, const char *name, const void *data, size_t size)
{
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	SBX_CLOSE int fd = -EBADF;
	int r;

	r = head_meta(level->dir, name, &meta);
	if (r < 0)
		return r;
	if (r == 0)
		new_meta(&level->meta, NEW_FILE_MODE, &meta);
	meta.st.st_mtim = now();
	fd = openat(
		level->tree_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = sbx_fs_write_all(fd, data, size);
	if (r == 0)
		r = sbx_meta_apply(level->tree_fd, name, &meta);
	return r < 0 ? r : settle_mtime(level);
}

int sbx_layer_tree_make(const struct sbx_job *job, const struct sbx_target *target, int layer_fd,
	int tree_fd, const void *data, size_t size, struct sbx_err *err)
{
	SBX_CLEANUP(level_done) struct level level = LEVEL_INIT;
	const char *path = target->path, *rest = path;
	int r;

	r = make_root(job, target->view, layer_fd, tree_fd, &level, err);
	if (r < 0)
		return r;
	for (const char *slash; (slash = strchr(rest, '/')); rest = slash + 1) {
		char name[NAME_MAX + 1];

		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - rest), rest);
		r = descend(&level, path, name, (size_t)(slash - path), err);
		if (r < 0)
			return r;
	}
	r = make_file(&level, rest, data, size);
	return r < 0 ? sbx_err_set(err, -r, "write '%s': %m", path) : 0;
}
