/* SPDX-License-Identifier: MIT */
/*
 * Removing trees that a command made. Walks down and up with two descriptors at a time: the
 * directory and the one it came from, re-entered through ".." and checked by device and inode, so
 * neither depth nor a directory that is moved during the walk leads outside.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sbx/fs.h"

#define RESOLVE_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct level {
	dev_t dev;
	ino_t ino;
	char name[256]; /* in its parent */
};

struct walk {
	struct level *levels; /* from the top directory down */
	size_t n, capacity;
	dev_t dev;
};

static int push(struct walk *walk, int fd, const char *name)
{
	struct level *levels;
	struct stat st;

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
	walk->levels[walk->n].dev = st.st_dev;
	walk->levels[walk->n].ino = st.st_ino;
	(void)strncpy(walk->levels[walk->n].name, name, 255); /* names have at most 255 bytes */
	walk->levels[walk->n].name[255] = '\0';
	walk->n++;
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

/* Unlinks all but directories; returns 1 and the name of the first directory met, 0 when empty. */
static int unlink_entries(int fd, char ret_name[static 256])
{
	int copy = openat(fd, ".", RESOLVE_FLAGS);
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	if (copy < 0)
		return -errno;
	dir = fdopendir(copy);
	if (!dir) {
		sbx_fd_close(&copy);
		return -ENOMEM;
	}
	while (errno = 0, (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0)
			continue;
		if (errno == EISDIR || errno == EPERM) {
			(void)strcpy(ret_name, entry->d_name); /* d_name has at most 256 bytes */
			r = 1;
			break;
		}
		if (errno != ENOENT) {
			r = -errno;
			break;
		}
	}
	if (r == 0 && errno)
		r = -errno;
	(void)closedir(dir); /* read-only: nothing to lose */
	return r;
}

/* Back to the parent; it must be the directory that we came from. */
static int step_up(struct walk *walk, int *fd)
{
	const struct level *parent = &walk->levels[walk->n - 2];
	SBX_CLOSE int up = openat(*fd, "..", RESOLVE_FLAGS);
	struct stat st;

	if (up < 0 || fstat(up, &st) < 0)
		return -errno;
	if (st.st_dev != parent->dev || st.st_ino != parent->ino)
		return -ESTALE;
	if (unlinkat(up, walk->levels[walk->n - 1].name, AT_REMOVEDIR) < 0)
		return -errno;
	sbx_fd_close(fd);
	*fd = sbx_fd_take(&up);
	walk->n--;
	return 0;
}

static int empty_directory(struct walk *walk, int *fd)
{
	char name[256];
	int r, next;

	for (;;) {
		r = unlink_entries(*fd, name);
		if (r < 0)
			return r;
		if (r == 0) {
			if (walk->n == 1)
				return 0;
			r = step_up(walk, fd);
			if (r < 0)
				return r;
			continue;
		}
		next = open_for_removal(*fd, name);
		if (next < 0)
			return next;
		sbx_fd_close(fd);
		*fd = next;
		r = push(walk, *fd, name);
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
	free(walk.levels);
	if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}
