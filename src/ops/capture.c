/* SPDX-License-Identifier: MIT */
/*
 * The walk: a stack of directories, each with the list of its names, so that neither depth nor
 * width costs C stack or descriptors (trail.h). Directories are judged when the walk leaves them,
 * for only then it is known whether anything in them counts.
 */
#include "capture.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "capture_internal.h"
#include "sbx/fs.h"

int sbx_capture_fail(struct sbx_capture *c, int r, const char *what, const char *name)
{
	if (sbx_trail_path(c->trail, name, &c->path) < 0)
		return sbx_err_set(c->err, -r, "%s: %m", what);
	return sbx_err_set(c->err, -r, "%s %s: %m", what, *c->path.data ? c->path.data : ".");
}

static void frame_done(struct sbx_capture_frame *frame)
{
	sbx_dirlist_done(&frame->names);
}

static void capture_done(struct sbx_capture *c)
{
	for (size_t i = 0; i < c->n_frames; i++)
		frame_done(&c->frames[i]);
	sbx_free_pointer(&c->frames);
	sbx_trail_free(c->trail);
	sbx_buf_done(&c->path);
}

static int push_frame(struct sbx_capture *c, const struct sbx_capture_frame *frame)
{
	if (sbx_grow(&c->frames, &c->capacity, c->n_frames) < 0)
		return -ENOMEM;
	c->frames[c->n_frames++] = *frame;
	return 0;
}

bool sbx_capture_is_ignored(struct sbx_capture *c, const char *name, bool is_dir)
{
	if (c->n_frames && sbx_capture_top(c)->ignored)
		return true;
	if (!c->has_ignore || sbx_trail_path(c->trail, name, &c->path) < 0)
		return false; /* not ignored: checked for conflicts, which is the safe side */
	return c->path.size <= SBX_PATH_MAX &&
	       sbx_ignore_match(c->set->ignore, c->path.data, is_dir);
}

/* The first byte of the opaque mark: 'y', 'x', another, or 0 for none. */
static int opaque_mark(int dir_fd)
{
	char value[2];
	ssize_t n = fgetxattr(dir_fd, "trusted.overlay.opaque", value, sizeof(value));

	if (n >= 0)
		return n == 1 ? value[0] : 0;
	return errno == ENODATA || errno == ENOTSUP || errno == ERANGE ? 0 : -errno;
}

/* Whether the base's directory at this path shows anything at all. */
static int base_shows_something(struct sbx_capture *c)
{
	SBX_NAMES char **names = NULL;
	struct sbx_view_dir *dir;
	size_t n = 0;
	int r;

	r = sbx_trail_view(c->trail, SBX_TRAIL_BASE, &dir);
	if (r == 0 && dir)
		r = sbx_view_dir_list(dir, &names, &n);
	return r < 0 ? r : n > 0;
}

/* Whether the present directory, which may carry a mark, must keep it. */
static int judge_opaque(struct sbx_capture *c, int fd, struct sbx_capture_frame *frame)
{
	int mark = opaque_mark(fd), r;

	if (mark < 0)
		return mark;
	frame->xattr_whiteouts = mark == 'x';
	if (mark == 'y' && frame->in_base && !frame->hidden) {
		r = base_shows_something(c);
		if (r < 0)
			return r;
		frame->hidden = r;
		if (r)
			return 1;
	}
	if (mark && !c->read_only && fremovexattr(fd, "trusted.overlay.opaque") < 0)
		return -errno;
	return 0;
}

/* Steps into the present directory again, with the origin that its mark (or ours) tells. */
static int follow_origin(struct sbx_capture *c, const char *name, const char *value, bool known)
{
	SBX_BUF struct sbx_buf origin = SBX_BUF_INIT;
	int r;

	/* a relative mark counts from the origin of the directory above */
	sbx_trail_leave(c->trail);
	r = known ? sbx_buf_append_string(&origin, value)
		  : sbx_capture_origin(c->trail, value, &origin);
	if (sbx_trail_enter(c->trail, name, r == 0 ? origin.data : NULL) < 0)
		return -ENOMEM;
	if (r == 0 && !known && !c->read_only)
		r = sbx_capture_make_whole(c, origin.data);
	if (r == 0)
		r = sbx_trail_path(c->trail, NULL, &c->path);
	if (r == 0)
		r = sbx_changeset_renamed(c->set, c->path.data, origin.data);
	return r < 0 ? r : 1;
}

/* Whether the present directory was renamed; makes it whole if it is not yet. */
static int judge_redirect(struct sbx_capture *c, int fd, const char *name)
{
	SBX_BUF struct sbx_buf value = SBX_BUF_INIT;
	int r = sbx_capture_redirect(fd, &value);

	if (r != 0)
		return r < 0 ? r : follow_origin(c, name, value.data, false);
	r = sbx_capture_known_origin(fd, c->base, &value);
	return r <= 0 ? r : follow_origin(c, name, value.data, true);
}

/* Compares the directory's own metadata with that of the base's. */
static int judge_dir_meta(
	const struct sbx_meta *base, const struct sbx_meta *ours, struct sbx_entry *entry)
{
	if (sbx_meta_equal(base, ours))
		return 0;
	entry->flags |= SBX_ENTRY_META;
	entry->change = SBX_CHANGE_METADATA;
	return 0;
}

static int list_names(struct sbx_capture *c, int fd, struct sbx_capture_frame *frame)
{
	struct sbx_view_dir *dir;
	int r;

	r = sbx_dirlist_read(fd, SIZE_MAX, &frame->names);
	if (r < 0 || !frame->hidden || !frame->in_base)
		return r;
	r = sbx_trail_view(c->trail, SBX_TRAIL_BASE, &dir);
	return r < 0 ? r : sbx_dirlist_add_absent(&frame->names, dir);
}

/* Makes the frame and the entry of the directory that the trail has stepped into. */
static int begin_dir(struct sbx_capture *c, const char *name, struct sbx_entry *entry,
	struct sbx_capture_frame *frame)
{
	uint32_t parent = c->n_frames ? sbx_capture_top(c)->index : 0;
	int fd, r;

	r = sbx_changeset_add(c->set, parent, name, entry, &frame->index, c->err);
	if (r < 0)
		return r;
	/* asked for again: a rename may have sent the trail elsewhere meanwhile */
	fd = sbx_trail_tree(c->trail);
	r = fd < 0 ? fd : list_names(c, fd, frame);
	if (r == 0 && frame->in_base && !frame->ignored)
		r = sbx_ignore_load(c->set->ignore, c->trail, &c->has_ignore);
	if (r == 0)
		r = push_frame(c, frame);
	if (r < 0) {
		frame_done(frame);
		return sbx_capture_fail(c, r, "list", NULL);
	}
	return 0;
}

static int enter_root(struct sbx_capture *c)
{
	SBX_META struct sbx_meta ours = SBX_META_INIT;
	SBX_META struct sbx_meta base = SBX_META_INIT;
	struct sbx_capture_frame frame = {.in_base = true};
	struct sbx_entry entry = {0};
	SBX_CLOSE int base_fd = -EBADF;
	int r;

	r = sbx_meta_read(c->tree_fd, ".", NULL, c->read_only ? 0 : SBX_META_STRIP, &ours);
	if (r == 0 && !c->read_only)
		/* overlayfs merges roots whatever they say */
		r = sbx_xattr_remove(c->tree_fd, ".", "trusted.overlay.opaque");
	base_fd = r < 0 ? r : sbx_view_openat(c->base, "", O_RDONLY | O_DIRECTORY);
	if (base_fd >= 0)
		r = sbx_meta_read(base_fd, ".", NULL, 0, &base);
	else if (r == 0 && base_fd != -ENOENT)
		r = base_fd;
	if (r < 0)
		return sbx_capture_fail(c, r, "look at", NULL);
	entry.mode = ours.st.st_mode;
	frame.mtime = ours.st.st_mtim;
	if (base_fd >= 0)
		(void)judge_dir_meta(&base, &ours, &entry);
	return begin_dir(c, "", &entry, &frame);
}

/* What the present directory of the tree is against the base; the trail is inside it. */
static int judge_dir(struct sbx_capture *c, const char *name, const struct sbx_meta *base,
	bool in_base, bool base_has_other, struct sbx_entry *entry, struct sbx_capture_frame *frame)
{
	SBX_META struct sbx_meta ours = SBX_META_INIT;
	int fd = sbx_trail_tree(c->trail), r;

	if (fd < 0)
		return fd;
	/* before anything changes it: making it whole does */
	r = sbx_meta_read(fd, ".", NULL, c->read_only ? 0 : SBX_META_STRIP, &ours);
	if (r < 0)
		return r;
	entry->mode = ours.st.st_mode;
	frame->mtime = ours.st.st_mtim;
	frame->in_base = in_base;
	r = judge_redirect(c, fd, name);
	if (r < 0)
		return r;
	if (r > 0) {
		frame->renamed = true;
		entry->flags |= SBX_ENTRY_RENAMED;
	}
	fd = sbx_trail_tree(c->trail);
	r = fd < 0 ? fd : judge_opaque(c, fd, frame);
	if (r < 0)
		return r;
	if (r > 0)
		entry->flags |= SBX_ENTRY_OPAQUE;
	if (in_base)
		return judge_dir_meta(base, &ours, entry);
	entry->change = base_has_other ? SBX_CHANGE_REPLACE : SBX_CHANGE_ADD;
	entry->flags |= SBX_ENTRY_CONTENT | SBX_ENTRY_META;
	return 0;
}

static int enter_dir(struct sbx_capture *c, const char *name)
{
	const struct sbx_capture_frame *parent = sbx_capture_top(c);
	struct sbx_capture_frame frame = {.hidden = parent->hidden,
		.renamed = parent->renamed,
		.ignored = sbx_capture_is_ignored(c, name, true)};
	SBX_META struct sbx_meta base = SBX_META_INIT;
	struct sbx_entry entry = {.flags = frame.ignored ? SBX_ENTRY_IGNORED : 0};
	struct sbx_place place;
	bool in_base;
	int r, has;

	has = sbx_place_in_view(c->trail, SBX_TRAIL_BASE, name, &place);
	in_base = has > 0 && S_ISDIR(place.st.st_mode);
	r = has < 0 ? has : 0;
	if (in_base)
		r = sbx_meta_read(place.dir_fd, name, &place.st, 0, &base);
	if (r == 0)
		r = sbx_trail_enter(c->trail, name, NULL);
	if (r < 0)
		return sbx_capture_fail(c, r, "look at", name);
	r = judge_dir(c, name, &base, in_base, has > 0 && !in_base, &entry, &frame);
	if (r == -ENOENT && c->read_only) {
		sbx_trail_leave(c->trail); /* gone meanwhile */
		return 0;
	}
	if (r < 0 && c->err->code)
		return r; /* told already, by the place that knows more */
	if (r < 0)
		return sbx_capture_fail(c, r, "look at", NULL);
	return begin_dir(c, name, &entry, &frame);
}

/* Cleaning changed the directory's mtime, which the command had made what it was. */
static int restore_mtime(struct sbx_capture *c, const struct sbx_capture_frame *frame)
{
	int fd;

	if (!frame->dirty)
		return 0;
	fd = sbx_trail_tree(c->trail);
	return fd < 0 ? fd : sbx_mtime_set(fd, ".", &frame->mtime);
}

/* A directory without anything that counts, which the base has just so. */
static bool is_empty_copy_up(const struct sbx_capture *c, const struct sbx_capture_frame *frame)
{
	const struct sbx_entry *entry = &c->set->entries[frame->index];

	return frame->index != 0 && entry->change == SBX_CHANGE_NONE &&
	       !(entry->flags & SBX_ENTRY_OPAQUE) && c->set->n == frame->index + 1u;
}

/* Steps back up; a directory that turned out to say nothing is taken out of the tree. */
static int leave_dir(struct sbx_capture *c)
{
	struct sbx_capture_frame frame = c->frames[--c->n_frames];
	SBX_BUF struct sbx_buf name = SBX_BUF_INIT;
	bool remove = is_empty_copy_up(c, &frame) && !sbx_capture_top(c)->hidden;
	int fd, r = 0;

	frame_done(&frame);
	c->set->entries[frame.index].end = (uint32_t)c->set->n;
	if (!remove)
		r = restore_mtime(c, &frame);
	if (r < 0)
		return sbx_capture_fail(c, r, "set times of", NULL);
	if (frame.index == 0)
		return 0;
	sbx_trail_leave(c->trail);
	if (!remove)
		return 0;
	r = sbx_buf_append_string(&name, sbx_entry_name(c->set, frame.index));
	if (r < 0)
		return sbx_capture_fail(c, r, "leave", NULL);
	sbx_changeset_pop(c->set);
	if (c->read_only)
		return 0;
	fd = sbx_trail_tree(c->trail);
	if (fd < 0 || unlinkat(fd, name.data, AT_REMOVEDIR) < 0)
		return sbx_capture_fail(c, fd < 0 ? fd : -errno, "remove", name.data);
	sbx_capture_top(c)->dirty = true;
	return 0;
}

static int capture_next(struct sbx_capture *c)
{
	struct sbx_capture_frame *frame = sbx_capture_top(c);
	const struct sbx_dirlist_item *item = &frame->names.items[frame->next];
	/* the list moves when the stack of frames grows; the names in it do not */
	const char *name = sbx_dirlist_name(&frame->names, frame->next);
	struct stat st;
	int fd;

	frame->next++;
	if (item->absent)
		return sbx_capture_absent(c, name);
	if (item->type == DT_DIR)
		return enter_dir(c, name);
	if (item->type != DT_UNKNOWN)
		return sbx_capture_file(c, name);
	fd = sbx_trail_tree(c->trail);
	if (fd < 0 || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sbx_capture_fail(c, fd < 0 ? fd : -errno, "look at", name);
	return S_ISDIR(st.st_mode) ? enter_dir(c, name) : sbx_capture_file(c, name);
}

static int walk(struct sbx_capture *c)
{
	int r = enter_root(c);

	while (r == 0 && c->n_frames) {
		const struct sbx_capture_frame *frame = sbx_capture_top(c);

		r = frame->next < frame->names.n ? capture_next(c) : leave_dir(c);
	}
	return r;
}

int sbx_capture(int tree_fd, int scratch_fd, struct sbx_view *base, enum sbx_capture_flags flags,
	struct sbx_changeset *ret, struct sbx_err *err)
{
	SBX_CHANGESET struct sbx_changeset set = SBX_CHANGESET_INIT;
	struct sbx_err local = SBX_ERR_INIT;
	SBX_CLEANUP(capture_done)
	struct sbx_capture c = {.tree_fd = tree_fd,
		.scratch_fd = scratch_fd,
		.base = base,
		.read_only = flags & SBX_CAPTURE_READ_ONLY,
		.set = &set,
		.err = err ? err : &local};
	struct stat st;
	int r;

	if (fstat(tree_fd, &st) < 0)
		return sbx_err_set(err, errno, "look at the upper directory: %m");
	c.dev = st.st_dev;
	c.err->code = 0;
	r = sbx_trail_new(tree_fd, base, NULL, &c.trail);
	if (r == 0)
		r = sbx_ignore_new(&set.ignore);
	if (r < 0)
		return sbx_err_set(err, -r, "capture: %m");
	r = walk(&c);
	if (r < 0)
		return r;
	*ret = set;
	set = SBX_CHANGESET_INIT;
	return 0;
}
