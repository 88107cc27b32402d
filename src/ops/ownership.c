/* SPDX-License-Identifier: MIT */
#include "ownership.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "changeset_walk.h"
#include "content.h"
#include "meta.h"
#include "own_batch.h"
#include "own_gone.h"
#include "place.h"
#include "sbx/fs.h"
#include "sbx/lines.h"
#include "sbx/store.h"

struct work {
	const struct sbx_ownership *o;
	struct sbx_own_batch *batch;
	struct sbx_own_gone gone;
	bool has_removals; /* lines may have come from somewhere */
	struct sbx_buf path;
	struct sbx_buf content;
	struct sbx_tally_item item; /* the entry, for the tally */
	struct sbx_digest digest;   /* its content's, if item says so */
	uint64_t n_deleted;
	uint64_t deleted_bytes;
};

static void work_done(struct work *w)
{
	sbx_own_batch_free(w->batch);
	sbx_own_gone_done(&w->gone);
	sbx_buf_done(&w->path);
	sbx_buf_done(&w->content);
}

/* Whether anything in the changeset can give lines to something else in it. */
static bool has_removals(const struct sbx_changeset *set)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct sbx_entry *entry = &set->entries[i];

		if (entry->flags & (SBX_ENTRY_RENAMED | SBX_ENTRY_MERGED))
			return true;
		if (entry->change == SBX_CHANGE_MODIFY || entry->change == SBX_CHANGE_DELETE ||
			entry->change == SBX_CHANGE_REPLACE)
			return true;
	}
	return false;
}

/* Owners of an old content, from the stack that shows it. */
static int add_old(struct work *w, struct sbx_view *view, const struct sbx_place *place,
	const char *path, struct sbx_own_item *item)
{
	int r = sbx_place_read(place, SBX_LINES_BYTES_MAX, &item->old_content);

	if (r == -EFBIG ||
		(r == 0 && sbx_text_is_binary(item->old_content.data, item->old_content.size))) {
		sbx_buf_done(&item->old_content);
		return 0;
	}
	if (r < 0)
		return r;
	item->has_old = true;
	return sbx_own_batch_old_runs(w->batch, view, path, item);
}

/* What the file was before: where its directory came from, else at its path in the head. */
static int find_old(struct work *w, struct sbx_trail *trail, const char *name, bool renamed,
	struct sbx_own_item *item)
{
	SBX_BUF struct sbx_buf origin = SBX_BUF_INIT;
	struct sbx_place old;
	int r = renamed ? sbx_place_in_view(trail, SBX_TRAIL_ORIGIN, name, &old) : 0;

	if (r > 0 && S_ISREG(old.st.st_mode)) {
		r = sbx_trail_origin(trail, name, &origin);
		return r < 0 ? r : add_old(w, w->o->base, &old, origin.data, item);
	}
	if (r >= 0)
		r = sbx_place_in_view(trail, SBX_TRAIL_HEAD, name, &old);
	if (r <= 0 || !S_ISREG(old.st.st_mode))
		return r < 0 ? r : 0;
	return add_old(w, w->o->head, &old, w->path.data, item);
}

/* Whether some directory on the way to an entry was renamed. */
static bool is_below_rename(const struct sbx_changeset *set, uint32_t index)
{
	if (!set->n_renames)
		return false;
	for (uint32_t i = set->entries[index].parent; i; i = set->entries[i].parent)
		if (set->entries[i].flags & SBX_ENTRY_RENAMED)
			return true;
	return false;
}

/* Opens the file that the entry is. */
static int open_new(struct work *w, struct sbx_trail *trail, const char *name)
{
	int tree_fd = sbx_trail_tree(trail);

	return tree_fd < 0 ? tree_fd : sbx_content_open_stat(tree_fd, name, &w->item.st);
}

/* Reads the file's new content, and for the tally whatever else of it counts. */
static int read_new(struct work *w, int fd, struct sbx_own_item *item, struct sbx_err *err)
{
	int r = item->original ? 0 : sbx_meta_strip_fd(fd, &w->item.has_no_xattrs);

	if (r < 0)
		return r;
	sbx_buf_clear(&w->content);
	item->size = (uint64_t)w->item.st.st_size;
	if (item->size > SBX_LINES_BYTES_MAX) {
		item->whole = true; /* only known by its digest and size */
		r = sbx_digest_fd(fd, &item->digest, err);
	} else {
		r = sbx_fs_read_fd(fd, SBX_LINES_BYTES_MAX, &w->content);
		if (r < 0)
			return r;
		item->size = w->content.size;
		item->whole |= sbx_text_is_binary(w->content.data, w->content.size);
		sbx_digest_bytes(w->content.data, w->content.size, &item->digest);
	}
	w->digest = item->digest;
	w->item.content = r < 0 ? NULL : &w->digest;
	return r;
}

/* A file that kept its inode through a rename: its record goes along as it is. */
static int own_linked(struct work *w, struct sbx_trail *trail, const char *name)
{
	SBX_BUF struct sbx_buf origin = SBX_BUF_INIT;
	int r = sbx_trail_origin(trail, name, &origin);

	return r < 0 ? r : sbx_own_batch_carry(w->batch, w->o->base, origin.data, w->path.data);
}

/*
 * A file without lines that is a deleted one under another name: its record goes along. Over
 * another file only when it is not so short as to be equal by chance. 1: done; 0, with item marked
 * original if nobody had touched the deleted one; or -errno.
 */
static int carry_gone(
	struct work *w, struct sbx_trail *trail, const char *name, struct sbx_own_item *item)
{
	struct sbx_place old;
	const char *origin;
	int r = item->size < SBX_OWN_MOVE_MIN ? sbx_place_in_view(trail, SBX_TRAIL_HEAD, name, &old)
					      : 0;

	if (r != 0)
		return SBX_MIN(r, 0);
	origin = sbx_own_gone_take(&w->gone, &item->digest, item->size);
	if (!origin)
		return 0;
	r = sbx_own_batch_carry(w->batch, w->o->base, origin, w->path.data);
	item->original = r == -ENOENT;
	if (item->original)
		return 0;
	return r < 0 ? r : 1;
}

static int own_file(struct work *w, struct sbx_trail *trail, uint32_t index, struct sbx_err *err)
{
	const struct sbx_entry *entry = &w->o->set->entries[index];
	const char *name = sbx_entry_name(w->o->set, index);
	SBX_CLEANUP(sbx_own_item_done)
	struct sbx_own_item item = {.whole = entry->flags & SBX_ENTRY_IGNORED};
	SBX_CLOSE int fd = -EBADF;
	int r;

	if (w->o->prior && !(entry->flags & SBX_ENTRY_MERGED)) {
		r = sbx_own_batch_keep(w->batch, w->o->prior, w->path.data);
		if (r != -ENOENT)
			return r;
	}
	if (entry->flags & SBX_ENTRY_LINKED) {
		r = own_linked(w, trail, name);
		if (r != -ENOENT)
			return r;
		item.original = true;
	}
	fd = open_new(w, trail, name);
	if (fd < 0)
		return fd;
	r = read_new(w, fd, &item, err);
	if (r == 0 && item.whole && !item.original && !(entry->flags & SBX_ENTRY_IGNORED))
		r = carry_gone(w, trail, name, &item);
	if (r != 0)
		return SBX_MIN(r, 0);
	if (w->has_removals && !item.whole && !item.original) {
		r = find_old(w, trail, name, is_below_rename(w->o->set, index), &item);
		if (r < 0)
			return r;
		return sbx_own_batch_compare(w->batch, w->path.data, &item, &w->content);
	}
	return sbx_own_batch_new(w->batch, w->path.data, &item, &w->content);
}

static bool needs_record(const struct sbx_entry *entry)
{
	return S_ISREG(entry->mode) && (entry->flags & (SBX_ENTRY_CONTENT | SBX_ENTRY_LINKED));
}

struct visit {
	struct work *work;
	struct sbx_err *err;
};

/* The record of a file, if it needs one. */
static int visit_owned(struct visit *visit, struct sbx_trail *trail, uint32_t index)
{
	struct work *w = visit->work;
	int r;

	if (!needs_record(&w->o->set->entries[index]) || w->path.size > SBX_PATH_MAX)
		return 0; /* nobody can ask for the owners of such a path */
	r = own_file(w, trail, index, visit->err);
	if (r < 0 && !(visit->err && visit->err->code))
		(void)sbx_err_set(visit->err, -r, "find the owners of %s: %m", w->path.data);
	return r;
}

/* An entry that is in the tree, but for directories: those count when they are left. */
static int tally_entry(struct work *w, struct sbx_trail *trail, uint32_t index)
{
	const struct sbx_entry *entry = &w->o->set->entries[index];

	if (S_ISDIR(entry->mode) || (entry->flags & SBX_ENTRY_IMPLIED))
		return 0;
	w->item.path = w->path.data;
	w->item.name = sbx_entry_name(w->o->set, index);
	w->item.dir_fd = sbx_trail_tree(trail);
	if (w->item.dir_fd < 0)
		return w->item.dir_fd;
	if (!w->item.content &&
		fstatat(w->item.dir_fd, w->item.name, &w->item.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return sbx_tally_add(w->o->tally, &w->item);
}

static int visit_file(void *data, struct sbx_trail *trail, uint32_t index)
{
	struct visit *visit = data;
	struct work *w = visit->work;
	int r = sbx_changeset_path(w->o->set, index, &w->path);

	w->item = (struct sbx_tally_item){.fd = -EBADF};
	if (r == 0)
		r = visit_owned(visit, trail, index);
	return r < 0 ? r : tally_entry(w, trail, index);
}

static int tally_dir(struct work *w, int fd, uint32_t index)
{
	int r = sbx_changeset_path(w->o->set, index, &w->path);

	w->item = (struct sbx_tally_item){.path = w->path.data, .dir_fd = fd, .fd = -EBADF};
	if (r == 0 && fstat(fd, &w->item.st) < 0)
		r = -errno;
	return r < 0 ? r : sbx_tally_add(w->o->tally, &w->item);
}

/* Our own mark has done its work. */
static int leave_dir(void *data, struct sbx_trail *trail, uint32_t index)
{
	struct visit *visit = data;
	struct work *w = visit->work;
	int fd = sbx_trail_tree(trail), r = 0;

	if (fd >= 0 && (w->o->set->entries[index].flags & SBX_ENTRY_RENAMED))
		r = sbx_xattr_remove(fd, ".", SBX_XATTR_ORIGIN);
	if (fd < 0 || r < 0)
		return fd < 0 ? fd : r;
	return tally_dir(w, fd, index);
}

/* One deleted file of the base, as something that may live on elsewhere. */
static int add_deleted(struct work *w, const struct sbx_place *place, const char *path)
{
	SBX_CLEANUP(sbx_own_item_done) struct sbx_own_item item = {0};
	int r;

	if (!S_ISREG(place->st.st_mode) || w->n_deleted >= SBX_OWNERSHIP_DELETED_FILES)
		return 0;
	if (w->deleted_bytes + (uint64_t)place->st.st_size > SBX_OWNERSHIP_DELETED_BYTES)
		return 0;
	w->n_deleted++;
	w->deleted_bytes += (uint64_t)place->st.st_size;
	r = add_old(w, w->o->base, place, path, &item);
	if (r < 0)
		return r;
	return item.has_old ? sbx_own_batch_compare(w->batch, path, &item, NULL)
			    : sbx_own_gone_add(&w->gone, place, path);
}

/* Whether a file of that path is in the tree. 1, 0 or -errno. */
static int is_in_tree(const struct work *w, const char *path)
{
	SBX_CLOSE int fd =
		sbx_fs_open_beneath(w->o->tree_fd, path, O_PATH, 0, (enum sbx_fs_open_flags)0);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
	return fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode);
}

/*
 * Whether a file went along when a directory above it was renamed: then it is compared at its new
 * place. One that was moved out of the directory before, or deleted in it, did not. 1, 0 or -errno.
 */
static int went_along(const struct work *w, const char *path)
{
	const struct sbx_changeset *set = w->o->set;
	int r = 0;

	for (size_t i = 0; r == 0 && i < set->n_renames; i++) {
		SBX_BUF struct sbx_buf now = SBX_BUF_INIT;
		size_t size = strlen(set->renames[i].origin);

		if (strncmp(path, set->renames[i].origin, size) != 0 || path[size] != '/')
			continue;
		r = sbx_buf_append_string(&now, set->renames[i].path);
		if (r == 0)
			r = sbx_buf_append_string(&now, path + size);
		if (r == 0)
			r = now.size <= SBX_PATH_MAX ? is_in_tree(w, now.data) : 1;
	}
	return r;
}

/* A file of the base that is not there any more. */
static int add_gone(struct work *w, const struct sbx_place *place, const char *path)
{
	int r = went_along(w, path);

	return r == 0 ? add_deleted(w, place, path) : SBX_MIN(r, 0);
}

/* All files below a deleted directory of the base. Steps in and comes back. */
static int add_deleted_dir(struct work *w, struct sbx_trail *trail, const char *name)
{
	SBX_NAMES char **names = NULL;
	struct sbx_view_dir *dir;
	size_t n = 0;
	int r;

	if (sbx_trail_depth(trail) > SBX_OWN_DELETED_DEPTH_MAX)
		return 0;
	r = sbx_trail_enter(trail, name, NULL);
	if (r < 0)
		return r;
	r = sbx_trail_view(trail, SBX_TRAIL_BASE, &dir);
	if (r == 0 && dir)
		r = sbx_view_dir_list(dir, &names, &n);
	for (size_t i = 0; r == 0 && i < n && w->n_deleted < SBX_OWNERSHIP_DELETED_FILES; i++) {
		SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
		struct sbx_place place;

		r = sbx_place_in_view(trail, SBX_TRAIL_BASE, names[i], &place);
		if (r > 0 && S_ISDIR(place.st.st_mode)) {
			r = add_deleted_dir(w, trail, names[i]);
		} else if (r > 0) {
			r = sbx_trail_path(trail, names[i], &path);
			if (r == 0)
				r = add_gone(w, &place, path.data);
		}
	}
	sbx_trail_leave(trail);
	return r;
}

static int visit_deletion(void *data, struct sbx_trail *trail, uint32_t index)
{
	struct visit *visit = data;
	struct work *w = visit->work;
	const struct sbx_entry *entry = &w->o->set->entries[index];
	const char *name = sbx_entry_name(w->o->set, index);
	struct sbx_place place;
	int r;

	if (entry->change != SBX_CHANGE_DELETE || (entry->flags & SBX_ENTRY_IGNORED))
		return 0;
	r = sbx_place_in_view(trail, SBX_TRAIL_BASE, name, &place);
	if (r <= 0)
		return r;
	r = sbx_changeset_path(w->o->set, index, &w->path);
	if (r < 0)
		return r;
	return S_ISDIR(place.st.st_mode) ? add_deleted_dir(w, trail, name)
					 : add_gone(w, &place, w->path.data);
}

/* Whether a text file was added, which could be a deleted one under a new name. */
static bool has_additions(const struct sbx_changeset *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (S_ISREG(set->entries[i].mode) && (set->entries[i].flags & SBX_ENTRY_CONTENT))
			return true;
	return false;
}

static int walk(struct work *w, struct sbx_err *err)
{
	struct visit visit = {.work = w, .err = err};
	struct sbx_changeset_walk deletions = {.visit = visit_deletion, .data = &visit};
	struct sbx_changeset_walk files = {.visit = visit_file, .leave = leave_dir, .data = &visit};
	SBX_TRAIL struct sbx_trail *trail = NULL;
	int r;

	r = sbx_trail_new(w->o->tree_fd, w->o->base, w->o->head, &trail);
	/* the deleted ones first, so that they are in the batch that most others are in */
	if (r == 0 && w->has_removals && has_additions(w->o->set))
		r = sbx_changeset_walk(w->o->set, trail, &deletions);
	if (r == 0)
		r = sbx_changeset_walk(w->o->set, trail, &files);
	return r < 0 ? r : sbx_own_batch_flush(w->batch, err);
}

int sbx_ownership_write(const struct sbx_ownership *ownership, int layer_fd, struct sbx_err *err)
{
	struct sbx_err local = SBX_ERR_INIT;
	SBX_CLEANUP(work_done)
	struct work w = {.o = ownership, .has_removals = has_removals(ownership->set)};
	int r = sbx_own_batch_new_for(ownership->owner, &w.batch);

	if (!err)
		err = &local;
	err->code = 0;
	if (r == 0)
		r = walk(&w, err);
	if (r < 0)
		return err->code ? r : sbx_err_set(err, -r, "find the owners of lines: %m");
	return sbx_own_batch_write(w.batch, layer_fd, err);
}
