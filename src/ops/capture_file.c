/* SPDX-License-Identifier: MIT */
/* Entries that are no directories: whiteouts, files, links, FIFOs, and what is never published. */
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "capture_internal.h"

#define XATTR_WHITEOUT "trusted.overlay.whiteout"

/* Takes a name out of the tree. */
static int remove_name(struct sbx_capture *c, const char *name)
{
	int fd;

	if (c->read_only)
		return 0;
	fd = sbx_trail_tree(c->trail);
	if (fd < 0 || unlinkat(fd, name, 0) < 0)
		return sbx_capture_fail(c, fd < 0 ? fd : -errno, "remove", name);
	sbx_capture_top(c)->dirty = true;
	return 0;
}

static int add_entry(struct sbx_capture *c, const char *name, struct sbx_entry *entry)
{
	uint32_t index;

	return sbx_changeset_add(c->set, sbx_capture_top(c)->index, name, entry, &index, c->err);
}

static int add_deletion(struct sbx_capture *c, const char *name, const struct sbx_node *base,
	enum sbx_entry_flags flags)
{
	struct sbx_entry entry = {.change = SBX_CHANGE_DELETE, .flags = (uint16_t)flags};

	if (sbx_capture_is_ignored(c, name, S_ISDIR(base->st.st_mode)))
		entry.flags |= SBX_ENTRY_IGNORED;
	return add_entry(c, name, &entry);
}

int sbx_capture_absent(struct sbx_capture *c, const char *name)
{
	struct sbx_node base;
	int r = sbx_trail_lookup(c->trail, SBX_TRAIL_BASE, name, &base);

	if (r < 0)
		return sbx_capture_fail(c, r, "look in the base for", name);
	return r ? add_deletion(c, name, &base, SBX_ENTRY_IMPLIED) : 0;
}

/*
 * A whiteout is a deletion where the base shows the name. Where it does not (made and deleted in
 * one session, the old place of a renamed thing in a renamed directory), it says nothing.
 */
static int capture_whiteout(struct sbx_capture *c, const char *name)
{
	struct sbx_node base;
	int r = sbx_trail_lookup(c->trail, SBX_TRAIL_BASE, name, &base);

	if (r < 0)
		return sbx_capture_fail(c, r, "look in the base for", name);
	if (sbx_capture_top(c)->hidden) {
		int removed = remove_name(c, name);

		return removed < 0 || !r ? removed
					 : add_deletion(c, name, &base, SBX_ENTRY_IMPLIED);
	}
	return r ? add_deletion(c, name, &base, 0) : remove_name(c, name);
}

static int make_whiteout(struct sbx_capture *c, const char *name)
{
	int fd;

	if (c->read_only)
		return 0;
	fd = sbx_trail_tree(c->trail);
	if (fd < 0 || mknodat(fd, name, S_IFCHR, makedev(0, 0)) < 0)
		return sbx_capture_fail(c, fd < 0 ? fd : -errno, "mark as deleted", name);
	return 0;
}

/* Sockets and devices go, with a note; what they took the place of is gone too. */
static int capture_special(struct sbx_capture *c, const char *name, const struct stat *st)
{
	struct sbx_node base;
	int r;

	r = sbx_trail_path(c->trail, name, &c->path);
	if (r == 0)
		r = sbx_changeset_dropped(c->set, c->path.data, st->st_mode);
	if (r < 0)
		return sbx_capture_fail(c, r, "note", name);
	r = remove_name(c, name);
	if (r < 0)
		return r;
	r = sbx_trail_lookup(c->trail, SBX_TRAIL_BASE, name, &base);
	if (r < 0)
		return sbx_capture_fail(c, r, "look in the base for", name);
	if (r == 0 || (base.st.st_mode & S_IFMT) == (st->st_mode & S_IFMT))
		return 0;
	if (sbx_capture_top(c)->hidden)
		return add_deletion(c, name, &base, SBX_ENTRY_IMPLIED);
	r = make_whiteout(c, name);
	return r < 0 ? r : add_deletion(c, name, &base, 0);
}

/* Whether the file is the very inode that a renamed directory brought along: 1, 0 or -errno. */
static int is_brought_along(struct sbx_capture *c, const char *name, const struct stat *st)
{
	struct sbx_node origin;
	int r;

	if (!sbx_capture_top(c)->renamed)
		return 0;
	r = sbx_trail_lookup(c->trail, SBX_TRAIL_ORIGIN, name, &origin);
	return r <= 0 ? r : origin.st.st_ino == st->st_ino && origin.st.st_dev == st->st_dev;
}

static enum sbx_change change_of(int differences)
{
	if (differences & SBX_DIFFERS_CONTENT)
		return SBX_CHANGE_MODIFY;
	return differences ? SBX_CHANGE_METADATA : SBX_CHANGE_NONE;
}

/* Both sides have the same kind of thing: what of it changed? */
static int compare_file(struct sbx_capture *c, const struct sbx_place *ours,
	const struct sbx_place *base, struct sbx_entry *entry)
{
	SBX_META struct sbx_meta stripped = SBX_META_INIT;
	int r = 0;

	if (!c->read_only && !(entry->flags & SBX_ENTRY_LINKED))
		r = sbx_meta_read(ours->dir_fd, ours->name, &ours->st, SBX_META_STRIP, &stripped);
	if (r == 0)
		r = sbx_place_compare(ours, base);
	if (r < 0)
		return r;
	entry->flags |= r & SBX_DIFFERS_CONTENT ? SBX_ENTRY_CONTENT : 0;
	entry->flags |= r & SBX_DIFFERS_META ? SBX_ENTRY_META : 0;
	entry->flags |= r & SBX_DIFFERS_MTIME ? SBX_ENTRY_MTIME : 0;
	entry->change = (uint16_t)change_of(r);
	return 0;
}

/*
 * Marks of overlayfs, and forgeries, on files that no comparison looks at. Those of new regular
 * files go when their content is read (ownership.c): asking each by name would double the walk.
 */
static int strip_new(struct sbx_capture *c, const char *name, const struct stat *st)
{
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int tree_fd;

	if (c->read_only || S_ISREG(st->st_mode))
		return 0;
	tree_fd = sbx_trail_tree(c->trail);
	return tree_fd < 0 ? tree_fd : sbx_meta_read(tree_fd, name, st, SBX_META_STRIP, &meta);
}

static int judge_file(
	struct sbx_capture *c, const char *name, const struct stat *st, struct sbx_entry *entry)
{
	struct sbx_place ours = {.dir_fd = sbx_trail_tree(c->trail), .name = name, .st = *st};
	struct sbx_place base;
	int r;

	r = ours.dir_fd < 0 ? ours.dir_fd : is_brought_along(c, name, st);
	if (r < 0)
		return r;
	if (r > 0)
		entry->flags |= SBX_ENTRY_LINKED;
	r = sbx_place_in_view(c->trail, SBX_TRAIL_BASE, name, &base);
	if (r < 0)
		return r;
	if (r > 0 && (base.st.st_mode & S_IFMT) == (st->st_mode & S_IFMT))
		return compare_file(c, &ours, &base, entry);
	entry->change = r > 0 ? SBX_CHANGE_REPLACE : SBX_CHANGE_ADD;
	entry->flags |= SBX_ENTRY_CONTENT | SBX_ENTRY_META;
	/* a layer's own inode is clean, and not ours to write to */
	return entry->flags & SBX_ENTRY_LINKED ? 0 : strip_new(c, name, st);
}

static int capture_plain(struct sbx_capture *c, const char *name, const struct stat *st)
{
	struct sbx_entry entry = {.mode = st->st_mode};
	int r = judge_file(c, name, st, &entry);

	if (r == -ENOENT && c->read_only)
		return 0; /* gone meanwhile */
	if (r < 0)
		return sbx_capture_fail(c, r, "look at", name);
	/* another name of the inode may be a real change; links in one layer stay links */
	if (entry.change == SBX_CHANGE_NONE && st->st_nlink == 1 && !sbx_capture_top(c)->hidden)
		return remove_name(c, name);
	if (sbx_capture_is_ignored(c, name, false))
		entry.flags |= SBX_ENTRY_IGNORED;
	return add_entry(c, name, &entry);
}

/* Whether an empty file stands for a whiteout, as layers of other tools have it: 1, 0 or -errno. */
static int is_xattr_whiteout(struct sbx_capture *c, const char *name, const struct stat *st)
{
	ssize_t n;
	int fd;

	if (!sbx_capture_top(c)->xattr_whiteouts || !S_ISREG(st->st_mode) || st->st_size)
		return 0;
	fd = sbx_trail_tree(c->trail);
	n = fd < 0 ? fd : sbx_xattr_get(fd, name, XATTR_WHITEOUT, NULL, 0);
	return n == -ENODATA || n == -ENOTSUP ? 0 : n < 0 ? (int)n : 1;
}

/* Puts a real whiteout in the place of one made of attributes. */
static int convert_whiteout(struct sbx_capture *c, const char *name)
{
	int r = remove_name(c, name);

	if (r == 0)
		r = make_whiteout(c, name);
	return r < 0 ? r : capture_whiteout(c, name);
}

int sbx_capture_file(struct sbx_capture *c, const char *name)
{
	int fd = sbx_trail_tree(c->trail), r;
	struct stat st;

	r = fd < 0 ? fd : fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	if (r == -ENOENT && c->read_only)
		return 0; /* gone meanwhile */
	if (r == 0 && st.st_dev != c->dev)
		r = -EXDEV;
	if (r == 0)
		r = is_xattr_whiteout(c, name, &st);
	if (r < 0)
		return sbx_capture_fail(c, r, "look at", name);
	if (r > 0)
		return convert_whiteout(c, name);
	if (sbx_is_whiteout(&st))
		return capture_whiteout(c, name);
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) || S_ISFIFO(st.st_mode))
		return capture_plain(c, name, &st);
	return capture_special(c, name, &st);
}
