/* SPDX-License-Identifier: MIT */
#include "descent.h"

#include <string.h>

#include "place.h"
#include "walk.h"

struct level {
	void *dir;
	struct place mirror;
	const char *const *names; /* dir's */
	size_t n, next;
	size_t path_size; /* of the path to this directory */
	size_t n_fds;     /* that it holds */
};

struct descent {
	const struct descent_kind *kind;
	bool has_mirror;
	struct level *levels; /* the root first */
	size_t n, capacity;
	size_t first_open; /* levels before it have given up what can be found again */
	size_t n_fds;      /* of the levels from there on */
	struct sbx_buf path;
	const char *entry; /* name of the last entry, if it may be entered */
	bool leaving;      /* the last event was the WALK_LEAVE of the lowest level */
};

static void level_done(const struct descent *descent, struct level *level)
{
	if (level->dir)
		descent->kind->free(level->dir);
	level->dir = NULL;
	place_give_up(&level->mirror);
}

void descent_free(struct descent *descent)
{
	if (!descent)
		return;
	while (descent->n)
		level_done(descent, &descent->levels[--descent->n]);
	sbx_free_pointer(&descent->levels);
	sbx_buf_done(&descent->path);
	sbx_free_pointer(&descent);
}

int descent_new(const struct descent_kind *kind, bool has_mirror, struct descent **ret)
{
	struct descent *descent = calloc(1, sizeof(*descent));

	if (!descent || sbx_buf_append(&descent->path, "", 0) < 0) {
		sbx_free_pointer(&descent);
		return -ENOMEM;
	}
	descent->kind = kind;
	descent->has_mirror = has_mirror;
	*ret = descent;
	return 0;
}

/* Keeps the number of descriptors bounded; the lowest level stays open. */
static int close_upper(struct descent *descent)
{
	while (descent->n_fds > descent->kind->fds_max && descent->n - descent->first_open > 1) {
		struct level *level = &descent->levels[descent->first_open];
		int r = descent->kind->give_up(level->dir, level[1].dir);

		if (r < 0)
			return r;
		place_give_up(&level->mirror);
		descent->first_open++;
		descent->n_fds -= level->n_fds;
	}
	return 0;
}

int descent_push(
	struct descent *descent, void *dir, const char *const *names, size_t n, int mirror_fd)
{
	struct level level = {
		.dir = dir,
		.mirror.fd = mirror_fd,
		.names = names,
		.n = n,
		.path_size = descent->path.size,
		.n_fds = descent->kind->n_fds(dir),
	};
	int r = sbx_grow(&descent->levels, &descent->capacity, descent->n);

	if (r == 0 && descent->has_mirror)
		r = place_of(mirror_fd, &level.mirror);
	if (r < 0) {
		level_done(descent, &level);
		return r;
	}
	descent->levels[descent->n++] = level;
	descent->n_fds += level.n_fds;
	return close_upper(descent);
}

void *descent_dir(const struct descent *descent)
{
	return descent->n ? descent->levels[descent->n - 1].dir : NULL;
}

static int open_upper(struct descent *descent)
{
	struct level *low = &descent->levels[descent->n - 1], *up = low - 1;
	int r = descent->kind->find_again(up->dir, low->dir);

	if (r == 0 && descent->has_mirror)
		r = place_find_again(&up->mirror, low->mirror.fd);
	descent->first_open--;
	descent->n_fds += up->n_fds;
	return r;
}

static int pop(struct descent *descent)
{
	struct level *low = &descent->levels[descent->n - 1];
	int r = 0;

	if (descent->n - 1 == descent->first_open && descent->first_open > 0)
		r = open_upper(descent);
	descent->n_fds -= low->n_fds;
	level_done(descent, low);
	descent->n--;
	descent->leaving = false;
	return r;
}

static void cut_path(struct descent *descent, size_t size)
{
	descent->path.size = size;
	descent->path.data[size] = '\0';
}

static int extend_path(struct descent *descent, const char *name)
{
	int r = descent->path.size ? sbx_buf_append(&descent->path, "/", 1) : 0;

	return r < 0 ? r : sbx_buf_append_string(&descent->path, name);
}

int descent_next(struct descent *descent, struct descent_at *ret)
{
	struct level *level;
	const char *slash;
	int r = 0;

	descent->entry = NULL;
	if (descent->leaving)
		r = pop(descent);
	if (r < 0 || !descent->n)
		return r < 0 ? r : WALK_END;
	level = &descent->levels[descent->n - 1];
	cut_path(descent, level->path_size);
	descent->leaving = level->next == level->n;
	if (!descent->leaving) {
		r = extend_path(descent, level->names[level->next]);
		if (r < 0)
			return r;
	}
	slash = strrchr(descent->path.data, '/');
	*ret = (struct descent_at){
		.dir = level->dir,
		.mirror_fd = level->mirror.fd,
		.name = descent->leaving ? (slash ? slash + 1 : descent->path.data)
					 : level->names[level->next++],
		.path = descent->path.data,
	};
	return descent->leaving ? WALK_LEAVE : WALK_ENTRY;
}

const char *descent_path(const struct descent *descent)
{
	return descent->path.data;
}

void descent_may_enter(struct descent *descent)
{
	const struct level *level = &descent->levels[descent->n - 1];

	descent->entry = level->names[level->next - 1];
}

const char *descent_take_entry(struct descent *descent)
{
	return sbx_take(&descent->entry);
}

int descent_open_mirror(const struct descent *descent, const char *name, int *ret_fd)
{
	*ret_fd = -EBADF;
	if (!descent->has_mirror)
		return 0;
	*ret_fd = place_open(descent->levels[descent->n - 1].mirror.fd, name);
	return *ret_fd < 0 ? -errno : 0;
}
