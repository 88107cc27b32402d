/* SPDX-License-Identifier: MIT */
/* Durability of a captured tree. */
#include <fcntl.h>
#include <unistd.h>

#include "changeset_walk.h"
#include "content.h"
#include "publication.h"

int sbx_publish_sync_name(int dir_fd, const char *name, struct sbx_err *err)
{
	SBX_CLOSE int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return sbx_err_set(err, errno, "sync %s: %m", name);
	return 0;
}

struct sync {
	const struct sbx_changeset *set;
	bool starts; /* only begins to write the data out */
};

/* What a layer holds already is durable; so is what is not in the tree. */
static bool needs_sync(const struct sbx_entry *entry)
{
	return S_ISREG(entry->mode) && !(entry->flags & SBX_ENTRY_LINKED);
}

static int sync_file(void *data, struct sbx_trail *trail, uint32_t index)
{
	const struct sync *sync = data;
	SBX_CLOSE int fd = -EBADF;
	int tree_fd;

	if (!needs_sync(&sync->set->entries[index]))
		return 0;
	tree_fd = sbx_trail_tree(trail);
	fd = tree_fd < 0 ? tree_fd : sbx_content_open(tree_fd, sbx_entry_name(sync->set, index));
	if (fd < 0)
		return fd;
	if (!sync->starts)
		return fsync(fd) < 0 ? -errno : 0;
	/* a start only: whether it was worth it shows in the fsync that follows */
	(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

static int sync_dir(void *data, struct sbx_trail *trail, uint32_t index SBX_UNUSED)
{
	const struct sync *sync = data;
	int fd = sync->starts ? 0 : sbx_trail_tree(trail);

	if (sync->starts)
		return 0;
	return fd < 0 ? fd : fsync(fd) < 0 ? -errno : 0;
}

/*
 * Twice over the files: the first time allocates their blocks, so that one commit of the journal,
 * that of the first fsync, covers them all.
 */
static int sync_each(const struct sbx_changeset *set, int tree_fd)
{
	struct sync sync = {.set = set, .starts = true};
	struct sbx_changeset_walk walk = {.visit = sync_file, .leave = sync_dir, .data = &sync};
	SBX_TRAIL struct sbx_trail *trail = NULL;
	int r = sbx_trail_new(tree_fd, NULL, NULL, &trail);

	if (r == 0)
		r = sbx_changeset_walk(set, trail, &walk);
	sync.starts = false;
	return r < 0 ? r : sbx_changeset_walk(set, trail, &walk);
}

int sbx_publish_sync_tree(const struct sbx_changeset *set, int tree_fd, struct sbx_err *err)
{
	int r = set ? sync_each(set, tree_fd) : syncfs(tree_fd) < 0 ? -errno : 0;

	return r < 0 ? sbx_err_set(err, -r, "make the changed files durable: %m") : 0;
}
