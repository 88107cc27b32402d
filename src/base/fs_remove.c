/* SPDX-License-Identifier: MIT */
/*
 * Removing trees that a command made. Walks down and up with two descriptors at a time: the
 * directory and the one it came from, re-entered through ".." and checked by device and inode, so
 * neither depth nor a directory that is moved during the walk leads outside. The place in a
 * directory's list is kept while the walk is below it: beginning anew after each of its
 * directories would read the list's emptied blocks again and again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sbx/buf.h"
#include "sbx/fs.h"

#define RESOLVE_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct level {
	ino_t ino;
	long position;  /* in its list, where to go on; 0: from its begin */
	size_t name_at; /* in its parent, of the names */
};

struct walk {
	struct level *levels; /* from the top directory down */
	size_t n, capacity;
	struct sbx_buf names; /* of the levels, each with its NUL */
	dev_t dev;
};

static void walk_done(struct walk *walk)
{
	sbx_free_pointer(&walk->levels);
	sbx_buf_done(&walk->names);
}

static int push(struct walk *walk, int fd, const char *name)
{
	struct level *levels;
	struct stat st;
	size_t name_at = walk->names.size;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (walk->n && st.st_dev != walk->dev)
		return -EXDEV; /* a mount: never ours to empty */
	walk->dev = st.st_dev;
	if (walk->n == walk->capacity) {
		size_t capacity = walk->capacity ? 2 * walk->capacity : 64;

		levels = reallocarray(walk->levels, capacity, sizeof(*levels));
		if (!levels)
			return -ENOMEM;
		walk->levels = levels;
		walk->capacity = capacity;
	}
	if (sbx_buf_append(&walk->names, name, strlen(name) + 1) < 0)
		return -ENOMEM;
	walk->levels[walk->n++] = (struct level){.ino = st.st_ino, .name_at = name_at};
	return 0;
}

/* Opens a directory for emptying; one that bars even its owner is first given its rights back. */
static int open_for_removal(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, RESOLVE_FLAGS);

	if (fd < 0 && errno == EACCES) {
		(void)fchmodat(dir_fd, name, 0700, 0); /* the open below tells whether it helped */
		fd = openat(dir_fd, name, RESOLVE_FLAGS);
	}
	return fd < 0 ? -errno : fd;
}

/* Removes a file or an empty directory; 1: it is a directory with something in it. */
static int remove_entry(int fd, const char *name)
{
	int r;

	if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	r = -errno;
	if (r != -EISDIR && r != -EPERM)
		return r;
	if (unlinkat(fd, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno == ENOTEMPTY || errno == EEXIST)
		return 1;
	return errno == ENOTDIR ? r : -errno;
}

static int open_list(int fd, long position, DIR **ret)
{
	int copy = openat(fd, ".", RESOLVE_FLAGS);

	if (copy < 0)
		return -errno;
	*ret = fdopendir(copy);
	if (!*ret) {
		sbx_fd_close(&copy);
		return -ENOMEM;
	}
	if (position)
		seekdir(*ret, position);
	return 0;
}

/*
 * Removes what comes in the list from the level's position on. Returns 1 and the name of the first
 * directory met that is not empty, the position being behind it, or 0 at the end of the list.
 */
static int remove_entries(int fd, struct level *level, char ret_name[static 256])
{
	struct dirent *entry;
	DIR *dir;
	int r = open_list(fd, level->position, &dir);

	if (r < 0)
		return r;
	while (r == 0 && (errno = 0, (entry = readdir(dir)))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		r = remove_entry(fd, entry->d_name);
		if (r > 0) {
			(void)strcpy(ret_name, entry->d_name); /* d_name has at most 256 bytes */
			level->position = telldir(dir);
		}
	}
	if (r == 0)
		r = -errno;
	(void)closedir(dir); /* read-only: nothing to lose */
	return r;
}

/* Back to the parent; it must be the directory that we came from. */
static int step_up(struct walk *walk, int *fd)
{
	const struct level *low = &walk->levels[walk->n - 1], *parent = low - 1;
	SBX_CLOSE int up = openat(*fd, "..", RESOLVE_FLAGS);
	struct stat st;

	if (up < 0 || fstat(up, &st) < 0)
		return -errno;
	if (st.st_dev != walk->dev || st.st_ino != parent->ino)
		return -ESTALE;
	if (unlinkat(up, walk->names.data + low->name_at, AT_REMOVEDIR) < 0)
		return -errno;
	sbx_fd_close(fd);
	*fd = sbx_fd_take(&up);
	walk->names.size = low->name_at;
	walk->n--;
	return 0;
}

static int step_down(struct walk *walk, int *fd, const char *name)
{
	int next = open_for_removal(*fd, name);

	if (next < 0)
		return next;
	sbx_fd_close(fd);
	*fd = next;
	return push(walk, *fd, name);
}

static int empty_directory(struct walk *walk, int *fd)
{
	char name[256];
	int r;

	for (;;) {
		struct level *level = &walk->levels[walk->n - 1];

		r = remove_entries(*fd, level, name);
		if (r > 0)
			r = step_down(walk, fd, name);
		else if (r == 0 && level->position)
			/* tmpfs before 6.6 counts: what was removed moved the rest before it */
			level->position = 0;
		else if (r == 0 && walk->n == 1)
			return 0;
		else if (r == 0)
			r = step_up(walk, fd);
		if (r < 0)
			return r;
	}
}

int sbx_fs_remove_tree(int dir_fd, const char *name)
{
	SBX_CLOSE int fd = -EBADF;
	struct walk walk = {0};
	int r;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	fd = open_for_removal(dir_fd, name);
	if (fd < 0)
		return fd;
	r = push(&walk, fd, name);
	if (r == 0)
		r = empty_directory(&walk, &fd);
	walk_done(&walk);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}
