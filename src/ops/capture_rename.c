/* SPDX-License-Identifier: MIT */
/*
 * A renamed directory is, in the upper, an almost empty one with the mark trusted.overlay.redirect:
 * "name" (its old name in the same directory) or "/path" (from the root of the lower layers).
 * What it does not have itself shows through from there. Making it whole, from the leaves up:
 *
 *   1. each name of the origin that the directory neither has nor whites out is hard-linked, or
 *      made as a directory and filled in turn; directories that both have are filled
 *   2. when all below is whole, the directory gets the opaque mark, then loses its redirect
 *
 * Whiteouts stay until the redirect is gone, so that after a crash nothing deleted comes back.
 * The opaque mark may turn out to be unnecessary; that is for the walk to say.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "capture_internal.h"
#include "content.h"
#include "unshare.h"

#define REDIRECT     "trusted.overlay.redirect"
#define OPAQUE       "trusted.overlay.opaque"
#define REDIRECT_MAX 4096 /* bytes; the kernel's own default limit is 256 */
#define SCRATCH_NAME "new-directory"

/* Neither empty nor ".." components: what the kernel never writes. */
static bool is_plain_path(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && !strncmp(path, "..", 2)))
			return false;
		path += n;
		path += *path == '/';
	}
	return true;
}

static int set_origin(const char *parent_origin, const char *value, struct sbx_buf *ret)
{
	bool absolute = value[0] == '/';
	const char *path = value + absolute;
	int r = 0;

	if (!*path || !is_plain_path(path) || (!absolute && strchr(path, '/')))
		return -EBADMSG;
	sbx_buf_clear(ret);
	if (!absolute && *parent_origin) {
		r = sbx_buf_append_string(ret, parent_origin);
		if (r == 0)
			r = sbx_buf_append(ret, "/", 1);
	}
	return r < 0 ? r : sbx_buf_append_string(ret, path);
}

int sbx_capture_origin(const struct sbx_trail *trail, const char *value, struct sbx_buf *ret_origin)
{
	SBX_BUF struct sbx_buf parent = SBX_BUF_INIT;
	int r = sbx_trail_origin(trail, NULL, &parent);

	return r < 0 ? r : set_origin(parent.data, value, ret_origin);
}

static int read_mark(int dir_fd, const char *mark, struct sbx_buf *ret_value)
{
	ssize_t n;
	int r;

	sbx_buf_clear(ret_value);
	r = sbx_buf_reserve(ret_value, REDIRECT_MAX);
	if (r < 0)
		return r;
	n = fgetxattr(dir_fd, mark, ret_value->data, REDIRECT_MAX);
	if (n < 0)
		return errno == ENODATA || errno == ENOTSUP ? 0 : -errno;
	ret_value->size = (size_t)n;
	ret_value->data[n] = '\0';
	return strlen(ret_value->data) == (size_t)n ? 1 : -EBADMSG;
}

int sbx_capture_redirect(int dir_fd, struct sbx_buf *ret_value)
{
	return read_mark(dir_fd, REDIRECT, ret_value);
}

int sbx_capture_known_origin(int dir_fd, struct sbx_view *base, struct sbx_buf *ret_origin)
{
	struct sbx_node node;
	int r = read_mark(dir_fd, SBX_XATTR_ORIGIN, ret_origin);

	if (r <= 0)
		return r;
	/* only a hint for owners: of no use where the base has changed */
	r = sbx_view_lookup(base, ret_origin->data, &node);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	return r < 0 ? r : S_ISDIR(node.st.st_mode);
}

/* A directory that is being made whole. */
struct fill_frame {
	struct sbx_dirlist names; /* its own and the origin's */
	size_t next;
	struct timespec mtime;
	bool redirected;
	bool in_origin;
};

struct fill {
	struct sbx_capture *c;
	struct sbx_trail *trail;
	struct fill_frame *frames;
	size_t n;
	size_t capacity;
};

static void fill_done(struct fill *fill)
{
	for (size_t i = 0; i < fill->n; i++)
		sbx_dirlist_done(&fill->frames[i].names);
	sbx_free_pointer(&fill->frames);
	sbx_trail_free(fill->trail);
}

static int push_fill(struct fill *fill, struct fill_frame *frame)
{
	if (sbx_grow(&fill->frames, &fill->capacity, fill->n) < 0)
		return -ENOMEM;
	fill->frames[fill->n++] = *frame;
	return 0;
}

/* Begins with the directory that the trail has stepped into. */
static int begin_fill(struct fill *fill, bool redirected)
{
	struct fill_frame frame = {.redirected = redirected};
	int fd = sbx_trail_tree(fill->trail), r;
	struct sbx_view_dir *dir;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	frame.mtime = st.st_mtim;
	r = sbx_trail_view(fill->trail, SBX_TRAIL_ORIGIN, &dir);
	if (r < 0)
		return r;
	frame.in_origin = dir != NULL;
	r = sbx_dirlist_read(fd, SIZE_MAX, &frame.names);
	if (r == 0)
		r = sbx_dirlist_add_absent(&frame.names, dir);
	if (r == 0)
		r = push_fill(fill, &frame);
	if (r < 0)
		sbx_dirlist_done(&frame.names);
	return r;
}

/*
 * Makes an empty directory with the origin's metadata. It appears under its name only with them,
 * so that a crash cannot leave one with ours.
 */
static int make_dir(struct fill *fill, int origin_fd, const char *name)
{
	int tree_fd = sbx_trail_tree(fill->trail), scratch_fd = fill->c->scratch_fd, r;
	SBX_META struct sbx_meta meta = SBX_META_INIT;

	if (tree_fd < 0)
		return tree_fd;
	r = sbx_meta_read(origin_fd, name, NULL, 0, &meta);
	if (r < 0)
		return r;
	if (unlinkat(scratch_fd, SCRATCH_NAME, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	if (mkdirat(scratch_fd, SCRATCH_NAME, 0700) < 0)
		return -errno;
	r = sbx_meta_apply(scratch_fd, SCRATCH_NAME, &meta);
	if (r == 0 && renameat(scratch_fd, SCRATCH_NAME, tree_fd, name) < 0)
		r = -errno;
	return r;
}

/* A name that only the origin has. */
static int fill_absent(struct fill *fill, const char *name)
{
	int tree_fd = sbx_trail_tree(fill->trail), origin_fd, r;
	struct sbx_view_dir *dir;
	struct stat st;

	if (tree_fd < 0)
		return tree_fd;
	r = sbx_trail_view(fill->trail, SBX_TRAIL_ORIGIN, &dir);
	if (r == 0)
		r = sbx_view_dir_fd_of(dir, name, &origin_fd);
	if (r < 0)
		return r;
	if (fstatat(origin_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return sbx_file_link(origin_fd, name, tree_fd, name);
	r = make_dir(fill, origin_fd, name);
	if (r == 0)
		r = sbx_trail_enter(fill->trail, name, NULL);
	return r < 0 ? r : begin_fill(fill, false);
}

/* A directory inside that was renamed itself. The trail is in it and steps in again. */
static int fill_renamed(struct fill *fill, const char *name, const char *value)
{
	SBX_BUF struct sbx_buf origin = SBX_BUF_INIT;
	int r;

	sbx_trail_leave(fill->trail);
	r = sbx_capture_origin(fill->trail, value, &origin);
	if (r == 0)
		r = sbx_trail_enter(fill->trail, name, origin.data);
	return r < 0 ? r : begin_fill(fill, true);
}

/* A directory that the tree has: filled too, if anything shows through in it. */
static int fill_dir(struct fill *fill, const char *name)
{
	SBX_BUF struct sbx_buf value = SBX_BUF_INIT;
	int fd, opaque, r;

	r = sbx_trail_enter(fill->trail, name, NULL);
	if (r < 0)
		return r;
	fd = sbx_trail_tree(fill->trail);
	r = fd < 0 ? fd : sbx_capture_redirect(fd, &value);
	if (r != 0)
		return r < 0 ? r : fill_renamed(fill, name, value.data);
	opaque = sbx_is_opaque(fd);
	if (opaque < 0)
		return opaque;
	if (opaque || !fill->frames[fill->n - 1].in_origin) {
		sbx_trail_leave(fill->trail); /* all that it has is its own */
		return 0;
	}
	return begin_fill(fill, false);
}

static int fill_next(struct fill *fill)
{
	struct fill_frame *frame = &fill->frames[fill->n - 1];
	const struct sbx_dirlist_item *item = &frame->names.items[frame->next];
	const char *name = sbx_dirlist_name(&frame->names, frame->next);
	struct stat st;
	int fd;

	frame->next++;
	if (item->absent)
		return fill_absent(fill, name);
	if (item->type != DT_UNKNOWN)
		return item->type == DT_DIR ? fill_dir(fill, name) : 0;
	fd = sbx_trail_tree(fill->trail);
	if (fd < 0 || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fd < 0 ? fd : -errno;
	return S_ISDIR(st.st_mode) ? fill_dir(fill, name) : 0;
}

/* Remembers where the directory came from. A path too long for the file system is no loss. */
static int note_origin(struct fill *fill, int fd)
{
	SBX_BUF struct sbx_buf origin = SBX_BUF_INIT;
	int r = sbx_trail_origin(fill->trail, NULL, &origin);

	if (r < 0)
		return r;
	if (fsetxattr(fd, SBX_XATTR_ORIGIN, origin.data, origin.size, 0) < 0 && errno != ENOSPC &&
		errno != E2BIG)
		return -errno;
	return 0;
}

static int end_redirect(struct fill *fill, int fd)
{
	int r = note_origin(fill, fd);

	if (r < 0)
		return r;
	if (fsetxattr(fd, OPAQUE, "y", 1, 0) < 0 || fremovexattr(fd, REDIRECT) < 0)
		return -errno;
	return 0;
}

/* The directory is whole: what made it look so may go. */
static int end_fill(struct fill *fill)
{
	struct fill_frame frame = fill->frames[--fill->n];
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, frame.mtime};
	int fd = sbx_trail_tree(fill->trail);

	sbx_dirlist_done(&frame.names);
	if (fd < 0)
		return fd;
	if (futimens(fd, times) < 0)
		return -errno;
	if (frame.redirected) {
		int r = end_redirect(fill, fd);

		if (r < 0)
			return r;
	}
	if (fill->n)
		sbx_trail_leave(fill->trail);
	return 0;
}

/* Follows the capture's own way down with a trail of its own, the last step to the origin. */
static int follow(struct fill *fill, const char *origin)
{
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	char *name, *rest;
	int r;

	r = sbx_trail_path(fill->c->trail, NULL, &path);
	if (r < 0)
		return r;
	name = path.data;
	while ((rest = strchr(name, '/'))) {
		*rest = '\0';
		r = sbx_trail_enter(fill->trail, name, NULL);
		if (r < 0)
			return r;
		name = rest + 1;
	}
	return sbx_trail_enter(fill->trail, name, origin);
}

static int fail(struct fill *fill, int r)
{
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;

	if (sbx_trail_path(fill->trail, NULL, &path) < 0)
		return sbx_err_set(fill->c->err, -r, "make a renamed directory whole: %m");
	return sbx_err_set(fill->c->err, -r, "make the renamed directory %s whole: %m", path.data);
}

int sbx_capture_make_whole(struct sbx_capture *c, const char *origin)
{
	SBX_CLEANUP(fill_done) struct fill fill = {.c = c};
	int r;

	r = sbx_unshare_mark(c->scratch_fd);
	if (r == 0)
		r = sbx_trail_new(c->tree_fd, c->base, NULL, &fill.trail);
	if (r < 0)
		return sbx_err_set(c->err, -r, "make a renamed directory whole: %m");
	r = follow(&fill, origin);
	if (r == 0)
		r = begin_fill(&fill, true);
	while (r == 0 && fill.n) {
		const struct fill_frame *frame = &fill.frames[fill.n - 1];

		r = frame->next < frame->names.n ? fill_next(&fill) : end_fill(&fill);
	}
	return r < 0 ? fail(&fill, r) : 0;
}
