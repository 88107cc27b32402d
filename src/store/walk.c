/* SPDX-License-Identifier: MIT */
#include "walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "descent.h"
#include "place.h"

struct tree_dir {
	struct place here;
	struct stat st;
	struct sbx_buf names; /* one after the other, each with its NUL */
	const char **sorted;
	size_t n;
};

struct walk {
	struct descent *descent;
};

static void tree_dir_free(void *data)
{
	struct tree_dir *dir = data;

	sbx_fd_close(&dir->here.fd);
	sbx_buf_done(&dir->names);
	sbx_free_pointer(&dir->sorted);
	free(dir);
}

static size_t tree_dir_n_fds(const void *data SBX_UNUSED)
{
	return 1;
}

static int tree_dir_give_up(void *data, const void *below SBX_UNUSED)
{
	struct tree_dir *dir = data;

	place_give_up(&dir->here);
	return 0;
}

static int tree_dir_find_again(void *data, const void *below)
{
	const struct tree_dir *low = below;
	struct tree_dir *dir = data;

	return place_find_again(&dir->here, low->here.fd);
}

static const struct descent_kind tree_kind = {
	.fds_max = WALK_OPEN_LEVELS,
	.free = tree_dir_free,
	.n_fds = tree_dir_n_fds,
	.give_up = tree_dir_give_up,
	.find_again = tree_dir_find_again,
};

void walk_free(struct walk *walk)
{
	if (!walk)
		return;
	descent_free(walk->descent);
	sbx_free_pointer(&walk);
}

static void close_dirp(DIR **dirp)
{
	int saved = errno;

	if (*dirp)
		(void)closedir(*dirp); /* only read from */
	errno = saved;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int read_names(struct tree_dir *dir)
{
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	struct dirent *entry;
	int own;

	own = place_open(dir->here.fd, ".");
	if (own < 0)
		return -errno;
	dirp = fdopendir(own);
	if (!dirp) {
		sbx_fd_close(&own);
		return -ENOMEM;
	}
	while (errno = 0, (entry = readdir(dirp))) {
		int r;

		if (is_dots(entry->d_name))
			continue;
		r = sbx_buf_append(&dir->names, entry->d_name, strlen(entry->d_name) + 1);
		if (r < 0)
			return r;
		dir->n++;
	}
	return -errno;
}

static int sort_names(struct tree_dir *dir)
{
	const char *at = dir->names.data;

	dir->sorted = calloc(dir->n + 1, sizeof(*dir->sorted));
	if (!dir->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < dir->n; i++, at += strlen(at) + 1)
		dir->sorted[i] = at;
	if (dir->n)
		qsort(dir->sorted, dir->n, sizeof(*dir->sorted), compare_names);
	return 0;
}

/* Takes both descriptors, also on failure. */
static int push(struct walk *walk, int fd, int mirror_fd)
{
	struct tree_dir *dir = calloc(1, sizeof(*dir));
	SBX_CLOSE int mirror = mirror_fd;
	int r = 0;

	if (!dir) {
		sbx_fd_close(&fd);
		return -ENOMEM;
	}
	r = place_of(fd, &dir->here);
	if (r == 0 && fstat(fd, &dir->st) < 0)
		r = -errno;
	if (r == 0)
		r = read_names(dir);
	if (r == 0)
		r = sort_names(dir);
	if (r < 0) {
		tree_dir_free(dir);
		return r;
	}
	return descent_push(walk->descent, dir, dir->sorted, dir->n, sbx_fd_take(&mirror));
}

static int reopen(int fd, int *ret)
{
	*ret = place_open(fd, ".");
	return *ret < 0 ? -errno : 0;
}

int walk_new(int root_fd, int mirror_fd, struct walk **ret, struct sbx_err *err)
{
	WALK struct walk *walk = calloc(1, sizeof(*walk));
	SBX_CLOSE int fd = -EBADF, mirror = -EBADF;
	int r = walk ? descent_new(&tree_kind, mirror_fd >= 0, &walk->descent) : -ENOMEM;

	if (r == 0)
		r = reopen(root_fd, &fd);
	if (r == 0 && mirror_fd >= 0)
		r = reopen(mirror_fd, &mirror);
	if (r == 0)
		r = push(walk, sbx_fd_take(&fd), sbx_fd_take(&mirror));
	if (r < 0)
		return sbx_err_set(err, -r, "read the root of a tree: %m");
	*ret = sbx_take(&walk);
	return 0;
}

static int look_at(struct walk *walk, struct walk_item *item)
{
	if (fstatat(item->dir_fd, item->name, &item->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? WALK_VANISHED : -errno;
	if (S_ISDIR(item->st.st_mode))
		descent_may_enter(walk->descent);
	return WALK_ENTRY;
}

int walk_next(struct walk *walk, struct walk_item *ret, struct sbx_err *err)
{
	const struct tree_dir *dir;
	struct descent_at at;
	int r = descent_next(walk->descent, &at);

	if (r < 0)
		return sbx_err_set(err, -r, "go on from %s: %m", descent_path(walk->descent));
	if (r == WALK_END)
		return r;
	dir = at.dir;
	*ret = (struct walk_item){
		.dir_fd = dir->here.fd,
		.mirror_fd = at.mirror_fd,
		.name = at.name,
		.path = at.path,
		.st = dir->st,
	};
	if (r == WALK_ENTRY)
		r = look_at(walk, ret);
	return r < 0 ? sbx_err_set(err, -r, "stat %s: %m", at.path) : r;
}

static int open_entry(const struct walk *walk, const char *name, int *ret_fd, int *ret_mirror)
{
	const struct tree_dir *dir = descent_dir(walk->descent);
	SBX_CLOSE int fd = place_open(dir->here.fd, name);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != dir->here.dev)
		return -EXDEV;
	r = descent_open_mirror(walk->descent, name, ret_mirror);
	if (r == 0)
		*ret_fd = sbx_fd_take(&fd);
	return r;
}

int walk_enter(struct walk *walk, struct sbx_err *err)
{
	const char *name = descent_take_entry(walk->descent);
	int fd = -EBADF, mirror = -EBADF;
	int r = name ? open_entry(walk, name, &fd, &mirror) : -ENOTDIR;

	if (r == 0)
		r = push(walk, fd, mirror);
	return r < 0 ? sbx_err_set(err, -r, "open directory %s: %m", descent_path(walk->descent))
		     : 0;
}
