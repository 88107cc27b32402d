/* SPDX-License-Identifier: MIT */
/*
 * E. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), in linear space: two fronts
 * of furthest points, one from each corner of a box, grow until they meet; the box is cut there and
 * both halves are compared in the same way.
 *
 * A merge must come out as git's does, and where lines repeat the outcome depends on which of
 * several shortest scripts is found. So the choices that the paper leaves open are made as git
 * makes them: lines without a partner are set aside first, and repeated ones among them; diagonals
 * are tried from the highest down; fronts that grow too long are cut at a good place instead of
 * the best one.
 */
#include "diff_internal.h"

#include <string.h>

/* git's figures; other values change what is found */
#define SNAKE_MIN      20  /* equal lines in a row that make a cut worth taking */
#define SNAKE_COST_MIN 256 /* distance from which such a cut is looked for */
#define SNAKE_GAIN     4   /* progress per distance that it must have made */
#define COST_MIN       256 /* a distance that is always tried to its end */
#define REPEATED_MAX   1024
#define ASIDE_WINDOW   100
#define ASIDE_RATIO    4

enum partner {
	PARTNER_NONE = 0, /* the other text lacks the line */
	PARTNER_FEW,
	PARTNER_MANY, /* equal to so many lines that it says little about place */
};

/* The lines of one side that take part. */
struct side {
	uint32_t *classes;
	uint32_t *index; /* of the line in the text */
	int32_t n;
	uint8_t *changed; /* of the text */
};

/* Furthest points: x[d] is the line of a reached on diagonal d = a - b. */
struct front {
	int32_t *x;
	int32_t start; /* the diagonal of its corner */
	int32_t min;
	int32_t max;
};

struct cut {
	int32_t a;
	int32_t b;
	bool low_exact; /* the half before the cut deserves a search to the end */
	bool high_exact;
};

struct rect {
	int32_t a0, a1;
	int32_t b0, b1;
};

struct myers {
	struct diff_work *work;
	struct side a;
	struct side b;
	int32_t *diagonals; /* holds both fronts */
	int32_t *forward;
	int32_t *backward;
	int32_t cost_max;
	struct front low;
	struct front high;
};

/* About the square root: a power of two. */
static uint32_t rough_root(uint32_t n)
{
	uint32_t root = 1;

	for (; n > 0; n >>= 2)
		root <<= 1;
	return root;
}

/* -------- lines set aside */

static enum partner partner_of(uint32_t n, uint32_t many)
{
	if (n == 0)
		return PARTNER_NONE;
	return n >= many ? PARTNER_MANY : PARTNER_FEW;
}

/*
 * Looks from line i in one direction as far as lines without few partners go, and counts those
 * without any; *many counts the repeated ones.
 */
static uint32_t lone_neighbours(
	const uint8_t *partners, int64_t i, int64_t step, int64_t end, uint32_t *many)
{
	uint32_t none = 0;

	for (i += step; i != end; i += step) {
		if (partners[i] == PARTNER_FEW)
			break;
		if (partners[i] == PARTNER_NONE)
			none++;
		else
			++*many;
	}
	return none;
}

/* A repeated line amid lines without partners: matching it would only tear the change apart. */
static bool is_amid_lone(const uint8_t *partners, int64_t i, int64_t n)
{
	int64_t first = SBX_MAX(i - ASIDE_WINDOW, 0);
	int64_t last = SBX_MIN(i + ASIDE_WINDOW, n - 1);
	uint32_t many = 2; /* the line itself, seen from both directions */
	uint32_t before;
	uint32_t after;

	before = lone_neighbours(partners, i, -1, first - 1, &many);
	if (before == 0)
		return false;
	after = lone_neighbours(partners, i, 1, last + 1, &many);
	if (after == 0)
		return false;
	return many * ASIDE_RATIO < many + before + after;
}

/* Puts the lines that take part into side; marks the others as changed. */
static int select_lines(struct side *side, const uint32_t *classes, const uint8_t *partners,
	uint32_t start, uint32_t n)
{
	side->classes = malloc(((size_t)n + 1) * sizeof(*side->classes));
	side->index = malloc(((size_t)n + 1) * sizeof(*side->index));
	if (!side->classes || !side->index)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (partners[i] == PARTNER_NONE ||
			(partners[i] == PARTNER_MANY && is_amid_lone(partners, i, n))) {
			side->changed[start + i] = 1;
			continue;
		}
		side->classes[side->n] = classes[start + i];
		side->index[side->n++] = start + i;
	}
	return 0;
}

static int select_a(struct myers *myers, const struct diff_box *box)
{
	const struct diff_work *work = myers->work;
	uint32_t many = SBX_MIN(rough_root(work->a->n), REPEATED_MAX);
	uint32_t n = box->a1 - box->a0;
	SBX_FREE uint8_t *partners = malloc((size_t)n + 1);

	if (!partners)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		partners[i] = partner_of(work->counts[work->a_class[box->a0 + i]].b, many);
	return select_lines(&myers->a, work->a_class, partners, box->a0, n);
}

static int select_b(struct myers *myers, const struct diff_box *box)
{
	const struct diff_work *work = myers->work;
	uint32_t many = SBX_MIN(rough_root(work->b->n), REPEATED_MAX);
	uint32_t n = box->b1 - box->b0;
	SBX_FREE uint8_t *partners = malloc((size_t)n + 1);

	if (!partners)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t class = work->b_class[box->b0 + i];

		partners[i] = class == DIFF_CLASS_NONE ? PARTNER_NONE
						       : partner_of(work->counts[class].a, many);
	}
	return select_lines(&myers->b, work->b_class, partners, box->b0, n);
}

/* -------- the fronts */

/* Lets a front reach one diagonal further on both sides, or drops one that left the box. */
static void widen(struct front *front, const struct rect *rect, int32_t unreached)
{
	if (front->min > rect->a0 - rect->b1)
		front->x[--front->min - 1] = unreached;
	else
		front->min++;
	if (front->max < rect->a1 - rect->b0)
		front->x[++front->max + 1] = unreached;
	else
		front->max--;
}

static inline bool front_covers(const struct front *front, int32_t d)
{
	return front->min <= d && d <= front->max;
}

/* One more difference from the low corner. True when the fronts met, at *ret. */
static bool step_low(
	struct myers *myers, const struct rect *rect, bool odd, bool *snake, struct cut *ret)
{
	struct front *low = &myers->low;
	const uint32_t *a = myers->a.classes;
	const uint32_t *b = myers->b.classes;

	widen(low, rect, -1);
	for (int32_t d = low->max; d >= low->min; d -= 2) {
		int32_t x = SBX_MAX(low->x[d - 1] + 1, low->x[d + 1]);
		int32_t from = x;

		while (x < rect->a1 && x - d < rect->b1 && a[x] == b[x - d])
			x++;
		*snake |= x - from > SNAKE_MIN;
		myers->work->cost += (uint32_t)(x - from) + 1;
		low->x[d] = x;
		if (odd && front_covers(&myers->high, d) && myers->high.x[d] <= x) {
			*ret = (struct cut){x, x - d, true, true};
			return true;
		}
	}
	return false;
}

/* The same from the high corner. */
static bool step_high(
	struct myers *myers, const struct rect *rect, bool odd, bool *snake, struct cut *ret)
{
	struct front *high = &myers->high;
	const uint32_t *a = myers->a.classes;
	const uint32_t *b = myers->b.classes;

	widen(high, rect, INT32_MAX);
	for (int32_t d = high->max; d >= high->min; d -= 2) {
		int32_t x = SBX_MIN(high->x[d - 1], high->x[d + 1] - 1);
		int32_t from = x;

		while (x > rect->a0 && x - d > rect->b0 && a[x - 1] == b[x - d - 1])
			x--;
		*snake |= from - x > SNAKE_MIN;
		myers->work->cost += (uint32_t)(from - x) + 1;
		high->x[d] = x;
		if (!odd && front_covers(&myers->low, d) && x <= myers->low.x[d]) {
			*ret = (struct cut){x, x - d, true, true};
			return true;
		}
	}
	return false;
}

static bool is_run(const struct myers *myers, int32_t a, int32_t b)
{
	return !memcmp(
		myers->a.classes + a, myers->b.classes + b, SNAKE_MIN * sizeof(*myers->a.classes));
}

/* The point of the low front that made most way and ends in a long run of equal lines. */
static bool cut_behind_run(
	const struct myers *myers, const struct rect *rect, int32_t cost, struct cut *ret)
{
	const struct front *low = &myers->low;
	int32_t best = 0;

	for (int32_t d = low->max; d >= low->min; d -= 2) {
		int32_t a = low->x[d];
		int32_t b = a - d;
		int32_t way = (a - rect->a0) + (b - rect->b0) - abs(d - low->start);

		if (way <= SNAKE_GAIN * cost || way <= best)
			continue;
		if (a < rect->a0 + SNAKE_MIN || a >= rect->a1 || b < rect->b0 + SNAKE_MIN ||
			b >= rect->b1 || !is_run(myers, a - SNAKE_MIN, b - SNAKE_MIN))
			continue;
		best = way;
		*ret = (struct cut){a, b, true, false};
	}
	return best > 0;
}

static bool cut_before_run(
	const struct myers *myers, const struct rect *rect, int32_t cost, struct cut *ret)
{
	const struct front *high = &myers->high;
	int32_t best = 0;

	for (int32_t d = high->max; d >= high->min; d -= 2) {
		int32_t a = high->x[d];
		int32_t b = a - d;
		int32_t way = (rect->a1 - a) + (rect->b1 - b) - abs(d - high->start);

		if (way <= SNAKE_GAIN * cost || way <= best)
			continue;
		if (a <= rect->a0 || a > rect->a1 - SNAKE_MIN || b <= rect->b0 ||
			b > rect->b1 - SNAKE_MIN || !is_run(myers, a, b))
			continue;
		best = way;
		*ret = (struct cut){a, b, false, true};
	}
	return best > 0;
}

/* Too far apart to go on: cuts where one of the fronts came furthest. */
static void cut_at_furthest(const struct myers *myers, const struct rect *rect, struct cut *ret)
{
	struct cut low = {-1, 0, true, false};
	struct cut high = {INT32_MAX, 0, false, true};
	int64_t low_sum = -1;
	int64_t high_sum = INT64_MAX;

	for (int32_t d = myers->low.max; d >= myers->low.min; d -= 2) {
		int32_t a = SBX_MIN(SBX_MIN(myers->low.x[d], rect->a1), rect->b1 + d);

		if ((int64_t)a + a - d > low_sum) {
			low_sum = (int64_t)a + a - d;
			low.a = a;
			low.b = a - d;
		}
	}
	for (int32_t d = myers->high.max; d >= myers->high.min; d -= 2) {
		int32_t a = SBX_MAX(SBX_MAX(myers->high.x[d], rect->a0), rect->b0 + d);

		if ((int64_t)a + a - d < high_sum) {
			high_sum = (int64_t)a + a - d;
			high.a = a;
			high.b = a - d;
		}
	}
	if (rect->a1 + rect->b1 - high_sum < low_sum - (rect->a0 + rect->b0))
		*ret = low;
	else
		*ret = high;
}

static void front_init(struct front *front, int32_t *x, int32_t diagonal, int32_t at)
{
	*front = (struct front){.x = x, .start = diagonal, .min = diagonal, .max = diagonal};
	x[diagonal] = at;
}

/* Where to cut a box whose corners differ. False when the cost of the whole comparison is spent. */
static bool find_cut(struct myers *myers, const struct rect *rect, bool exact, struct cut *ret)
{
	bool odd = (rect->a0 - rect->b0 - rect->a1 + rect->b1) & 1;

	front_init(&myers->low, myers->forward, rect->a0 - rect->b0, rect->a0);
	front_init(&myers->high, myers->backward, rect->a1 - rect->b1, rect->a1);
	for (int32_t cost = 1; !diff_is_over(myers->work); cost++) {
		bool snake = false;

		if (step_low(myers, rect, odd, &snake, ret) ||
			step_high(myers, rect, odd, &snake, ret))
			return true;
		if (exact)
			continue;
		if (snake && cost > SNAKE_COST_MIN &&
			(cut_behind_run(myers, rect, cost, ret) ||
				cut_before_run(myers, rect, cost, ret)))
			return true;
		if (cost >= myers->cost_max) {
			cut_at_furthest(myers, rect, ret);
			return true;
		}
	}
	return false;
}

/* -------- the recursion */

static void trim(const struct myers *myers, struct rect *rect)
{
	const uint32_t *a = myers->a.classes;
	const uint32_t *b = myers->b.classes;

	while (rect->a0 < rect->a1 && rect->b0 < rect->b1 && a[rect->a0] == b[rect->b0]) {
		rect->a0++;
		rect->b0++;
	}
	while (rect->a0 < rect->a1 && rect->b0 < rect->b1 && a[rect->a1 - 1] == b[rect->b1 - 1]) {
		rect->a1--;
		rect->b1--;
	}
}

static void mark(struct side *side, int32_t from, int32_t to)
{
	for (int32_t i = from; i < to; i++)
		side->changed[side->index[i]] = 1;
}

static int32_t rect_size(const struct rect *rect)
{
	return rect->a1 - rect->a0 + rect->b1 - rect->b0;
}

/* Recurses into the smaller half and goes on with the larger: the depth is logarithmic. */
static void compare(struct myers *myers, struct rect rect, bool exact)
{
	struct rect half;
	struct cut cut;

	for (;;) {
		trim(myers, &rect);
		if (rect.a0 == rect.a1 || rect.b0 == rect.b1 ||
			!find_cut(myers, &rect, exact, &cut))
			break;
		half = rect;
		half.a1 = cut.a;
		half.b1 = cut.b;
		rect.a0 = cut.a;
		rect.b0 = cut.b;
		if (rect_size(&half) <= rect_size(&rect)) {
			compare(myers, half, cut.low_exact);
			exact = cut.high_exact;
		} else {
			compare(myers, rect, cut.high_exact);
			rect = half;
			exact = cut.low_exact;
		}
	}
	mark(&myers->a, rect.a0, rect.a1);
	mark(&myers->b, rect.b0, rect.b1);
}

static void myers_done(struct myers *myers)
{
	sbx_free_pointer(&myers->a.classes);
	sbx_free_pointer(&myers->a.index);
	sbx_free_pointer(&myers->b.classes);
	sbx_free_pointer(&myers->b.index);
	sbx_free_pointer(&myers->diagonals);
}

static int myers_init(struct myers *myers)
{
	uint32_t n = (uint32_t)(myers->a.n + myers->b.n) + 3;

	/* diagonals run from -b.n - 1 to a.n + 1 */
	myers->diagonals = malloc(2 * (size_t)n * sizeof(*myers->diagonals));
	if (!myers->diagonals)
		return -ENOMEM;
	myers->forward = myers->diagonals + myers->b.n + 1;
	myers->backward = myers->forward + n;
	myers->cost_max = (int32_t)SBX_MAX(rough_root(n), COST_MIN);
	return 0;
}

int diff_myers(struct diff_work *work, const struct diff_box *box)
{
	SBX_CLEANUP(myers_done)
	struct myers myers = {
		.work = work,
		.a.changed = work->a_changed,
		.b.changed = work->b_changed,
	};
	int r;

	r = select_a(&myers, box);
	if (r == 0)
		r = select_b(&myers, box);
	if (r == 0)
		r = myers_init(&myers);
	if (r < 0)
		return r;
	compare(&myers, (struct rect){0, myers.a.n, 0, myers.b.n}, false);
	return 0;
}
