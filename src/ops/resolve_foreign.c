/* SPDX-License-Identifier: MIT */
/*
 * What others did below a path that our side deleted: a walk of base and head side by side, only
 * into directories that a newer layer touched.
 */
#include <string.h>

#include "resolve_internal.h"

struct foreign_frame {
	char **names; /* what the head shows */
	size_t next;
	bool in_base; /* the base has this directory too */
};

struct foreign {
	struct sbx_plan *plan;
	enum sbx_conflict_kind kind;
	struct sbx_trail *trail;
	struct foreign_frame *frames;
	size_t n;
	size_t capacity;
	struct sbx_buf path;
	int n_found;
};

static void foreign_done(struct foreign *f)
{
	for (size_t i = 0; i < f->n; i++)
		sbx_names_free(f->frames[i].names);
	sbx_free_pointer(&f->frames);
	sbx_trail_free(f->trail);
	sbx_buf_done(&f->path);
}

/* Goes down to where the plan is, so that the plan's own steps stay put. */
static int follow(struct foreign *f)
{
	char *name, *rest;
	int r;

	r = sbx_trail_new(-EBADF, f->plan->resolve->base, f->plan->resolve->head, &f->trail);
	if (r == 0)
		r = sbx_trail_path(f->plan->trail, NULL, &f->path);
	if (r < 0)
		return r;
	for (name = f->path.data; r == 0 && *name; name = rest) {
		rest = name + strcspn(name, "/");
		if (*rest)
			*rest++ = '\0';
		r = sbx_trail_enter(f->trail, name, NULL);
	}
	return r;
}

static int report(struct foreign *f, const struct sbx_place *head)
{
	int r = sbx_trail_path(f->trail, head->name, &f->path);

	if (r < 0)
		return r;
	if (sbx_ignore_match(f->plan->set->ignore, f->path.data, S_ISDIR(head->st.st_mode)))
		return 0;
	f->n_found++;
	return sbx_conflicts_add(f->plan->conflicts, f->path.data, f->kind, head->layer, NULL);
}

/* Steps into a directory of the head and lists it. */
static int enter(struct foreign *f, const char *name, bool in_base)
{
	struct foreign_frame frame = {.in_base = in_base};
	struct sbx_view_dir *dir;
	bool found;
	size_t n;
	int r;

	if (sbx_grow(&f->frames, &f->capacity, f->n) < 0)
		return -ENOMEM;
	r = sbx_trail_enter(f->trail, name, NULL);
	if (r == 0 && in_base)
		r = sbx_ignore_load(f->plan->set->ignore, f->trail, &found);
	if (r == 0)
		r = sbx_trail_view(f->trail, SBX_TRAIL_HEAD, &dir);
	if (r == 0)
		r = dir ? sbx_view_dir_list(dir, &frame.names, &n) : -ENOENT;
	if (r == 0)
		f->frames[f->n++] = frame;
	return r;
}

/* A path that both have: reported when it changed, entered when something below may have. */
static int look_at_both(
	struct foreign *f, const struct sbx_place *base, const struct sbx_place *head)
{
	bool is_dir = S_ISDIR(head->st.st_mode);
	int differences, r = 0;

	if (is_dir && !sbx_plan_touched(f->plan, head->layer))
		return 0;
	differences = sbx_place_compare(base, head);
	if (differences < 0)
		return differences;
	if (differences & ~SBX_DIFFERS_MTIME)
		r = report(f, head);
	if (r == 0 && is_dir)
		r = enter(f, head->name, S_ISDIR(base->st.st_mode));
	return r;
}

static int look_at(struct foreign *f, const char *name)
{
	struct sbx_place base, head;
	int r, has_base;

	r = sbx_place_in_view(f->trail, SBX_TRAIL_HEAD, name, &head);
	if (r <= 0)
		return r; /* deleted there as well */
	has_base = sbx_place_in_view(f->trail, SBX_TRAIL_BASE, name, &base);
	if (has_base != 0)
		return has_base < 0 ? has_base : look_at_both(f, &base, &head);
	r = report(f, &head);
	return r == 0 && S_ISDIR(head.st.st_mode) ? enter(f, name, false) : r;
}

static void leave(struct foreign *f)
{
	sbx_names_free(f->frames[--f->n].names);
	sbx_trail_leave(f->trail);
}

int sbx_plan_foreign(struct sbx_plan *plan, const char *name, enum sbx_conflict_kind kind)
{
	SBX_CLEANUP(foreign_done) struct foreign f = {.plan = plan, .kind = kind};
	int r = follow(&f);

	if (r == 0)
		r = look_at(&f, name);
	while (r == 0 && f.n) {
		struct foreign_frame *frame = &f.frames[f.n - 1];

		if (frame->names[frame->next])
			r = look_at(&f, frame->names[frame->next++]);
		else
			leave(&f);
	}
	return r < 0 ? r : f.n_found;
}
