/* SPDX-License-Identifier: MIT */
/*
 * Planning: down the changeset's directories as far as the head has them changed, the same way in
 * the base and the head.
 */
#include "resolve.h"

#include <fcntl.h>
#include <string.h>

#include "resolve_internal.h"

int sbx_plan_fail(struct sbx_plan *plan, int r, const char *name)
{
	if (plan->err && plan->err->code)
		return r; /* told already, by the place that knows more */
	if (sbx_trail_path(plan->trail, name, &plan->path) < 0)
		return sbx_err_set(plan->err, -r, "compare with the head: %m");
	return sbx_err_set(plan->err, -r, "compare %s with the head: %m",
		*plan->path.data ? plan->path.data : ".");
}

int sbx_plan_conflict(struct sbx_plan *plan, const char *name, enum sbx_conflict_kind kind,
	const struct sbx_sides *sides)
{
	size_t layer = sides->in_head ? sides->head.layer : SBX_CONFLICT_NO_LAYER;
	int r = sbx_trail_path(plan->trail, name, &plan->path);

	if (r == 0)
		r = sbx_conflicts_add(plan->conflicts, plan->path.data, kind, layer, NULL);
	return r;
}

static int look(struct sbx_plan *plan, const char *name, struct sbx_sides *ret)
{
	int r = sbx_place_in_view(plan->trail, SBX_TRAIL_BASE, name, &ret->base);

	if (r < 0)
		return r;
	ret->in_base = r > 0;
	r = sbx_place_in_view(plan->trail, SBX_TRAIL_HEAD, name, &ret->head);
	ret->in_head = r > 0;
	return r < 0 ? r : 0;
}

static bool is_dir(bool present, const struct sbx_place *place)
{
	return present && S_ISDIR(place->st.st_mode);
}

int sbx_sides_merge_meta(
	const struct sbx_sides *sides, const struct sbx_place *ours, struct sbx_meta *ret)
{
	bool both_made =
		!sides->in_base || (sides->base.st.st_mode & S_IFMT) != (ours->st.st_mode & S_IFMT);
	SBX_META struct sbx_meta base = SBX_META_INIT;
	SBX_META struct sbx_meta head = SBX_META_INIT;
	SBX_META struct sbx_meta our = SBX_META_INIT;
	int r;

	r = sbx_meta_read(sides->head.dir_fd, sides->head.name, &sides->head.st, 0, &head);
	if (r == 0)
		r = sbx_meta_read(ours->dir_fd, ours->name, &ours->st, 0, &our);
	if (r == 0 && !both_made)
		r = sbx_meta_read(sides->base.dir_fd, sides->base.name, &sides->base.st, 0, &base);
	if (r < 0)
		return r;
	if (both_made && S_ISDIR(ours->st.st_mode)) {
		*ret = head;
		head = SBX_META_INIT;
		return 0;
	}
	return sbx_meta_merge(both_made ? NULL : &base, &head, &our, ret);
}

/*
 * What of our subtree is more than a deletion: each such path. With kind, they become conflicts.
 * Returns how many, or -errno. Ignored ones are not counted but noted in *ret_ignored.
 */
static int list_changes(struct sbx_plan *plan, uint32_t index, enum sbx_conflict_kind kind,
	const struct sbx_sides *sides, bool *ret_ignored)
{
	const struct sbx_changeset *set = plan->set;
	size_t layer = sides->in_head ? sides->head.layer : SBX_CONFLICT_NO_LAYER;
	int n = 0, r = 0;

	for (uint32_t i = index; r == 0 && i < set->entries[index].end; i++) {
		const struct sbx_entry *entry = &set->entries[i];

		if (entry->change == SBX_CHANGE_NONE || entry->change == SBX_CHANGE_DELETE)
			continue;
		if (!(entry->flags & (SBX_ENTRY_CONTENT | SBX_ENTRY_META)))
			continue; /* a new mtime alone */
		if (entry->flags & SBX_ENTRY_IGNORED) {
			*ret_ignored = true;
			continue;
		}
		r = sbx_changeset_path(set, i, &plan->path);
		if (r == 0)
			r = sbx_conflicts_add(plan->conflicts, plan->path.data, kind, layer, NULL);
		n++;
	}
	return r < 0 ? r : n;
}

/* Whiteouts in a directory that the head has no more hide nothing. */
static void drop_deletions(struct sbx_plan *plan, uint32_t index)
{
	for (uint32_t i = index; i < plan->set->entries[index].end; i++)
		if (plan->set->entries[i].change == SBX_CHANGE_DELETE)
			sbx_changeset_act(plan->set, i, SBX_ENTRY_DROP);
	for (uint32_t i = index; i < plan->set->entries[index].end; i++)
		if (plan->set->entries[i].flags & SBX_ENTRY_OPAQUE)
			sbx_changeset_act(plan->set, i, SBX_ENTRY_CLEAR);
}

/* The base had a directory, which the head has not: our changes in it conflict, if there are any.
 */
static int plan_dir_gone(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	enum sbx_conflict_kind kind =
		sides->in_head ? SBX_CONFLICT_TYPE : SBX_CONFLICT_MODIFY_DELETE;
	bool ignored = false;
	int n = list_changes(plan, index, kind, sides, &ignored);

	if (n != 0)
		return n < 0 ? n : 0;
	if (ignored)
		drop_deletions(plan, index);
	else
		sbx_changeset_act(plan->set, index, SBX_ENTRY_DROP);
	return 0;
}

/* Takes over what the head changed of a directory's own metadata. */
static int plan_dir_meta(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	const char *name = sbx_entry_name(plan->set, index);
	SBX_META struct sbx_meta merged = SBX_META_INIT;
	struct sbx_place ours;
	int r;

	r = sbx_place_in_tree(plan->trail, name, &ours);
	if (r == 0)
		r = sbx_sides_merge_meta(sides, &ours, &merged);
	if (r < 0)
		return r;
	if (r > 0)
		return sbx_plan_conflict(plan, name, SBX_CONFLICT_METADATA, sides);
	sbx_changeset_act(plan->set, index, SBX_ENTRY_SET_META);
	return 0;
}

/*
 * Our directory where the head has something: 1 to go on inside, 0 when all is said about it and
 * what is below.
 */
static int plan_dir(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	const char *name = sbx_entry_name(plan->set, index);
	bool base_dir = is_dir(sides->in_base, &sides->base);
	int r;

	if (is_dir(sides->in_head, &sides->head)) {
		if (!sbx_plan_touched(plan, sides->head.layer))
			return 0;
		r = plan_dir_meta(plan, index, sides);
		return r < 0 ? r : 1;
	}
	if (base_dir)
		return plan_dir_gone(plan, index, sides);
	if (!sides->in_head)
		return 0;
	if (sides->in_base) {
		r = sbx_place_compare(&sides->base, &sides->head);
		if (r < 0 || !(r & ~SBX_DIFFERS_MTIME))
			return r < 0 ? r : 0; /* ours alone replaced the file */
	}
	return sbx_plan_conflict(plan, name, SBX_CONFLICT_TYPE, sides);
}

static int plan_deletion(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	const char *name = sbx_entry_name(plan->set, index);
	int r;

	if (!sides->in_head) {
		sbx_changeset_act(plan->set, index, SBX_ENTRY_DROP);
		return 0;
	}
	r = sbx_plan_foreign(plan, name, SBX_CONFLICT_DELETE_MODIFY);
	return r < 0 ? r : 0;
}

/* An ignored path: ours is applied as it is, but hides nothing that is not there. */
static int plan_ignored(struct sbx_plan *plan, uint32_t index, const struct sbx_sides *sides)
{
	const struct sbx_entry *entry = &plan->set->entries[index];
	bool head_dir = is_dir(sides->in_head, &sides->head);

	if (entry->change == SBX_CHANGE_DELETE && !sides->in_head)
		sbx_changeset_act(plan->set, index, SBX_ENTRY_DROP);
	if (!S_ISDIR(entry->mode))
		return 0;
	if (!head_dir) {
		drop_deletions(plan, index);
		return 0;
	}
	if (!sbx_plan_touched(plan, sides->head.layer))
		return 0;
	if (!(entry->flags & SBX_ENTRY_META))
		sbx_changeset_act(plan->set, index, SBX_ENTRY_SET_META);
	return 1;
}

/* One entry: 1 to go on inside, 0 when done with it and all below. */
static int plan_entry(struct sbx_plan *plan, uint32_t index)
{
	const struct sbx_entry *entry = &plan->set->entries[index];
	const char *name = sbx_entry_name(plan->set, index);
	struct sbx_sides sides = {0};
	int r;

	r = look(plan, name, &sides);
	if (r < 0)
		return r;
	if (entry->flags & SBX_ENTRY_IGNORED)
		return plan_ignored(plan, index, &sides);
	if (entry->change == SBX_CHANGE_DELETE)
		return plan_deletion(plan, index, &sides);
	if (S_ISDIR(entry->mode))
		return plan_dir(plan, index, &sides);
	return sbx_plan_file(plan, index, &sides);
}

/*
 * Our side cleared this directory (or one above it) and made it anew: what the head added here
 * meanwhile would vanish below the opaque mark. What it changed is met at our deletions.
 */
static int plan_hidden(struct sbx_plan *plan, uint32_t index)
{
	const struct sbx_changeset *set = plan->set;
	SBX_NAMES char **names = NULL;
	struct sbx_view_dir *dir;
	uint32_t child = index + 1;
	struct sbx_node node;
	size_t n = 0;
	int r, order;

	r = sbx_trail_view(plan->trail, SBX_TRAIL_HEAD, &dir);
	if (r == 0 && dir)
		r = sbx_view_dir_list(dir, &names, &n);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		order = -1;
		while (child < set->entries[index].end &&
			(order = strcmp(sbx_entry_name(set, child), names[i])) < 0)
			child = set->entries[child].end;
		if (order == 0 && child < set->entries[index].end)
			continue;
		r = sbx_trail_lookup(plan->trail, SBX_TRAIL_BASE, names[i], &node);
		if (r == 0)
			r = sbx_plan_foreign(plan, names[i], SBX_CONFLICT_DELETE_MODIFY);
	}
	return r < 0 ? r : 0;
}

/* The directories that the plan is inside of. */
struct plan_stack {
	struct level {
		uint32_t end; /* of its subtree */
		bool hidden;
	} * levels;
	size_t n;
	size_t capacity;
};

static void plan_stack_done(struct plan_stack *stack)
{
	sbx_free_pointer(&stack->levels);
}

static int push_level(struct plan_stack *stack, uint32_t end, bool hidden)
{
	if (sbx_grow(&stack->levels, &stack->capacity, stack->n) < 0)
		return -ENOMEM;
	stack->levels[stack->n++] = (struct level){.end = end, .hidden = hidden};
	return 0;
}

static int go_inside(struct sbx_plan *plan, struct plan_stack *stack, uint32_t index)
{
	const struct sbx_entry *entry = &plan->set->entries[index];
	bool hidden = (entry->flags & SBX_ENTRY_OPAQUE) ||
		      (stack->n && stack->levels[stack->n - 1].hidden);
	int r;

	r = sbx_trail_enter(plan->trail, sbx_entry_name(plan->set, index), NULL);
	if (r == 0)
		r = push_level(stack, entry->end, hidden);
	if (r == 0 && hidden)
		r = plan_hidden(plan, index);
	return r;
}

/* The root's own metadata: there is no directory above to look it up in. */
static int plan_root(struct sbx_plan *plan)
{
	struct sbx_sides sides = {.in_base = true, .in_head = true};
	SBX_META struct sbx_meta merged = SBX_META_INIT;
	SBX_CLOSE int base_fd = sbx_view_openat(plan->resolve->base, "", O_RDONLY | O_DIRECTORY);
	SBX_CLOSE int head_fd = sbx_view_openat(plan->resolve->head, "", O_RDONLY | O_DIRECTORY);
	struct sbx_place ours = {.dir_fd = plan->resolve->tree_fd, .name = "."};
	int r;

	if (base_fd < 0 || head_fd < 0)
		return base_fd == -ENOENT || head_fd == -ENOENT ? 0 : SBX_MIN(base_fd, head_fd);
	sides.base = (struct sbx_place){.dir_fd = base_fd, .name = "."};
	sides.head = (struct sbx_place){
		.dir_fd = head_fd, .name = ".", .layer = plan->resolve->head_stack->n - 1};
	if (fstat(base_fd, &sides.base.st) < 0 || fstat(head_fd, &sides.head.st) < 0 ||
		fstat(ours.dir_fd, &ours.st) < 0)
		return -errno;
	r = sbx_sides_merge_meta(&sides, &ours, &merged);
	if (r < 0)
		return r;
	if (r > 0)
		return sbx_plan_conflict(plan, NULL, SBX_CONFLICT_METADATA, &sides);
	sbx_changeset_act(plan->set, 0, SBX_ENTRY_SET_META);
	return 0;
}

static int plan_all(struct sbx_plan *plan)
{
	SBX_CLEANUP(plan_stack_done) struct plan_stack stack = {0};
	uint32_t i = 1;
	int r;

	r = push_level(&stack, (uint32_t)plan->set->n, false);
	if (r == 0)
		r = plan_root(plan);
	while (r == 0 && i < plan->set->n) {
		while (i >= stack.levels[stack.n - 1].end) {
			stack.n--;
			sbx_trail_leave(plan->trail);
		}
		r = plan_entry(plan, i);
		if (r > 0)
			r = go_inside(plan, &stack, i++);
		else
			i = plan->set->entries[i].end;
	}
	return r < 0 ? sbx_plan_fail(
			       plan, r, i < plan->set->n ? sbx_entry_name(plan->set, i) : NULL)
		     : 0;
}

static bool *newer_layers(const struct sbx_stack *base, const struct sbx_stack *head)
{
	bool *newer = calloc(head->n + 1, sizeof(*newer));

	for (size_t i = 0; newer && i < head->n; i++)
		newer[i] = sbx_stack_find(base, head->ids[i]) < 0;
	return newer;
}

int sbx_resolve_plan(
	const struct sbx_resolve *resolve, struct sbx_conflicts *ret, struct sbx_err *err)
{
	SBX_FREE bool *newer = newer_layers(resolve->base_stack, resolve->head_stack);
	SBX_TRAIL struct sbx_trail *trail = NULL;
	SBX_CONFLICTS struct sbx_conflicts conflicts = {.layers_fd = resolve->layers_fd,
		.head = resolve->head,
		.head_stack = resolve->head_stack,
		.newer = newer,
		.ours_owner = resolve->ours_owner};
	struct sbx_err local = SBX_ERR_INIT;
	struct sbx_plan plan = {.resolve = resolve,
		.set = resolve->set,
		.conflicts = &conflicts,
		.newer = newer,
		.err = err ? err : &local};
	int r = newer ? 0 : -ENOMEM;

	plan.err->code = 0;
	if (r == 0)
		r = sbx_trail_new(resolve->tree_fd, resolve->base, resolve->head, &trail);
	if (r < 0)
		return sbx_err_set(err, -r, "compare with the head: %m");
	plan.trail = trail;
	r = plan_all(&plan);
	sbx_buf_done(&plan.path);
	if (r < 0)
		return r;
	conflicts.newer = NULL; /* of no use beyond this call */
	*ret = conflicts;
	conflicts = (struct sbx_conflicts){.head_stack = resolve->head_stack};
	return 0;
}
