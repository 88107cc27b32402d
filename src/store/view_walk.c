/* SPDX-License-Identifier: MIT */
#include "view_walk.h"

#include <string.h>

#include "place.h"

struct level {
	struct sbx_view_dir *dir;
	struct place mirror;
	struct sbx_node node;
	char **names;
	size_t n, next;
	bool is_covered; /* it or a directory above it covers what is below */
	size_t path_size;
	size_t n_fds; /* that dir holds when it is open */
};

struct view_walk {
	struct level *levels; /* the root first */
	size_t n, capacity;
	size_t first_open; /* levels before it have given up what can be found again */
	size_t n_fds;      /* of the levels from there on */
	bool has_mirror, with_whiteouts;
	struct sbx_buf path;
	const char *entry; /* name of the last WALK_ENTRY that may be entered, or NULL */
	bool leaving;      /* the last event was the WALK_LEAVE of the lowest level */
};

static void level_done(struct level *level)
{
	sbx_view_dir_free(level->dir);
	level->dir = NULL;
	place_give_up(&level->mirror);
	sbx_names_free(level->names);
	level->names = NULL;
}

void view_walk_free(struct view_walk *walk)
{
	if (!walk)
		return;
	while (walk->n)
		level_done(&walk->levels[--walk->n]);
	sbx_free_pointer(&walk->levels);
	sbx_buf_done(&walk->path);
	sbx_free_pointer(&walk);
}

static int reserve(struct view_walk *walk)
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

/* Keeps the number of descriptors bounded by giving up the topmost level that is open. */
static int close_upper(struct view_walk *walk)
{
	while (walk->n_fds > VIEW_WALK_OPEN_FDS && walk->n - walk->first_open > 1) {
		struct level *level = &walk->levels[walk->first_open];
		int r = view_dir_give_up(level->dir, level[1].dir);

		if (r < 0)
			return r;
		place_give_up(&level->mirror);
		walk->first_open++;
		walk->n_fds -= level->n_fds;
		level->n_fds = view_dir_n_fds(level->dir);
	}
	return 0;
}

/* Takes dir and the descriptor, also on failure. */
static int push(struct view_walk *walk, struct sbx_view_dir *dir, int mirror_fd)
{
	SBX_CLEANUP(level_done)
	struct level level = {
		.dir = dir,
		.mirror.fd = mirror_fd,
		.is_covered =
			view_dir_covers(dir) || (walk->n && walk->levels[walk->n - 1].is_covered),
		.path_size = walk->path.size,
		.n_fds = view_dir_n_fds(dir) + walk->has_mirror,
	};
	int r = reserve(walk);

	if (r == 0 && walk->has_mirror)
		r = place_of(mirror_fd, &level.mirror);
	if (r == 0)
		r = sbx_view_dir_node(dir, &level.node);
	if (r == 0)
		r = walk->with_whiteouts ? view_dir_list_raw(dir, &level.names, &level.n)
					 : sbx_view_dir_list(dir, &level.names, &level.n);
	if (r < 0)
		return r;
	walk->levels[walk->n++] = level;
	walk->n_fds += level.n_fds;
	level = (struct level){.mirror.fd = -EBADF};
	return close_upper(walk);
}

int view_walk_new(struct sbx_view *view, int mirror_fd, bool with_whiteouts, struct view_walk **ret,
	struct sbx_err *err)
{
	VIEW_WALK struct view_walk *walk = calloc(1, sizeof(*walk));
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	SBX_CLOSE int mirror = -EBADF;
	int r;

	if (!walk)
		return sbx_err_set(err, ENOMEM, "walk a view: %m");
	walk->has_mirror = mirror_fd >= 0;
	walk->with_whiteouts = with_whiteouts;
	r = sbx_buf_append(&walk->path, "", 0);
	if (r == 0)
		r = sbx_view_dir_open(view, "", &dir);
	if (r == 0 && walk->has_mirror && (mirror = place_open(mirror_fd, ".")) < 0)
		r = -errno;
	if (r == 0)
		r = push(walk, sbx_take(&dir), sbx_fd_take(&mirror));
	if (r < 0)
		return sbx_err_set(err, -r, "read the root of a view: %m");
	*ret = sbx_take(&walk);
	return 0;
}

static int open_upper(struct view_walk *walk)
{
	struct level *low = &walk->levels[walk->n - 1], *up = low - 1;
	int r = view_dir_find_again(up->dir, low->dir);

	if (r == 0 && walk->has_mirror)
		r = place_find_again(&up->mirror, low->mirror.fd);
	up->n_fds = view_dir_n_fds(up->dir) + walk->has_mirror;
	walk->first_open--;
	walk->n_fds += up->n_fds;
	return r;
}

static int pop(struct view_walk *walk)
{
	struct level *low = &walk->levels[walk->n - 1];
	int r = 0;

	if (walk->n - 1 == walk->first_open && walk->first_open > 0)
		r = open_upper(walk);
	walk->n_fds -= low->n_fds;
	level_done(low);
	walk->n--;
	walk->leaving = false;
	return r;
}

static int extend_path(struct view_walk *walk, size_t size, const char *name)
{
	int r = 0;

	walk->path.size = size;
	if (size)
		r = sbx_buf_append(&walk->path, "/", 1);
	return r < 0 ? r : sbx_buf_append_string(&walk->path, name);
}

static int give_entry(struct view_walk *walk, struct level *level, struct view_walk_item *ret)
{
	const char *name = level->names[level->next++];
	int r = extend_path(walk, level->path_size, name);

	if (r < 0)
		return r;
	*ret = (struct view_walk_item){
		.dir = level->dir,
		.mirror_fd = level->mirror.fd,
		.is_covered = level->is_covered,
		.name = name,
		.path = walk->path.data,
	};
	r = sbx_view_dir_lookup(level->dir, name, &ret->node);
	/* what is listed and not shown is hidden by a whiteout */
	ret->is_whiteout = r == -ENOENT && walk->with_whiteouts;
	if (r < 0 && !ret->is_whiteout)
		return r;
	if (r == 0 && S_ISDIR(ret->node.st.st_mode))
		walk->entry = name;
	return WALK_ENTRY;
}

static int give_leave(struct view_walk *walk, struct level *level, struct view_walk_item *ret)
{
	const char *slash;

	walk->path.size = level->path_size;
	walk->path.data[level->path_size] = '\0';
	slash = strrchr(walk->path.data, '/');
	*ret = (struct view_walk_item){
		.dir = level->dir,
		.mirror_fd = level->mirror.fd,
		.is_covered = level->is_covered,
		.name = slash ? slash + 1 : walk->path.data,
		.path = walk->path.data,
		.node = level->node,
	};
	walk->leaving = true;
	return WALK_LEAVE;
}

int view_walk_next(struct view_walk *walk, struct view_walk_item *ret, struct sbx_err *err)
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
	if (level->next == level->n)
		return give_leave(walk, level, ret);
	r = give_entry(walk, level, ret);
	return r < 0 ? sbx_err_set(err, -r, "stat %s: %m", walk->path.data) : r;
}

int view_walk_enter(struct view_walk *walk, struct sbx_err *err)
{
	struct level *level = &walk->levels[walk->n - 1];
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	SBX_CLOSE int mirror = -EBADF;
	int r = walk->entry ? 0 : -ENOTDIR;

	if (r == 0)
		r = sbx_view_dir_enter(level->dir, walk->entry, &dir);
	if (r == 0 && walk->has_mirror && (mirror = place_open(level->mirror.fd, walk->entry)) < 0)
		r = -errno;
	walk->entry = NULL;
	if (r == 0)
		r = push(walk, sbx_take(&dir), sbx_fd_take(&mirror));
	return r < 0 ? sbx_err_set(err, -r, "open directory %s: %m", walk->path.data) : 0;
}
