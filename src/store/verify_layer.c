/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "sbx/fs.h"
#include "sbx/owners.h"
#include "verify.h"
#include "walk.h"
#include "xattr.h"

#define OPEN_DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define OPEN_FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define READ_CHUNK      65536u

struct layer {
	struct verify *verify;
	const char *id;
	int fd, tree_fd;
};

/* Marks that make a layer's tree mean something else than it shows, or that we never store. */
static bool is_forbidden_mark(const char *name)
{
	static const char *const harmless[] = {
		"trusted.overlay.opaque", /* its value is checked */
		"trusted.overlay.origin",
		"trusted.overlay.impure",
		"trusted.overlay.nlink",
		"trusted.overlay.uuid",
	};

	if (strncmp(name, "trusted.overlay.", strlen("trusted.overlay.")) != 0)
		return !strncmp(name, "user.overlay.", strlen("user.overlay."));
	for (size_t i = 0; i < SBX_N_ELEMENTS(harmless); i++)
		if (!strcmp(name, harmless[i]))
			return false;
	return true;
}

static bool has_odd_opaque(int dir_fd)
{
	char value[2];

	return fgetxattr(dir_fd, "trusted.overlay.opaque", value, sizeof(value)) >= 0 &&
	       sbx_is_opaque(dir_fd) != 1;
}

static void check_marks(struct layer *layer, int fd, const char *path)
{
	SBX_BUF struct sbx_buf names = SBX_BUF_INIT;
	int r = xattr_list(fd, is_forbidden_mark, &names, NULL);

	if (r < 0)
		verify_damage(
			layer->verify, layer->id, "attributes of \"%s\": %s", path, strerror(-r));
	for (size_t at = 0; at < names.size; at += strlen(names.data + at) + 1)
		verify_damage(layer->verify, layer->id,
			"\"%s\" has the mark %s, which no layer may hold", path, names.data + at);
	if (has_odd_opaque(fd))
		verify_damage(layer->verify, layer->id,
			"\"%s\" has a mark trusted.overlay.opaque that is not \"y\"", path);
}

static void check_file_marks(struct layer *layer, const struct walk_item *item)
{
	SBX_CLOSE int fd = openat(item->dir_fd, item->name, OPEN_FILE_FLAGS);

	if (fd < 0)
		verify_damage(layer->verify, layer->id, "\"%s\" cannot be opened: %s", item->path,
			strerror(errno));
	else
		check_marks(layer, fd, item->path);
}

static void check_item(struct layer *layer, int event, const struct walk_item *item)
{
	mode_t mode = item->st.st_mode;

	if (event == WALK_LEAVE)
		check_marks(layer, item->dir_fd, item->path);
	else if (S_ISREG(mode))
		check_file_marks(layer, item);
	else if (!S_ISDIR(mode) && !S_ISLNK(mode) && !S_ISFIFO(mode) && !sbx_is_whiteout(&item->st))
		verify_damage(layer->verify, layer->id, "\"%s\" is %s, which no layer may hold",
			item->path, sbx_fs_kind_name(mode));
}

static int walk_tree(struct layer *layer, struct sbx_err *err)
{
	WALK struct walk *walk = NULL;
	struct walk_item item;
	int r = walk_new(layer->tree_fd, -EBADF, &walk, err);

	if (r < 0)
		return r;
	while ((r = walk_next(walk, &item, err)) > 0) {
		check_item(layer, r, &item);
		if (r == WALK_ENTRY && S_ISDIR(item.st.st_mode))
			r = walk_enter(walk, err);
		if (r < 0)
			return r;
	}
	return r;
}

static void check_tree(struct layer *layer)
{
	struct sbx_err err = SBX_ERR_INIT;

	if (walk_tree(layer, &err) < 0)
		verify_damage(layer->verify, layer->id, "tree: %s", err.message);
}

static void check_against_info(struct layer *layer, const struct sbx_layer_info *info)
{
	uint64_t n_entries, n_bytes;
	struct sbx_err err = SBX_ERR_INIT;
	char digest[SBX_DIGEST_HEX_SIZE];

	if (strcmp(info->id, layer->id) != 0)
		verify_damage(
			layer->verify, layer->id, SBX_LAYER_JSON " is that of layer %s", info->id);
	if (sbx_layer_digest(layer->tree_fd, digest, &n_entries, &n_bytes, &err) < 0)
		verify_damage(layer->verify, layer->id, "tree: %s", err.message);
	else if (strcmp(digest, info->tree_digest) != 0)
		verify_damage(layer->verify, layer->id,
			"the tree is not the one that was stored: %ju entries of %ju bytes with "
			"digest %s, "
			"stored were %ju of %ju with digest %s",
			(uintmax_t)n_entries, (uintmax_t)n_bytes, digest,
			(uintmax_t)info->n_entries, (uintmax_t)info->n_bytes, info->tree_digest);
}

static void check_info(struct layer *layer)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	struct sbx_err err = SBX_ERR_INIT;

	if (sbx_layer_info_load(layer->fd, &info, &err) < 0)
		verify_damage(layer->verify, layer->id, "%s", err.message);
	else
		check_against_info(layer, &info);
}

/* Lines as people count them: what follows the last newline is one, too. */
static int count_lines(int fd, uint64_t *ret)
{
	char chunk[READ_CHUNK], last = '\n';
	uint64_t n_lines = 0;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			n_lines += chunk[i] == '\n';
		last = chunk[n - 1];
		at += n;
	}
	*ret = n_lines + (last != '\n');
	return n < 0 ? -errno : 0;
}

/* Paths in lines files are bounded (SBX_PATH_MAX), so one call opens them. */
static void check_record(struct layer *layer, const struct sbx_owner_record *record)
{
	SBX_CLOSE int fd = sbx_fs_open_beneath(layer->tree_fd, record->path, O_RDONLY, 0, 0);
	struct sbx_digest digest;
	uint64_t n_lines;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		verify_damage(layer->verify, layer->id,
			"lines has a record for \"%s\", which is no file of its tree",
			record->path);
		return;
	}
	if (sbx_digest_fd(fd, &digest, NULL) < 0 || count_lines(fd, &n_lines) < 0) {
		verify_damage(layer->verify, layer->id, "\"%s\" cannot be read: %s", record->path,
			strerror(errno));
		return;
	}
	if (record->size != (uint64_t)st.st_size || !sbx_digest_equal(&digest, &record->digest))
		verify_damage(layer->verify, layer->id,
			"lines describes another content of \"%s\" than its tree has",
			record->path);
	else if (!record->whole && record->n_lines != n_lines)
		verify_damage(layer->verify, layer->id,
			"lines has owners for %u lines of \"%s\", which has %ju", record->n_lines,
			record->path, (uintmax_t)n_lines);
}

static void check_records(struct layer *layer, const struct sbx_owners *owners)
{
	const char *last = NULL;

	for (size_t i = 0; i < sbx_owners_count(owners); i++) {
		struct sbx_owner_record record;

		if (sbx_owners_get(owners, i, &record) < 0) {
			verify_damage(
				layer->verify, layer->id, "lines: record %zu is damaged", i + 1);
			continue;
		}
		if (last && strcmp(last, record.path) >= 0)
			verify_damage(layer->verify, layer->id,
				"lines: record %zu, \"%s\", is out of order", i + 1, record.path);
		last = record.path;
		check_record(layer, &record);
	}
}

static void check_lines(struct layer *layer)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_owners *owners = NULL;
	int r = sbx_owners_open(layer->fd, SBX_LAYER_LINES, &owners, &err);

	if (r == -ENOENT)
		return;
	if (r < 0) {
		verify_damage(layer->verify, layer->id, "%s", err.message);
		return;
	}
	check_records(layer, owners);
	sbx_owners_free(owners);
}

void verify_layer(struct verify *verify, int layers_fd, const char *id)
{
	SBX_CLOSE int fd = openat(layers_fd, id, OPEN_DIR_FLAGS), tree_fd = -EBADF;
	struct layer layer = {verify, id, fd, -EBADF};

	if (!sbx_id_valid(id)) {
		verify_damage(verify, "layers", "\"%s\" is no layer", id);
		return;
	}
	if (fd >= 0)
		tree_fd = openat(fd, SBX_LAYER_TREE, OPEN_DIR_FLAGS);
	if (tree_fd < 0) {
		verify_damage(verify, id, "cannot be opened: %s", strerror(errno));
		return;
	}
	layer.tree_fd = tree_fd;
	check_tree(&layer);
	check_info(&layer);
	check_lines(&layer);
}
