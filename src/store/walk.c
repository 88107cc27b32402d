/* SPDX-License-Identifier: MIT */
#include "walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "place.h"

struct level {
	struct place here, mirror;
	struct stat st;
	struct sbx_buf names; /* one after the other, each with its NUL */
	const char **sorted;
	size_t n, next;
	size_t path_size; /* of the path to this directory */
};

struct walk {
	struct level *levels; /* the root first */
	size_t n, capacity;
	size_t first_open; /* levels before it (but for the root) have given their descriptors up */
	bool has_mirror;
	struct sbx_buf path;
	const char *entry; /* name of the last WALK_ENTRY that may be entered, or NULL */
	bool leaving;      /* the last event was the WALK_LEAVE of the lowest level */
};

static void level_done(struct level *level)
{
	sbx_fd_close(&level->here.fd);
	sbx_fd_close(&level->mirror.fd);
	sbx_buf_done(&level->names);
	sbx_free_pointer(&level->sorted);
}

void walk_free(struct walk *walk)
{
	if (!walk)
		return;
	while (walk->n)
		level_done(&walk->levels[--walk->n]);
	sbx_free_pointer(&walk->levels);
	sbx_buf_done(&walk->path);
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

static int read_names(int fd, struct level *level)
{
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	struct dirent *entry;
	int own;

	own = place_open(fd, ".");
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
		r = sbx_buf_append(&level->names, entry->d_name, strlen(entry->d_name) + 1);
		if (r < 0)
			return r;
		level->n++;
	}
	return -errno;
}

static int sort_names(struct level *level)
{
	const char *at = level->names.data;

	level->sorted = calloc(level->n + 1, sizeof(*level->sorted));
	if (!level->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < level->n; i++, at += strlen(at) + 1)
		level->sorted[i] = at;
	if (level->n)
		qsort(level->sorted, level->n, sizeof(*level->sorted), compare_names);
	return 0;
}

static int reserve(struct walk *walk)
{
	size_t capacity = SBX_MAX(walk->capacity * 2, (size_t)16);
	struct level *levels;

	if (walk->n < walk->capacity)
		return 0;
	levels = reallocarray(walk->levels, capacity, sizeof(*levels));
	if (!levels)
		return -ENOMEM;
	walk->levels = levels;
	walk->capacity = capacity;
	return 0;
}

/* Keeps the number of open levels bounded by closing the topmost that is open. */
static void close_upper(struct walk *walk)
{
	if (walk->n - walk->first_open <= WALK_OPEN_LEVELS)
		return;
	place_give_up(&walk->levels[walk->first_open].here);
	place_give_up(&walk->levels[walk->first_open].mirror);
	walk->first_open++;
}

/* Takes both descriptors, also on failure. */
static int push(struct walk *walk, int fd, int mirror_fd)
{
	SBX_CLEANUP(level_done)
	struct level level = {
		.here.fd = fd,
		.mirror.fd = mirror_fd,
		.path_size = walk->path.size,
	};
	int r = reserve(walk);

	if (r == 0)
		r = place_of(fd, &level.here);
	if (r == 0 && walk->has_mirror)
		r = place_of(mirror_fd, &level.mirror);
	if (r == 0 && fstat(fd, &level.st) < 0)
		r = -errno;
	if (r == 0)
		r = read_names(fd, &level);
	if (r == 0)
		r = sort_names(&level);
	if (r < 0)
		return r;
	walk->levels[walk->n++] = level;
	level = (struct level){.here.fd = -EBADF, .mirror.fd = -EBADF};
	close_upper(walk);
	return 0;
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
	int r;

	if (!walk)
		return sbx_err_set(err, ENOMEM, "walk a tree: %m");
	walk->has_mirror = mirror_fd >= 0;
	r = sbx_buf_append(&walk->path, "", 0);
	if (r == 0)
		r = reopen(root_fd, &fd);
	if (r == 0 && walk->has_mirror)
		r = reopen(mirror_fd, &mirror);
	if (r == 0)
		r = push(walk, sbx_fd_take(&fd), sbx_fd_take(&mirror));
	if (r < 0)
		return sbx_err_set(err, -r, "read the root of a tree: %m");
	*ret = sbx_take(&walk);
	return 0;
}

static int pop(struct walk *walk)
{
	struct level *low = &walk->levels[walk->n - 1];
	int r = 0;

	if (walk->n - 1 == walk->first_open && walk->first_open > 0) {
		struct level *up = low - 1;

		r = place_find_again(&up->here, low->here.fd);
		if (r == 0 && walk->has_mirror)
			r = place_find_again(&up->mirror, low->mirror.fd);
		walk->first_open--;
	}
	level_done(low);
	walk->n--;
	walk->leaving = false;
	return r;
}

static void cut_path(struct walk *walk, size_t size)
{
	walk->path.size = size;
	walk->path.data[size] = '\0';
}

static int extend_path(struct walk *walk, const char *name)
{
	int r = 0;

	if (walk->path.size)
		r = sbx_buf_append(&walk->path, "/", 1);
	return r < 0 ? r : sbx_buf_append_string(&walk->path, name);
}

static int give_entry(struct walk *walk, struct level *level, struct walk_item *ret)
{
	const char *name = level->sorted[level->next++];
	int r = extend_path(walk, name);

	if (r < 0)
		return r;
	*ret = (struct walk_item){
		.dir_fd = level->here.fd,
		.mirror_fd = level->mirror.fd,
		.name = name,
		.path = walk->path.data,
	};
	if (fstatat(level->here.fd, name, &ret->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? WALK_VANISHED : -errno;
	if (S_ISDIR(ret->st.st_mode))
		walk->entry = name;
	return WALK_ENTRY;
}

static int give_leave(struct walk *walk, struct level *level, struct walk_item *ret)
{
	const char *slash = strrchr(walk->path.data, '/');

	*ret = (struct walk_item){
		.dir_fd = level->here.fd,
		.mirror_fd = level->mirror.fd,
		.name = slash ? slash + 1 : walk->path.data,
		.path = walk->path.data,
		.st = level->st,
	};
	walk->leaving = true;
	return WALK_LEAVE;
}

int walk_next(struct walk *walk, struct walk_item *ret, struct sbx_err *err)
{
	struct level *level;
	int r = 0;

	walk->entry = NULL;
	if (walk->leaving)
		r = pop(walk);
	if (r < 0)
		return sbx_err_set(err, -r, "go back up from %s: %m", walk->path.data);
	if (!walk->n)
		return WALK_END;
	level = &walk->levels[walk->n - 1];
	cut_path(walk, level->path_size);
	if (level->next == level->n)
		return give_leave(walk, level, ret);
	r = give_entry(walk, level, ret);
	return r < 0 ? sbx_err_set(err, -r, "stat %s: %m", walk->path.data) : r;
}

static int open_entry(const struct walk *walk, int *ret_fd, int *ret_mirror)
{
	const struct level *level = &walk->levels[walk->n - 1];
	SBX_CLOSE int fd = place_open(level->here.fd, walk->entry);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != level->here.dev)
		return -EXDEV;
	if (walk->has_mirror) {
		*ret_mirror = place_open(level->mirror.fd, walk->entry);
		if (*ret_mirror < 0)
			return -errno;
	}
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int walk_enter(struct walk *walk, struct sbx_err *err)
{
	int fd = -EBADF, mirror = -EBADF, r;

	if (!walk->entry)
		return sbx_err_set(err, ENOTDIR, "enter %s: %m", walk->path.data);
	r = open_entry(walk, &fd, &mirror);
	if (r == 0)
		r = push(walk, fd, mirror);
	walk->entry = NULL;
	return r < 0 ? sbx_err_set(err, -r, "open directory %s: %m", walk->path.data) : 0;
}
