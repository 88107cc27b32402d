/* SPDX-License-Identifier: MIT */
#include "export.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "copy.h"
#include "place.h"
#include "view_walk.h"

void export_map_owner(const struct sbx_sandbox *sandbox, uid_t *uid, gid_t *gid)
{
	if (*uid == 0)
		*uid = sandbox->source_uid;
	if (*gid == 0)
		*gid = sandbox->source_gid;
}

void export_report(const struct export_counts *counts, struct json_object *ret_report)
{
	sbx_json_add_int(ret_report, "entries", (int64_t)counts->n_entries);
	sbx_json_add_int(ret_report, "bytes", (int64_t)counts->n_bytes);
	sbx_json_add_int(ret_report, "xattrs_dropped", (int64_t)counts->n_xattrs_dropped);
}

static bool map_owner(const void *data, uid_t *uid, gid_t *gid)
{
	export_map_owner(data, uid, gid);
	return false;
}

struct export
{
	struct copier *copier;
	struct view_walk *walk;
	uint64_t n_entries;
};

static void export_done(struct export *export)
{
	copier_free(export->copier);
	view_walk_free(export->walk);
}

/* 1, 0 or -errno. */
static int is_empty(int dir_fd)
{
	int fd = place_open(dir_fd, ".");
	struct dirent *entry;
	size_t n = 0;
	DIR *dirp;
	int r;

	dirp = fd < 0 ? NULL : fdopendir(fd);
	if (!dirp) {
		r = -errno;
		sbx_fd_close(&fd);
		return r;
	}
	while (errno = 0, (entry = readdir(dirp)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	r = errno ? -errno : n == 0;
	(void)closedir(dirp); /* only read from */
	return r;
}

static int export_entry(
	struct export *export, const struct view_walk_item *item, struct sbx_err *err)
{
	struct copy_from from = {.name = item->name, .st = &item->node.st};
	struct copy_to to = {item->mirror_fd, item->name, item->path};
	int r = sbx_view_dir_fd_of(item->dir, item->name, &from.dir_fd);

	if (r < 0)
		return sbx_err_set(err, -r, "export %s: %m", item->path);
	r = copier_entry(export->copier, &from, &to, err);
	if (r == COPY_VANISHED || r == COPY_NOT_KEPT)
		return sbx_err_set(err, EBADMSG, "export %s: %s is not what a layer may hold",
			item->path, item->path);
	if (r < 0)
		return r;
	export->n_entries++;
	return S_ISDIR(item->node.st.st_mode) ? view_walk_enter(export->walk, err) : 0;
}

static int export_event(
	struct export *export, int event, const struct view_walk_item *item, struct sbx_err *err)
{
	if (event == WALK_ENTRY)
		return export_entry(export, item, err);
	if (view_dir_top_fd(item->dir) < 0) /* an empty stack has no root to copy */
		return 0;
	return copier_finish_directory(
		export->copier, view_dir_top_fd(item->dir), &item->node.st, item->mirror_fd, err);
}

static int start(struct export *export, struct sbx_view *view, const struct sbx_sandbox *sandbox,
	int dest_fd, struct sbx_err *err)
{
	int r = is_empty(dest_fd);

	if (r == 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, ENOTEMPTY,
			"the directory to export to is not empty: choose an empty or new one");
	if (r > 0)
		r = copier_new(dest_fd, map_owner, sandbox, xattr_is_portable, &export->copier);
	if (r < 0)
		return sbx_err_set(err, -r, "export: %m");
	return view_walk_new(view, dest_fd, false, &export->walk, err);
}

int sbx_store_export_dir(struct sbx_view *view, const struct sbx_sandbox *sandbox, int dest_fd,
	sbx_progress_fn progress, void *data, struct json_object *ret_report, struct sbx_err *err)
{
	SBX_CLEANUP(export_done) struct export export = {0};
	struct view_walk_item item;
	const struct copy_stats *stats;
	int r = start(&export, view, sandbox, dest_fd, err);

	if (r < 0)
		return r;
	stats = copier_stats(export.copier);
	while ((r = view_walk_next(export.walk, &item, err)) > 0) {
		r = export_event(&export, r, &item, err);
		if (r < 0)
			break;
		if (progress && export.n_entries % EXPORT_PROGRESS_EVERY == 0)
			progress(data, export.n_entries, stats->n_bytes);
	}
	if (r < 0)
		return sbx_err_wrap(err, r, "export stopped half-way, the directory is incomplete");
	export_report(
		&(struct export_counts){export.n_entries, stats->n_bytes, stats->n_xattrs_dropped},
		ret_report);
	return 0;
}
