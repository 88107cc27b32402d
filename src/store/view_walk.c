/* SPDX-License-Identifier: MIT */
#include "view_walk.h"

#include "descent.h"
#include "place.h"

struct shown_dir {
	struct sbx_view_dir *dir;
	struct sbx_node node;
	char **names;
	size_t n;
	bool is_covered; /* it or a directory above it covers what is below */
};

struct view_walk {
	struct descent *descent;
	bool with_whiteouts;
};

static void shown_dir_free(void *data)
{
	struct shown_dir *shown = data;

	sbx_view_dir_free(shown->dir);
	sbx_names_free(shown->names);
	free(shown);
}

static size_t shown_dir_n_fds(const void *data)
{
	const struct shown_dir *shown = data;

	return view_dir_n_fds(shown->dir) + 1; /* its mirror */
}

static int shown_dir_give_up(void *data, const void *below)
{
	const struct shown_dir *shown = data, *low = below;

	return view_dir_give_up(shown->dir, low->dir);
}

static int shown_dir_find_again(void *data, const void *below)
{
	const struct shown_dir *shown = data, *low = below;

	return view_dir_find_again(shown->dir, low->dir);
}

static const struct descent_kind view_kind = {
	.fds_max = VIEW_WALK_OPEN_FDS,
	.free = shown_dir_free,
	.n_fds = shown_dir_n_fds,
	.give_up = shown_dir_give_up,
	.find_again = shown_dir_find_again,
};

void view_walk_free(struct view_walk *walk)
{
	if (!walk)
		return;
	descent_free(walk->descent);
	sbx_free_pointer(&walk);
}

/* Takes dir and the descriptor, also on failure. */
static int push(struct view_walk *walk, struct sbx_view_dir *dir, int mirror_fd)
{
	const struct shown_dir *above = descent_dir(walk->descent);
	struct shown_dir *shown = calloc(1, sizeof(*shown));
	SBX_CLOSE int mirror = mirror_fd;
	int r;

	if (!shown) {
		sbx_view_dir_free(dir);
		return -ENOMEM;
	}
	shown->dir = dir;
	shown->is_covered = view_dir_covers(dir) || (above && above->is_covered);
	r = sbx_view_dir_node(dir, &shown->node);
	if (r == 0)
		r = walk->with_whiteouts ? view_dir_list_raw(dir, &shown->names, &shown->n)
					 : sbx_view_dir_list(dir, &shown->names, &shown->n);
	if (r < 0) {
		shown_dir_free(shown);
		return r;
	}
	return descent_push(walk->descent, shown, (const char *const *)shown->names, shown->n,
		sbx_fd_take(&mirror));
}

int view_walk_new(struct sbx_view *view, int mirror_fd, bool with_whiteouts, struct view_walk **ret,
	struct sbx_err *err)
{
	VIEW_WALK struct view_walk *walk = calloc(1, sizeof(*walk));
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	SBX_CLOSE int mirror = -EBADF;
	int r = walk ? descent_new(&view_kind, mirror_fd >= 0, &walk->descent) : -ENOMEM;

	if (r == 0)
		r = sbx_view_dir_open(view, "", &dir);
	if (r == 0 && mirror_fd >= 0 && (mirror = place_open(mirror_fd, ".")) < 0)
		r = -errno;
	if (r == 0) {
		walk->with_whiteouts = with_whiteouts;
		r = push(walk, sbx_take(&dir), sbx_fd_take(&mirror));
	}
	if (r < 0)
		return sbx_err_set(err, -r, "read the root of a view: %m");
	*ret = sbx_take(&walk);
	return 0;
}

static int look_at(struct view_walk *walk, struct view_walk_item *item)
{
	int r = sbx_view_dir_lookup(item->dir, item->name, &item->node);

	/* what is listed and not shown is hidden by a whiteout */
	item->is_whiteout = r == -ENOENT && walk->with_whiteouts;
	if (r < 0 && !item->is_whiteout)
		return r;
	if (r == 0 && S_ISDIR(item->node.st.st_mode))
		descent_may_enter(walk->descent);
	return WALK_ENTRY;
}

int view_walk_next(struct view_walk *walk, struct view_walk_item *ret, struct sbx_err *err)
{
	const struct shown_dir *shown;
	struct descent_at at;
	int r = descent_next(walk->descent, &at);

	if (r < 0)
		return sbx_err_set(err, -r, "go on from %s: %m", descent_path(walk->descent));
	if (r == WALK_END)
		return r;
	shown = at.dir;
	*ret = (struct view_walk_item){
		.dir = shown->dir,
		.mirror_fd = at.mirror_fd,
		.is_covered = shown->is_covered,
		.name = at.name,
		.path = at.path,
	};
	if (r == WALK_LEAVE)
		ret->node = shown->node;
	else
		r = look_at(walk, ret);
	return r < 0 ? sbx_err_set(err, -r, "stat %s: %m", at.path) : r;
}

int view_walk_enter(struct view_walk *walk, struct sbx_err *err)
{
	const struct shown_dir *shown = descent_dir(walk->descent);
	const char *name = descent_take_entry(walk->descent);
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	SBX_CLOSE int mirror = -EBADF;
	int r = name ? sbx_view_dir_enter(shown->dir, name, &dir) : -ENOTDIR;

	if (r == 0)
		r = descent_open_mirror(walk->descent, name, &mirror);
	if (r == 0)
		r = push(walk, sbx_take(&dir), sbx_fd_take(&mirror));
	return r < 0 ? sbx_err_set(err, -r, "open directory %s: %m", descent_path(walk->descent))
		     : 0;
}
