/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>

#include "export.h"
#include "link_map.h"
#include "tar.h"
#include "view_walk.h"

struct export
{
	const struct sbx_sandbox *sandbox;
	struct tar tar;
	struct link_map *links;
	struct view_walk *walk;
	struct export_counts counts;
};

static void export_done(struct export *export)
{
	tar_done(&export->tar);
	link_map_free(export->links);
	view_walk_free(export->walk);
}

static int start(struct export *export, struct sbx_view *view, int fd, struct sbx_err *err)
{
	int r = tar_init(&export->tar, fd);

	if (r == 0)
		r = link_map_new(&export->links);
	if (r < 0)
		return sbx_err_set(err, -r, "export: %m");
	return view_walk_new(view, -EBADF, false, &export->walk, err);
}

static int put(struct export *export, struct tar_entry *entry)
{
	entry->uid = entry->st->st_uid;
	entry->gid = entry->st->st_gid;
	export_map_owner(export->sandbox, &entry->uid, &entry->gid);
	export->counts.n_entries++;
	if (S_ISREG(entry->st->st_mode) && !entry->is_hard_link)
		export->counts.n_bytes += (uint64_t)entry->st->st_size;
	return tar_put(&export->tar, entry, &export->counts.n_xattrs_dropped);
}

static int put_opened(struct export *export, const struct view_walk_item *item)
{
	int flags = S_ISDIR(item->node.st.st_mode) ? O_RDONLY | O_DIRECTORY : O_RDONLY;
	SBX_CLOSE int fd = sbx_view_dir_openat(item->dir, item->name, flags);
	struct tar_entry entry = {.path = item->path, .st = &item->node.st, .fd = fd};

	return fd < 0 ? fd : put(export, &entry);
}

static int put_symlink(struct export *export, const struct view_walk_item *item)
{
	struct tar_entry entry = {.path = item->path, .st = &item->node.st, .fd = -EBADF};
	char target[PATH_MAX + 1];
	ssize_t n;
	int dir_fd = -EBADF, r = sbx_view_dir_fd_of(item->dir, item->name, &dir_fd);

	if (r < 0)
		return r;
	n = readlinkat(dir_fd, item->name, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	entry.target = target;
	return put(export, &entry);
}

static int put_by_kind(struct export *export, const struct view_walk_item *item)
{
	struct tar_entry entry = {.path = item->path, .st = &item->node.st, .fd = -EBADF};

	switch (item->node.st.st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
		return put_opened(export, item);
	case S_IFLNK:
		return put_symlink(export, item);
	case S_IFIFO:
		return put(export, &entry);
	default:
		return -EBADMSG; /* nothing else is in a layer */
	}
}

static int put_linked(struct export *export, const struct view_walk_item *item)
{
	struct tar_entry entry = {
		.path = item->path,
		.target = link_map_find(export->links, &item->node.st),
		.is_hard_link = true,
		.st = &item->node.st,
		.fd = -EBADF,
	};
	int r;

	if (entry.target) {
		r = put(export, &entry);
		link_map_seen(export->links, &item->node.st);
		return r;
	}
	r = put_by_kind(export, item);
	return r < 0 ? r : link_map_add(export->links, &item->node.st, item->path);
}

static int export_item(
	struct export *export, const struct view_walk_item *item, struct sbx_err *err)
{
	bool is_dir = S_ISDIR(item->node.st.st_mode);
	int r;

	if (!is_dir && item->node.st.st_nlink > 1)
		r = put_linked(export, item);
	else
		r = put_by_kind(export, item);
	if (r < 0)
		return sbx_err_set(err, -r, "export %s: %m", item->path);
	return is_dir ? view_walk_enter(export->walk, err) : 0;
}

static int put_root(struct export *export, struct sbx_view *view, struct sbx_err *err)
{
	SBX_CLOSE int fd = sbx_view_openat(view, "", O_RDONLY | O_DIRECTORY);
	struct sbx_node node;
	struct tar_entry entry = {.path = ".", .st = &node.st, .fd = fd};
	int r = sbx_view_lookup(view, "", &node);

	if (r == 0)
		r = put(export, &entry);
	export->counts.n_entries = 0; /* the root does not count */
	return r < 0 ? sbx_err_set(err, -r, "export the root: %m") : 0;
}

int sbx_store_export_tar(struct sbx_view *view, const struct sbx_sandbox *sandbox, int fd,
	sbx_progress_fn progress, void *data, struct json_object *ret_report, struct sbx_err *err)
{
	SBX_CLEANUP(export_done) struct export export = {.sandbox = sandbox};
	struct view_walk_item item;
	int r = start(&export, view, fd, err);

	if (r == 0)
		r = put_root(&export, view, err);
	while (r == 0 && (r = view_walk_next(export.walk, &item, err)) > 0) {
		r = r == WALK_ENTRY ? export_item(&export, &item, err) : 0;
		if (progress && export.counts.n_entries % EXPORT_PROGRESS_EVERY == 0)
			progress(data, export.counts.n_entries, export.counts.n_bytes);
	}
	if (r < 0)
		return sbx_err_wrap(err, r, "export stopped half-way, the archive is incomplete");
	r = tar_finish(&export.tar);
	if (r < 0)
		return sbx_err_set(err, -r, "write the end of the archive: %m");
	export_report(&export.counts, ret_report);
	return 0;
}
