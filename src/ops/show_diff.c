/* SPDX-License-Identifier: MIT */
/*
 * diff: what changed between two versions. Both views are walked side by side; a name that both
 * show from the same inode is the same with all below it, since whatever a newer layer changes in
 * a directory, it has that directory itself. So the cost follows what was published in between.
 */
#include <string.h>

#include "filediff.h"
#include "job_args.h"
#include "jobs.h"

/* The names of one directory, of both sides, and how far we are. */
struct frame {
	char **names;
	size_t n;
	size_t next;
};

struct walk {
	struct sbx_trail *trail;
	const char *filter; /* only this path and what is below it; "" for all */
	struct sbx_filediff *diff;
	struct sbx_buf path;
	struct frame *frames;
	size_t n;
	size_t capacity;
};

static void frame_done(struct frame *frame)
{
	for (size_t i = 0; i < frame->n; i++)
		sbx_free_pointer(&frame->names[i]);
	sbx_free_pointer(&frame->names);
}

static void walk_done(struct walk *walk)
{
	while (walk->n)
		frame_done(&walk->frames[--walk->n]);
	sbx_free_pointer(&walk->frames);
	sbx_buf_done(&walk->path);
	sbx_trail_free(walk->trail);
}

static int list_side(struct walk *walk, enum sbx_trail_column column, char ***ret, size_t *ret_n)
{
	struct sbx_view_dir *dir = NULL;
	int r = sbx_trail_view(walk->trail, column, &dir);

	if (r < 0 || !dir)
		return r;
	return sbx_view_dir_list(dir, ret, ret_n);
}

/* Moves the names of both sorted lists into frame, each once. */
static int merge(char **a, size_t n_a, char **b, size_t n_b, struct frame *frame)
{
	size_t i = 0, j = 0;

	frame->names = calloc(n_a + n_b + 1, sizeof(*frame->names));
	if (!frame->names)
		return -ENOMEM;
	while (i < n_a || j < n_b) {
		int order = i == n_a ? 1 : j == n_b ? -1 : strcmp(a[i], b[j]);

		frame->names[frame->n++] = order <= 0 ? sbx_take(&a[i]) : sbx_take(&b[j]);
		if (order == 0)
			sbx_free_pointer(&b[j]);
		i += order <= 0;
		j += order >= 0;
	}
	return 0;
}

static void names_done(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sbx_free_pointer(&names[i]);
	free(names);
}

static int list_both(struct walk *walk, struct frame *frame)
{
	char **a = NULL, **b = NULL;
	size_t n_a = 0, n_b = 0;
	int r;

	r = list_side(walk, SBX_TRAIL_BASE, &a, &n_a);
	if (r == 0)
		r = list_side(walk, SBX_TRAIL_HEAD, &b, &n_b);
	if (r == 0)
		r = merge(a, n_a, b, n_b, frame);
	/* taken names left holes, which end no list here */
	names_done(a, n_a);
	names_done(b, n_b);
	return r;
}

static int push(struct walk *walk)
{
	SBX_CLEANUP(frame_done) struct frame frame = {0};
	int r = list_both(walk, &frame);

	if (r < 0)
		return r;
	if (sbx_grow(&walk->frames, &walk->capacity, walk->n) < 0)
		return -ENOMEM;
	walk->frames[walk->n++] = frame;
	frame = (struct frame){0};
	return 0;
}

/* Whether path begins with prefix and ends or goes on in a new component there. */
static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return !n || (!strncmp(path, prefix, n) && (!path[n] || path[n] == '/'));
}

static bool is_same(const struct sbx_place *old, const struct sbx_place *new)
{
	return old && new && old->st.st_dev == new->st.st_dev && old->st.st_ino == new->st.st_ino;
}

/* Compares one name of the present directory; 1 when there is something to see below it. */
static int visit(struct walk *walk, const char *name, struct sbx_err *err)
{
	struct sbx_place places[2], *old = NULL, *new = NULL;
	int r;

	r = sbx_trail_path(walk->trail, name, &walk->path);
	if (r == 0 && !is_below(walk->path.data, walk->filter))
		return is_below(walk->filter, walk->path.data);
	if (r == 0)
		r = sbx_place_in_view(walk->trail, SBX_TRAIL_BASE, name, &places[0]);
	if (r > 0)
		old = &places[0];
	if (r >= 0)
		r = sbx_place_in_view(walk->trail, SBX_TRAIL_HEAD, name, &places[1]);
	if (r > 0)
		new = &places[1];
	if (r < 0)
		return sbx_err_set(err, -r, "look at '%s': %m", walk->path.data);
	if (is_same(old, new))
		return 0;
	r = sbx_filediff_add(walk->diff, walk->path.data, old, new, err);
	if (r < 0)
		return r;
	return (old && S_ISDIR(old->st.st_mode)) || (new &&S_ISDIR(new->st.st_mode));
}

static int walk_all(struct walk *walk, struct sbx_err *err)
{
	int r = push(walk);

	while (r >= 0 && walk->n) {
		struct frame *frame = &walk->frames[walk->n - 1];
		const char *name;

		if (frame->next == frame->n) {
			frame_done(frame);
			if (--walk->n)
				sbx_trail_leave(walk->trail);
			continue;
		}
		name = frame->names[frame->next++];
		r = visit(walk, name, err);
		if (r < 0)
			return r;
		if (r > 0)
			r = sbx_trail_enter(walk->trail, name, NULL);
		else
			continue;
		if (r == 0)
			r = push(walk);
	}
	return r < 0 ? sbx_err_set(err, -r, "list a directory: %m") : 0;
}

static int compare(struct sbx_view *base, struct sbx_view *head, const char *filter,
	struct sbx_filediff *diff, struct sbx_err *err)
{
	SBX_CLEANUP(walk_done) struct walk walk = {.filter = filter, .diff = diff};
	int r = sbx_trail_new(-EBADF, base, head, &walk.trail);

	if (r < 0)
		return sbx_err_set(err, -r, "compare two versions: %m");
	return walk_all(&walk, err);
}

int sbx_job_diff(struct sbx_job *job, struct sbx_err *err)
{
	SBX_VIEW struct sbx_view *base = NULL;
	SBX_VIEW struct sbx_view *head = NULL;
	SBX_FILEDIFF struct sbx_filediff diff = SBX_FILEDIFF_INIT;
	char path[SBX_PATH_MAX + 1];
	int64_t from = 0, to = 0;
	int r;

	r = sbx_job_path(job, path, err);
	if (r == 0)
		r = sbx_job_int(job, "base_version", &from, err);
	if (r == 0)
		r = sbx_job_int(job, "version", &to, err);
	if (r == 0)
		r = sbx_job_view(job, "base", &base, err);
	if (r == 0)
		r = sbx_job_view(job, "head", &head, err);
	if (r == 0)
		r = compare(base, head, path, &diff, err);
	if (r < 0)
		return r;
	sbx_json_add_int(job->result, "from", from);
	sbx_json_add_int(job->result, "to", to);
	sbx_filediff_answer(&diff, job->result);
	return 0;
}
