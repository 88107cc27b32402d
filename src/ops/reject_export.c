/* SPDX-License-Identifier: MIT */
#include "reject_export.h"

#include <fcntl.h>
#include <sys/fsuid.h>

#include "changeset_walk.h"
#include "content.h"
#include "meta.h"
#include "sbx/fs.h"
#include "sbx/store.h"

#define NOBODY_GID 65534 /* no file worth writing to is writable for this group */

struct copy {
	const struct sbx_reject_export *export;
	struct sbx_trail *dest; /* in step with the walk, in files/ */
	struct sbx_buf deleted;
	struct sbx_buf path;
	uid_t owner_uid; /* of the sandbox */
	uid_t root_uid;  /* who in-session root is outside */
	gid_t root_gid;
	uint64_t n_files;
};

static void copy_done(struct copy *copy)
{
	sbx_trail_free(copy->dest);
	sbx_buf_done(&copy->deleted);
	sbx_buf_done(&copy->path);
}

static int note_deleted(struct copy *copy, uint32_t index)
{
	int r = sbx_changeset_path(copy->export->set, index, &copy->path);

	return r < 0 ? r : sbx_buf_append(&copy->deleted, copy->path.data, copy->path.size + 1);
}

/* In-session ids become those outside; a new owner clears set-id bits, which are put back. */
static int map_owner(const struct copy *copy, int dir_fd, const char *name)
{
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int r = sbx_meta_read(dir_fd, name, NULL, 0, &meta);

	if (r < 0)
		return r;
	if (meta.st.st_uid == 0)
		meta.st.st_uid = copy->root_uid;
	if (meta.st.st_gid == 0)
		meta.st.st_gid = copy->root_gid;
	return sbx_meta_apply(dir_fd, name, &meta);
}

static int copy_entry(void *data, struct sbx_trail *trail, uint32_t index)
{
	struct copy *copy = data;
	const struct sbx_entry *entry = &copy->export->set->entries[index];
	const char *name = sbx_entry_name(copy->export->set, index);
	int dest_fd, tree_fd, r;

	if (entry->change == SBX_CHANGE_DELETE)
		return note_deleted(copy, index);
	dest_fd = sbx_trail_tree(copy->dest);
	tree_fd = sbx_trail_tree(trail);
	if (dest_fd < 0 || tree_fd < 0)
		return SBX_MIN(dest_fd, tree_fd);
	if (S_ISDIR(entry->mode)) {
		if (mkdirat(dest_fd, name, 0700) < 0)
			return -errno;
		return sbx_trail_enter(copy->dest, name, NULL);
	}
	copy->n_files++;
	r = sbx_file_copy(tree_fd, name, dest_fd, name);
	return r < 0 ? r : map_owner(copy, dest_fd, name);
}

/* The directory's own metadata come last: they may forbid writing, and writing changes the mtime.
 */
static int end_dir(void *data, struct sbx_trail *trail, uint32_t index)
{
	struct copy *copy = data;
	SBX_META struct sbx_meta meta = SBX_META_INIT;
	int dest_fd = sbx_trail_tree(copy->dest), tree_fd = sbx_trail_tree(trail), r;

	if (dest_fd < 0 || tree_fd < 0)
		return SBX_MIN(dest_fd, tree_fd);
	r = sbx_meta_read(tree_fd, ".", NULL, 0, &meta);
	if (r == 0)
		r = sbx_meta_apply(dest_fd, ".", &meta);
	if (r == 0)
		r = map_owner(copy, dest_fd, ".");
	if (index)
		sbx_trail_leave(copy->dest);
	return r;
}

static int copy_files(struct copy *copy, int files_fd)
{
	struct sbx_changeset_walk walk = {.visit = copy_entry, .leave = end_dir, .data = copy};
	SBX_TRAIL struct sbx_trail *trail = NULL;
	int r = sbx_trail_new(files_fd, NULL, NULL, &copy->dest);

	if (r == 0)
		r = sbx_trail_new(copy->export->tree_fd, NULL, NULL, &trail);
	return r < 0 ? r : sbx_changeset_walk(copy->export->set, trail, &walk);
}

static int fill(struct copy *copy, int dest_fd)
{
	SBX_CLOSE int files_fd = -EBADF;
	const char *text;
	size_t size;
	int r = sbx_fs_ensure_dir(dest_fd, "files", 0755, &files_fd);

	if (r == 0)
		r = copy_files(copy, files_fd);
	if (r == 0)
		r = sbx_fs_write_at(
			dest_fd, "deleted", 0644, copy->deleted.data, copy->deleted.size, 0);
	text = sbx_json_text(copy->export->json, &size);
	return r < 0 ? r : sbx_fs_write_at(dest_fd, SBX_REJECT_JSON, 0644, text, size, 0);
}

static int load_ids(struct copy *copy, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox sandbox = {0};
	int r = sbx_sandbox_load(copy->export->sandbox_fd, &sandbox, err);

	if (r == 0) {
		copy->owner_uid = sandbox.owner_uid;
		copy->root_uid = sandbox.source_uid;
		copy->root_gid = sandbox.source_gid;
	}
	return r;
}

static int make_dest_as_owner(const char *dest)
{
	int fd;

	if (mkdir(dest, 0700) < 0)
		return -errno;
	fd = open(dest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * The owner of a sandbox may be no more than a user, and chose dest: it is made with that user's
 * rights (credentials(7): leaving fsuid 0 gives up the capabilities over files, coming back regains
 * them). While it is filled it belongs to us alone, so that nobody puts a link in the way.
 */
static int make_dest(const struct copy *copy, const char *dest)
{
	SBX_CLOSE int fd = -EBADF;
	struct stat st;

	if (copy->owner_uid) {
		(void)setfsgid(NOBODY_GID); /* cannot fail for root, as below */
		(void)setfsuid(copy->owner_uid);
	}
	fd = make_dest_as_owner(dest);
	(void)setfsuid(0);
	(void)setfsgid(0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != copy->owner_uid)
		return -EPERM; /* another one was put in its place */
	if (fchown(fd, 0, 0) < 0 || fchmod(fd, 0700) < 0)
		return -errno;
	return sbx_fd_take(&fd);
}

/* Gives the finished directory to the one it is for. */
static int finish_dest(const struct copy *copy, int dest_fd)
{
	uid_t uid = copy->owner_uid ? copy->owner_uid : copy->root_uid;

	if (syncfs(dest_fd) < 0 || fchmod(dest_fd, 0755) < 0 ||
		fchown(dest_fd, uid, copy->root_gid) < 0)
		return -errno;
	return 0;
}

int sbx_reject_export(const struct sbx_reject_export *export, const char *dest,
	uint64_t *ret_n_files, struct sbx_err *err)
{
	SBX_CLEANUP(copy_done) struct copy copy = {.export = export};
	SBX_CLOSE int dest_fd = -EBADF;
	int r;

	if (dest[0] != '/')
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"dest must be an absolute path, not '%s'", dest);
	r = load_ids(&copy, err);
	if (r < 0)
		return r;
	dest_fd = make_dest(&copy, dest);
	if (dest_fd < 0)
		return sbx_err_kind(err, dest_fd == -EEXIST ? SBX_KIND_CONFLICT : SBX_KIND_FAILED,
			-dest_fd, "make %s: %m", dest);
	r = fill(&copy, dest_fd);
	if (r == 0)
		r = finish_dest(&copy, dest_fd);
	if (r < 0) {
		(void)sbx_fs_remove_tree(dest_fd, "files"); /* what remains says it is half */
		return sbx_err_set(err, -r, "write the reject to %s: %m", dest);
	}
	*ret_n_files = copy.n_files;
	return 0;
}
