/* SPDX-License-Identifier: MIT */
/* Carries a plan out, only along the entries that it marked. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "content.h"
#include "resolve_internal.h"
#include "sbx/fs.h"

/* A directory with something to do in or below it. */
struct apply_level {
	uint32_t index;
	uint32_t kept;         /* entries that stay below it */
	struct timespec mtime; /* as the command left it */
};

struct apply {
	const struct sbx_resolve *resolve;
	struct sbx_changeset *set;
	struct sbx_trail *trail;
	struct apply_level *levels;
	size_t n;
	size_t capacity;
};

static void apply_done(struct apply *a)
{
	sbx_free_pointer(&a->levels);
	sbx_trail_free(a->trail);
}

static int push(struct apply *a, uint32_t index)
{
	struct apply_level level = {.index = index};
	int fd = sbx_trail_tree(a->trail);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	level.mtime = st.st_mtim;
	if (sbx_grow(&a->levels, &a->capacity, a->n) < 0)
		return -ENOMEM;
	a->levels[a->n++] = level;
	return 0;
}

static int drop_entry(struct apply *a, const struct sbx_entry *entry, const char *name)
{
	int fd = sbx_trail_tree(a->trail);

	if (entry->flags & SBX_ENTRY_IMPLIED)
		return 0; /* it has no whiteout */
	return fd < 0 ? fd : sbx_fs_remove_tree(fd, name);
}

static int place_merged(struct apply *a, uint32_t index, const char *name)
{
	char staged[SBX_STAGE_NAME_SIZE];
	int fd = sbx_trail_tree(a->trail);

	if (fd < 0)
		return fd;
	sbx_stage_name(index, staged);
	return renameat(a->resolve->stage_fd, staged, fd, name) < 0 ? -errno : 0;
}

/* The metadata that the plan found to be without conflict. */
static int merged_meta(struct apply *a, const char *name, struct sbx_meta *ret)
{
	struct sbx_sides sides = {0};
	struct sbx_place ours;
	int r;

	r = sbx_place_in_view(a->trail, SBX_TRAIL_BASE, name, &sides.base);
	sides.in_base = r > 0;
	if (r >= 0)
		r = sbx_place_in_view(a->trail, SBX_TRAIL_HEAD, name, &sides.head);
	sides.in_head = r > 0;
	if (r >= 0)
		r = r ? sbx_place_in_tree(a->trail, name, &ours) : -ENOENT;
	return r < 0 ? r : sbx_sides_merge_meta(&sides, &ours, ret);
}

/* A file with other names may share its inode with a layer, which never changes. */
static int unshare(struct apply *a, uint32_t index, int fd, const char *name)
{
	char staged[SBX_STAGE_NAME_SIZE];
	struct stat st;
	int r;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_nlink == 1)
		return 0;
	sbx_stage_name(index, staged);
	r = sbx_file_copy(fd, name, a->resolve->stage_fd, staged);
	return r < 0 ? r : place_merged(a, index, name);
}

static int set_file_meta(struct apply *a, uint32_t index, const char *name)
{
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int fd, r;

	r = merged_meta(a, name, &meta);
	if (r < 0)
		return r;
	fd = sbx_trail_tree(a->trail);
	r = fd < 0 ? fd : unshare(a, index, fd, name);
	return r < 0 ? r : sbx_meta_apply(fd, name, &meta);
}

static int apply_file(struct apply *a, uint32_t index, const char *name)
{
	uint16_t flags = a->set->entries[index].flags;

	if (flags & SBX_ENTRY_MERGED)
		return place_merged(a, index, name);
	return flags & SBX_ENTRY_SET_META ? set_file_meta(a, index, name) : 0;
}

/* 1: the entry is a directory to go into. */
static int apply_entry(struct apply *a, uint32_t index)
{
	const struct sbx_entry *entry = &a->set->entries[index];
	const char *name = sbx_entry_name(a->set, index);
	int r;

	if (entry->flags & SBX_ENTRY_DROP)
		return drop_entry(a, entry, name);
	if (S_ISDIR(entry->mode) && (entry->flags & SBX_ENTRY_ACTION)) {
		r = sbx_trail_enter(a->trail, name, NULL);
		if (r == 0)
			r = push(a, index);
		return r < 0 ? r : 1;
	}
	a->levels[a->n - 1].kept++;
	return apply_file(a, index, name);
}

static int clear_opaque(struct apply *a)
{
	int fd = sbx_trail_tree(a->trail);

	if (fd < 0)
		return fd;
	return fremovexattr(fd, "trusted.overlay.opaque") < 0 && errno != ENODATA ? -errno : 0;
}

/* The root's, whose sides cannot be looked up in a directory above. */
static int set_root_meta(struct apply *a, const struct timespec *mtime)
{
	SBX_CLOSE int base_fd = sbx_view_openat(a->resolve->base, "", O_RDONLY | O_DIRECTORY);
	SBX_CLOSE int head_fd = sbx_view_openat(a->resolve->head, "", O_RDONLY | O_DIRECTORY);
	struct sbx_sides sides = {.in_base = true, .in_head = true};
	struct sbx_place ours = {.dir_fd = a->resolve->tree_fd, .name = "."};
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int r;

	r = sbx_mtime_set(ours.dir_fd, ".", mtime);
	if (r < 0)
		return r;
	if (base_fd < 0 || head_fd < 0)
		return base_fd == -ENOENT || head_fd == -ENOENT ? 0 : SBX_MIN(base_fd, head_fd);
	sides.base = (struct sbx_place){.dir_fd = base_fd, .name = "."};
	sides.head = (struct sbx_place){.dir_fd = head_fd, .name = "."};
	if (fstat(base_fd, &sides.base.st) < 0 || fstat(head_fd, &sides.head.st) < 0 ||
		fstat(ours.dir_fd, &ours.st) < 0)
		return -errno;
	r = sbx_sides_merge_meta(&sides, &ours, &meta);
	return r < 0 ? r : sbx_meta_apply(ours.dir_fd, ".", &meta);
}

/* A directory that was only there for entries which are gone now. */
static bool is_left_empty(const struct sbx_entry *entry, const struct apply_level *level)
{
	return entry->change == SBX_CHANGE_NONE && !level->kept &&
	       (!(entry->flags & SBX_ENTRY_OPAQUE) || (entry->flags & SBX_ENTRY_CLEAR));
}

static int leave(struct apply *a)
{
	struct apply_level level = a->levels[--a->n];
	const struct sbx_entry *entry = &a->set->entries[level.index];
	const char *name = sbx_entry_name(a->set, level.index);
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int fd, r = 0;

	if (entry->flags & SBX_ENTRY_CLEAR)
		r = clear_opaque(a);
	if (r < 0)
		return r;
	if (!a->n)
		return set_root_meta(a, &level.mtime);
	sbx_trail_leave(a->trail);
	fd = sbx_trail_tree(a->trail);
	if (fd < 0)
		return fd;
	if (is_left_empty(entry, &level)) {
		a->set->entries[level.index].flags |= SBX_ENTRY_DROP;
		return sbx_fs_remove_tree(fd, name);
	}
	a->levels[a->n - 1].kept++;
	r = sbx_mtime_set(fd, name, &level.mtime); /* first: merging looks at it */
	if (r < 0 || !(entry->flags & SBX_ENTRY_SET_META))
		return r;
	r = merged_meta(a, name, &meta);
	if (r != 0)
		return r < 0 ? r : 0; /* ignored paths may differ: ours stays */
	fd = sbx_trail_tree(a->trail);
	return fd < 0 ? fd : sbx_meta_apply(fd, name, &meta);
}

static int apply_all(struct apply *a, uint32_t *i)
{
	int r = push(a, 0);

	for (*i = 1; r >= 0;) {
		while (r >= 0 && *i >= a->set->entries[a->levels[a->n - 1].index].end) {
			r = leave(a);
			if (!a->n)
				return r;
		}
		if (r < 0)
			return r;
		r = apply_entry(a, *i);
		*i = r > 0 ? *i + 1 : a->set->entries[*i].end;
	}
	return r;
}

int sbx_resolve_apply(const struct sbx_resolve *resolve, struct sbx_err *err)
{
	SBX_CLEANUP(apply_done) struct apply a = {.resolve = resolve, .set = resolve->set};
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	uint32_t i = 0;
	int r;

	if (!(a.set->entries[0].flags & SBX_ENTRY_ACTION))
		return 0;
	r = sbx_trail_new(resolve->tree_fd, resolve->base, resolve->head, &a.trail);
	if (r == 0)
		r = apply_all(&a, &i);
	if (r < 0 && a.trail && sbx_trail_path(a.trail, NULL, &path) == 0)
		return sbx_err_set(
			err, -r, "merge with the head below %s: %m", *path.data ? path.data : ".");
	return r < 0 ? sbx_err_set(err, -r, "merge with the head: %m") : 0;
}
