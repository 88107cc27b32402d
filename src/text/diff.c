/* SPDX-License-Identifier: MIT */
/*
 * A comparison in steps: common lines at both ends are cut off; lines get class numbers, so that
 * comparing two is comparing two integers; the changed lines are marked; marks become regions.
 */
#include "diff_internal.h"

#include <string.h>

static void work_done(struct diff_work *work)
{
	sbx_free_pointer(&work->a_class);
	sbx_free_pointer(&work->b_class);
	sbx_free_pointer(&work->counts);
	sbx_free_pointer(&work->place_in_b);
	sbx_free_pointer(&work->a_changed);
	sbx_free_pointer(&work->b_changed);
}

static int work_init(struct diff_work *work, const struct sbx_lines *a, const struct sbx_lines *b)
{
	work->a = a;
	work->b = b;
	work->a_class = calloc((size_t)a->n + 1, sizeof(*work->a_class));
	work->b_class = calloc((size_t)b->n + 1, sizeof(*work->b_class));
	work->a_changed = calloc((size_t)a->n + 1, 1);
	work->b_changed = calloc((size_t)b->n + 1, 1);
	if (!work->a_class || !work->b_class || !work->a_changed || !work->b_changed)
		return -ENOMEM;
	return 0;
}

void diff_mark(struct diff_work *work, const struct diff_box *box)
{
	memset(work->a_changed + box->a0, 1, box->a1 - box->a0);
	memset(work->b_changed + box->b0, 1, box->b1 - box->b0);
}

/* What is left between the equal lines at the start and those at the end. */
static struct diff_box trim(const struct sbx_lines *a, const struct sbx_lines *b)
{
	struct diff_box box = {.a1 = a->n, .b1 = b->n};

	while (box.a0 < box.a1 && box.b0 < box.b1 && sbx_line_equal(a, box.a0, b, box.b0)) {
		box.a0++;
		box.b0++;
	}
	while (box.a0 < box.a1 && box.b0 < box.b1 && sbx_line_equal(a, box.a1 - 1, b, box.b1 - 1)) {
		box.a1--;
		box.b1--;
	}
	return box;
}

static int compare(struct diff_work *work, enum sbx_diff_flags flags)
{
	struct diff_box all = {.a1 = work->a->n, .b1 = work->b->n};
	struct diff_box box = trim(work->a, work->b);
	int r;

	if (box.a0 == box.a1 || box.b0 == box.b1) {
		diff_mark(work, &box);
		return 0;
	}
	if (!(flags & SBX_DIFF_PLAIN)) {
		r = diff_classify(work, &box);
		return r < 0 ? r : diff_anchored(work, &box);
	}
	/* git counts a line's occurrences in the whole files; its choices depend on them */
	r = diff_classify(work, &all);
	return r < 0 ? r : diff_myers(work, &box);
}

int sbx_diff(const struct sbx_lines *a, const struct sbx_lines *b, enum sbx_diff_flags flags,
	struct sbx_diff *ret, struct sbx_err *err)
{
	SBX_CLEANUP(work_done) struct diff_work work = {0};
	SBX_DIFF struct sbx_diff diff = SBX_DIFF_INIT;
	int r;

	r = work_init(&work, a, b);
	if (r == 0)
		r = compare(&work, flags);
	if (r == 0)
		r = diff_regions(&work, &diff);
	if (r < 0)
		return sbx_err_set(err, -r, "compare texts of %u and %u lines: %m", a->n, b->n);
	diff.coarse = diff_is_over(&work);
	*ret = diff;
	diff = SBX_DIFF_INIT;
	return 0;
}

void sbx_diff_done(struct sbx_diff *diff)
{
	sbx_free_pointer(&diff->regions);
	diff->n_regions = 0;
}
