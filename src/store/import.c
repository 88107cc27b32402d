/* SPDX-License-Identifier: MIT */
#include "import.h"

#include "copy.h"
#include "walk.h"

#define ID_MAX         65535u /* the last id of a sandbox's range */
#define ID_NOBODY      65534u
#define PROGRESS_EVERY 256u /* entries */

enum loss {
	LOSS_VANISHED,
	LOSS_NOT_KEPT,
	LOSS_OTHER_FS,
	N_LOSSES,
};

static const char *const loss_names[N_LOSSES] = {
	[LOSS_VANISHED] = "vanished",
	[LOSS_NOT_KEPT] = "not_kept",
	[LOSS_OTHER_FS] = "other_file_systems",
};

struct import {
	const struct stat *root; /* whose owner becomes in-session root */
	struct copier *copier;
	struct walk *walk;
	sbx_progress_fn progress;
	void *progress_data;
	uint64_t n_entries, n_hard_links;
	struct {
		uint64_t count;
		struct json_object *paths;
	} losses[N_LOSSES];
};

static void import_done(struct import *import)
{
	copier_free(import->copier);
	walk_free(import->walk);
	for (size_t i = 0; i < N_LOSSES; i++)
		sbx_json_put(&import->losses[i].paths);
}

static bool map_owner(const void *data, uid_t *uid, gid_t *gid)
{
	const struct stat *root = data;
	bool lost = false;

	if (*uid == root->st_uid)
		*uid = 0;
	if (*gid == root->st_gid)
		*gid = 0;
	if (*uid > ID_MAX) {
		*uid = ID_NOBODY;
		lost = true;
	}
	if (*gid > ID_MAX) {
		*gid = ID_NOBODY;
		lost = true;
	}
	return lost;
}

static int start(struct import *import, int source_fd, int tree_fd, struct sbx_err *err)
{
	int r = copier_new(tree_fd, map_owner, import->root, xattr_is_portable, &import->copier);

	for (size_t i = 0; i < N_LOSSES && r == 0; i++) {
		import->losses[i].paths = json_object_new_array();
		if (!import->losses[i].paths)
			r = -ENOMEM;
	}
	if (r < 0)
		return sbx_err_set(err, -r, "import: %m");
	return walk_new(source_fd, tree_fd, &import->walk, err);
}

/* Counts what is not in the copy and names the first of them. */
static int lose(struct import *import, enum loss loss, const char *path)
{
	SBX_JSON struct json_object *holder = NULL;
	struct json_object *paths = import->losses[loss].paths;

	if (import->losses[loss].count++ >= IMPORT_EXAMPLES_MAX)
		return 0;
	holder = json_object_new_object();
	if (!holder)
		return -ENOMEM;
	sbx_json_add_path(holder, "path", path);
	if (json_object_array_add(paths, json_object_get(sbx_json_member(holder, "path"))) < 0)
		return -ENOMEM;
	return 0;
}

/* A directory was made; goes on inside unless it is not there any more or a mount. */
static int enter(struct import *import, const struct walk_item *item, struct sbx_err *err)
{
	struct sbx_err enter_err = SBX_ERR_INIT;
	int r = walk_enter(import->walk, &enter_err);

	switch (r) {
	case 0:
		return 0;
	case -EXDEV:
		return lose(import, LOSS_OTHER_FS, item->path);
	case -ENOENT:
	case -ENOTDIR:
	case -ELOOP:
		return lose(import, LOSS_VANISHED, item->path);
	default:
		if (err)
			*err = enter_err;
		return r;
	}
}

static int import_entry(struct import *import, const struct walk_item *item, struct sbx_err *err)
{
	struct copy_from from = {item->dir_fd, item->name, &item->st};
	struct copy_to to = {item->mirror_fd, item->name, item->path};
	int r = copier_entry(import->copier, &from, &to, err);

	if (r < 0)
		return r;
	if (r == COPY_VANISHED)
		return lose(import, LOSS_VANISHED, item->path);
	if (r == COPY_NOT_KEPT)
		return lose(import, LOSS_NOT_KEPT, item->path);
	import->n_entries++;
	import->n_hard_links += r == COPY_LINKED;
	if (import->progress && import->n_entries % PROGRESS_EVERY == 0)
		import->progress(import->progress_data, import->n_entries,
			copier_stats(import->copier)->n_bytes);
	return S_ISDIR(item->st.st_mode) ? enter(import, item, err) : 0;
}

static int import_event(
	struct import *import, int event, const struct walk_item *item, struct sbx_err *err)
{
	switch (event) {
	case WALK_ENTRY:
		return import_entry(import, item, err);
	case WALK_LEAVE:
		return copier_finish_directory(
			import->copier, item->dir_fd, &item->st, item->mirror_fd, err);
	default:
		return lose(import, LOSS_VANISHED, item->path);
	}
}

static void report(const struct import *import, struct json_object *ret_report)
{
	const struct copy_stats *stats = copier_stats(import->copier);
	const struct {
		const char *name;
		uint64_t count;
	} counts[] = {
		{"entries", import->n_entries},
		{"bytes", stats->n_bytes},
		{"hard_links", import->n_hard_links},
		{"reflinked", stats->n_reflinked},
		{"owners_lost", stats->n_ids_lost},
		{"xattrs_dropped", stats->n_xattrs_dropped},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(counts); i++)
		sbx_json_add_int(ret_report, counts[i].name, (int64_t)counts[i].count);
	for (size_t i = 0; i < N_LOSSES; i++) {
		struct json_object *loss = json_object_new_object();

		sbx_json_add(ret_report, loss_names[i], loss);
		sbx_json_add_int(loss, "count", (int64_t)import->losses[i].count);
		sbx_json_add(loss, "paths", json_object_get(import->losses[i].paths));
	}
}

int import_tree(int source_fd, const struct stat *st, int tree_fd, sbx_progress_fn progress,
	void *progress_data, struct json_object *ret_report, struct sbx_err *err)
{
	SBX_CLEANUP(import_done)
	struct import import = {
		.root = st,
		.progress = progress,
		.progress_data = progress_data,
	};
	struct walk_item item;
	int r = start(&import, source_fd, tree_fd, err);

	if (r < 0)
		return r;
	while ((r = walk_next(import.walk, &item, err)) > 0) {
		r = import_event(&import, r, &item, err);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	if (progress)
		progress(progress_data, import.n_entries, copier_stats(import.copier)->n_bytes);
	report(&import, ret_report);
	return 0;
}
