/* SPDX-License-Identifier: MIT */
#include "unshare.h"

#include <fcntl.h>
#include <stdio.h>

#include "content.h"
#include "dirlist.h"
#include "meta.h"
#include "trail.h"

#define MARK         "linked"
#define SCRATCH_NAME "unshared"

struct level {
	struct sbx_dirlist names;
	size_t next;
	struct timespec mtime; /* to put back */
};

struct unshare {
	int home_fd;
	struct sbx_trail *trail;
	struct level *levels;
	size_t n;
	size_t capacity;
};

static void unshare_done(struct unshare *u)
{
	for (size_t i = 0; i < u->n; i++)
		sbx_dirlist_done(&u->levels[i].names);
	sbx_free_pointer(&u->levels);
	sbx_trail_free(u->trail);
}

int sbx_unshare_mark(int home_fd)
{
	return symlinkat("layers", home_fd, MARK) < 0 && errno != EEXIST ? -errno : 0;
}

/* Begins with the directory that the trail is in. */
static int begin_dir(struct unshare *u)
{
	struct level level = {.next = 0};
	int fd = sbx_trail_tree(u->trail), r;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	level.mtime = st.st_mtim;
	if (sbx_grow(&u->levels, &u->capacity, u->n) < 0)
		return -ENOMEM;
	r = sbx_dirlist_read(fd, SIZE_MAX, &level.names);
	if (r == 0)
		u->levels[u->n++] = level;
	return r;
}

static int end_dir(struct unshare *u)
{
	struct level *level = &u->levels[--u->n];
	int fd = sbx_trail_tree(u->trail);
	int r = fd < 0 ? fd : sbx_mtime_set(fd, ".", &level->mtime);

	sbx_dirlist_done(&level->names);
	if (r == 0 && u->n)
		sbx_trail_leave(u->trail);
	return r;
}

/* The name shows the shared inode, then the copy; never nothing. */
static int replace(struct unshare *u, int fd, const char *name)
{
	int r;

	if (unlinkat(u->home_fd, SCRATCH_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	r = sbx_file_copy(fd, name, u->home_fd, SCRATCH_NAME);
	if (r == 0 && renameat(u->home_fd, SCRATCH_NAME, fd, name) < 0)
		r = -errno;
	return r;
}

static bool is_shared(const struct stat *st)
{
	/* whiteouts share one inode, which nobody writes to */
	return st->st_nlink > 1 &&
	       (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) || S_ISFIFO(st->st_mode));
}

static int visit(struct unshare *u, const char *name)
{
	int fd = sbx_trail_tree(u->trail), r;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return is_shared(&st) ? replace(u, fd, name) : 0;
	r = sbx_trail_enter(u->trail, name, NULL);
	return r < 0 ? r : begin_dir(u);
}

static int unshare_all(struct unshare *u, int tree_fd)
{
	int r = sbx_trail_new(tree_fd, NULL, NULL, &u->trail);

	if (r == 0)
		r = begin_dir(u);
	while (r == 0 && u->n) {
		struct level *level = &u->levels[u->n - 1];

		if (level->next < level->names.n) {
			size_t i = level->next++;

			r = visit(u, sbx_dirlist_name(&level->names, i));
		} else {
			r = end_dir(u);
		}
	}
	return r;
}

int sbx_unshare_tree(int home_fd, const char *tree_name, struct sbx_err *err)
{
	SBX_CLEANUP(unshare_done) struct unshare u = {.home_fd = home_fd};
	SBX_CLOSE int tree_fd = -EBADF;
	struct stat st;
	int r;

	if (fstatat(home_fd, MARK, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	tree_fd = openat(home_fd, tree_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree_fd < 0)
		return errno == ENOENT ? 0 : sbx_err_set(err, errno, "open the changed files: %m");
	r = unshare_all(&u, tree_fd);
	if (r == 0 && unlinkat(home_fd, MARK, 0) < 0)
		r = -errno;
	return r < 0 ? sbx_err_set(err, -r, "part the changed files from the layers: %m") : 0;
}
