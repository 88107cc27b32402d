/* SPDX-License-Identifier: MIT */
/* Durability of what was captured. */
#include <fcntl.h>
#include <unistd.h>

#include "changeset_walk.h"
#include "content.h"
#include "publication.h"

#define WRITE_AND_WAIT                                                                             \
	(SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)

/* The first two are hints: whether all went well shows in the last. */
static int run_phase(int fd, enum sbx_sync_phase phase)
{
	switch (phase) {
	case SBX_SYNC_START:
		(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
		return 0;
	case SBX_SYNC_WAIT:
		(void)sync_file_range(fd, 0, 0, WRITE_AND_WAIT);
		return 0;
	case SBX_SYNC_DONE:
	case SBX_SYNC_N_PHASES:
		break;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int sbx_publish_sync_phase(
	int dir_fd, const char *name, enum sbx_sync_phase phase, struct sbx_err *err)
{
	SBX_CLOSE int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r = fd < 0 ? -errno : run_phase(fd, phase);

	return r < 0 ? sbx_err_set(err, -r, "sync %s: %m", name) : 0;
}

struct sync {
	const struct sbx_changeset *set;
	enum sbx_sync_phase phase;
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
	return fd < 0 ? fd : run_phase(fd, sync->phase);
}

static int sync_dir(void *data, struct sbx_trail *trail, uint32_t index SBX_UNUSED)
{
	const struct sync *sync = data;
	int fd;

	if (sync->phase != SBX_SYNC_DONE)
		return 0;
	fd = sbx_trail_tree(trail);
	return fd < 0 ? fd : run_phase(fd, sync->phase);
}

int sbx_publish_sync_each(const struct sbx_changeset *set, int tree_fd, enum sbx_sync_phase phase,
	struct sbx_err *err)
{
	struct sync sync = {.set = set, .phase = phase};
	struct sbx_changeset_walk walk = {.visit = sync_file, .leave = sync_dir, .data = &sync};
	SBX_TRAIL struct sbx_trail *trail = NULL;
	int r = sbx_trail_new(tree_fd, NULL, NULL, &trail);

	if (r == 0)
		r = sbx_changeset_walk(set, trail, &walk);
	return r < 0 ? sbx_err_set(err, -r, "make the changed files durable: %m") : 0;
}

int sbx_publish_sync_all(int fd, struct sbx_err *err)
{
	return syncfs(fd) < 0 ? sbx_err_set(err, errno, "make the changed files durable: %m") : 0;
}
