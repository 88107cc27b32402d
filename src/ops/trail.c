/* SPDX-License-Identifier: MIT */
#include "trail.h"

#include <fcntl.h>
#include <string.h>

#include "changeset.h"

/* Steps whose descriptors stay open. A step of a view holds one for each layer. */
#define TREE_WINDOW 32
#define VIEW_WINDOW 6

enum step_state {
	STEP_CLOSED = 0,
	STEP_OPEN,
	STEP_NONE, /* there is no such directory */
};

struct step {
	char *name;
	char *origin; /* NULL: as the name says */
	int tree_fd;
	struct sbx_view_dir *dirs[SBX_TRAIL_N_VIEWS];
	enum step_state states[SBX_TRAIL_N_VIEWS];
};

struct sbx_trail {
	struct sbx_view *views[SBX_TRAIL_N_VIEWS];
	dev_t dev;
	struct step *steps; /* [0] is the root; its tree_fd is borrowed */
	size_t n;
	size_t capacity;
};

static void close_view(struct step *step, enum sbx_trail_column column)
{
	sbx_view_dir_free(step->dirs[column]);
	step->dirs[column] = NULL;
	if (step->states[column] == STEP_OPEN)
		step->states[column] = STEP_CLOSED;
}

static void step_done(struct step *step)
{
	for (int i = 0; i < SBX_TRAIL_N_VIEWS; i++)
		close_view(step, (enum sbx_trail_column)i);
	sbx_fd_close(&step->tree_fd);
	sbx_free_pointer(&step->name);
	sbx_free_pointer(&step->origin);
}

void sbx_trail_free(struct sbx_trail *trail)
{
	if (!trail)
		return;
	if (trail->n)
		trail->steps[0].tree_fd = -EBADF; /* borrowed */
	for (size_t i = 0; i < trail->n; i++)
		step_done(&trail->steps[i]);
	sbx_free_pointer(&trail->steps);
	sbx_free_pointer(&trail);
}

static int push(struct sbx_trail *trail, const char *name, const char *origin)
{
	struct step step = {.tree_fd = -EBADF};

	if (sbx_grow(&trail->steps, &trail->capacity, trail->n) < 0)
		return -ENOMEM;
	step.name = strdup(name);
	step.origin = origin ? strdup(origin) : NULL;
	if (!step.name || (origin && !step.origin)) {
		step_done(&step);
		return -ENOMEM;
	}
	trail->steps[trail->n++] = step;
	return 0;
}

int sbx_trail_new(int tree_fd, struct sbx_view *base, struct sbx_view *head, struct sbx_trail **ret)
{
	SBX_TRAIL struct sbx_trail *trail = calloc(1, sizeof(*trail));
	struct stat st;
	int r;

	if (!trail)
		return -ENOMEM;
	r = push(trail, "", NULL);
	if (r < 0)
		return r;
	trail->views[SBX_TRAIL_BASE] = base;
	trail->views[SBX_TRAIL_HEAD] = head;
	trail->views[SBX_TRAIL_ORIGIN] = base;
	trail->steps[0].tree_fd = tree_fd;
	if (tree_fd >= 0) {
		if (fstat(tree_fd, &st) < 0)
			return -errno;
		trail->dev = st.st_dev;
	}
	*ret = sbx_take(&trail);
	return 0;
}

/* Lets go what is out of the window that ends at step top, but for the root. */
static void shrink(struct sbx_trail *trail, size_t top)
{
	if (top > TREE_WINDOW)
		sbx_fd_close(&trail->steps[top - TREE_WINDOW].tree_fd);
	if (top > VIEW_WINDOW)
		for (int i = 0; i < SBX_TRAIL_N_VIEWS; i++)
			close_view(&trail->steps[top - VIEW_WINDOW], (enum sbx_trail_column)i);
}

int sbx_trail_enter(struct sbx_trail *trail, const char *name, const char *origin)
{
	int r;

	if (trail->n > SBX_CHANGESET_DEPTH_MAX)
		return -ELOOP;
	r = push(trail, name, origin);
	if (r < 0)
		return r;
	shrink(trail, trail->n - 1);
	return 0;
}

void sbx_trail_leave(struct sbx_trail *trail)
{
	step_done(&trail->steps[--trail->n]);
}

size_t sbx_trail_depth(const struct sbx_trail *trail)
{
	return trail->n - 1;
}

static int open_tree_step(struct sbx_trail *trail, size_t i)
{
	SBX_CLOSE int fd = openat(trail->steps[i - 1].tree_fd, trail->steps[i].name,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != trail->dev)
		return -EXDEV;
	trail->steps[i].tree_fd = sbx_fd_take(&fd);
	return 0;
}

int sbx_trail_tree(struct sbx_trail *trail)
{
	size_t top = trail->n - 1, i = top;

	while (i > 0 && trail->steps[i].tree_fd < 0)
		i--;
	if (trail->steps[i].tree_fd < 0)
		return -EBADF;
	for (i++; i <= top; i++) {
		int r = open_tree_step(trail, i);

		if (r < 0)
			return r;
		/* on the way to a place far below only the last steps stay open */
		if (i > 1 && top - i + 1 >= TREE_WINDOW)
			sbx_fd_close(&trail->steps[i - 1].tree_fd);
	}
	return trail->steps[top].tree_fd;
}

/* A view without a directory at an origin is an error: the files of a rename would be lost. */
static int open_view_step(struct sbx_trail *trail, size_t i, enum sbx_trail_column column)
{
	struct step *step = &trail->steps[i];
	const char *origin = column == SBX_TRAIL_ORIGIN ? step->origin : NULL;
	struct step *parent = i ? step - 1 : NULL;
	int r = -ENOENT;

	if (i == 0 || origin) {
		if (trail->views[column])
			r = sbx_view_dir_open(
				trail->views[column], origin ? origin : "", &step->dirs[column]);
		if (r < 0 && origin)
			return r;
	} else if (parent->states[column] == STEP_OPEN) {
		r = sbx_view_dir_enter(parent->dirs[column], step->name, &step->dirs[column]);
	}
	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		return r;
	step->states[column] = r < 0 ? STEP_NONE : STEP_OPEN;
	return 0;
}

int sbx_trail_view(struct sbx_trail *trail, enum sbx_trail_column column, struct sbx_view_dir **ret)
{
	size_t top = trail->n - 1, i = top;

	while (i > 0 && trail->steps[i].states[column] == STEP_CLOSED &&
		!(column == SBX_TRAIL_ORIGIN && trail->steps[i].origin))
		i--;
	if (trail->steps[i].states[column] != STEP_CLOSED)
		i++;
	for (; i <= top; i++) {
		int r;

		if (trail->steps[i].states[column] == STEP_NONE)
			continue;
		r = open_view_step(trail, i, column);
		if (r < 0)
			return r;
		if (i > 1 && top - i + 1 >= VIEW_WINDOW)
			close_view(&trail->steps[i - 1], column);
	}
	*ret = trail->steps[top].dirs[column];
	return 0;
}

void sbx_trail_blind(struct sbx_trail *trail, enum sbx_trail_column column)
{
	struct step *step = &trail->steps[trail->n - 1];

	close_view(step, column);
	step->states[column] = STEP_NONE;
}

int sbx_trail_lookup(struct sbx_trail *trail, enum sbx_trail_column column, const char *name,
	struct sbx_node *ret)
{
	struct sbx_view_dir *dir;
	int r;

	r = sbx_trail_view(trail, column, &dir);
	if (r < 0)
		return r;
	if (!dir)
		return 0;
	r = sbx_view_dir_lookup(dir, name, ret);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int append_component(struct sbx_buf *buf, const char *name)
{
	int r = buf->size ? sbx_buf_append(buf, "/", 1) : 0;

	return r < 0 ? r : sbx_buf_append_string(buf, name);
}

/* The path of the steps from the given one down; an empty buffer stays the empty string. */
static int append_steps(
	const struct sbx_trail *trail, size_t from, const char *name, struct sbx_buf *buf)
{
	int r = 0;

	for (size_t i = from; r == 0 && i < trail->n; i++)
		r = append_component(buf, trail->steps[i].name);
	if (r == 0 && name && *name)
		r = append_component(buf, name);
	return r;
}

int sbx_trail_path(const struct sbx_trail *trail, const char *name, struct sbx_buf *ret)
{
	sbx_buf_clear(ret);
	if (sbx_buf_append(ret, "", 0) < 0)
		return -ENOMEM;
	return append_steps(trail, 1, name, ret);
}

int sbx_trail_origin(const struct sbx_trail *trail, const char *name, struct sbx_buf *ret)
{
	size_t i = trail->n - 1;
	int r;

	while (i > 0 && !trail->steps[i].origin)
		i--;
	sbx_buf_clear(ret);
	r = sbx_buf_append_string(ret, i ? trail->steps[i].origin : "");
	return r < 0 ? r : append_steps(trail, i + 1, name, ret);
}
