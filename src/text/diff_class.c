/* SPDX-License-Identifier: MIT */
/*
 * Class numbers: a hash table with the different lines of a, in which the lines of b are looked up.
 * Lines of b that a lacks need no number, so the table is as large as one of the texts.
 */
#include "diff_internal.h"

#define PREFETCH_AHEAD 12 /* lines; hides the memory latency of the table in large files */

struct slot {
	uint32_t hash;
	uint32_t class_plus_one; /* 0: free */
};

struct table {
	struct slot *slots;
	uint32_t mask;
	uint32_t *first; /* by class: its first line in a */
};

static void table_done(struct table *table)
{
	sbx_free_pointer(&table->slots);
	sbx_free_pointer(&table->first);
}

static int table_init(struct table *table, uint32_t n)
{
	uint32_t size = 16;

	while (size < n + n / 2)
		size *= 2;
	table->mask = size - 1;
	table->slots = calloc(size, sizeof(*table->slots));
	table->first = calloc((size_t)n + 1, sizeof(*table->first));
	return table->slots && table->first ? 0 : -ENOMEM;
}

/* The slot of a line: that of its class, or the free one where it would go. */
static struct slot *find_slot(const struct table *table, const struct sbx_lines *a,
	const struct sbx_lines *lines, uint32_t line)
{
	uint32_t hash = lines->hashes[line];

	for (uint32_t i = hash & table->mask;; i = (i + 1) & table->mask) {
		struct slot *slot = &table->slots[i];

		if (!slot->class_plus_one)
			return slot;
		if (slot->hash == hash &&
			sbx_line_equal(a, table->first[slot->class_plus_one - 1], lines, line))
			return slot;
	}
}

static inline void prefetch(
	const struct table *table, const struct sbx_lines *lines, uint32_t line, uint32_t end)
{
	if (line + PREFETCH_AHEAD < end)
		__builtin_prefetch(
			&table->slots[lines->hashes[line + PREFETCH_AHEAD] & table->mask]);
}

static void number_a(struct diff_work *work, struct table *table, const struct diff_box *box)
{
	for (uint32_t i = box->a0; i < box->a1; i++) {
		struct slot *slot;

		prefetch(table, work->a, i, box->a1);
		slot = find_slot(table, work->a, work->a, i);
		if (!slot->class_plus_one) {
			table->first[work->n_classes] = i;
			slot->hash = work->a->hashes[i];
			slot->class_plus_one = ++work->n_classes;
		}
		work->a_class[i] = slot->class_plus_one - 1;
	}
}

/*
 * Where b goes on as a does, the class is that of a's next line and the table need not be asked:
 * in large files that differ little, this saves half of the cache misses.
 */
static void number_b(struct diff_work *work, const struct table *table, const struct diff_box *box)
{
	uint32_t next = box->a1; /* the line of a after the one that the last line of b equals */

	for (uint32_t i = box->b0; i < box->b1; i++) {
		uint32_t class;

		if (next < box->a1 && sbx_line_equal(work->a, next, work->b, i)) {
			work->b_class[i] = work->a_class[next++];
			continue;
		}
		/* no class is 0 - 1, which is DIFF_CLASS_NONE */
		class = find_slot(table, work->a, work->b, i)->class_plus_one - 1;
		work->b_class[i] = class;
		next = class == DIFF_CLASS_NONE ? box->a1 : table->first[class] + 1;
	}
}

/* The counts of the classes in the box are 0 before. */
static void add_counts(struct diff_work *work, const struct diff_box *box)
{
	for (uint32_t i = box->a0; i < box->a1; i++)
		work->counts[work->a_class[i]].a++;
	for (uint32_t i = box->b0; i < box->b1; i++)
		if (work->b_class[i] != DIFF_CLASS_NONE)
			work->counts[work->b_class[i]].b++;
}

void diff_count(struct diff_work *work, const struct diff_box *box)
{
	for (uint32_t i = box->a0; i < box->a1; i++)
		work->counts[work->a_class[i]] = (struct diff_count){0};
	for (uint32_t i = box->b0; i < box->b1; i++)
		if (work->b_class[i] != DIFF_CLASS_NONE)
			work->counts[work->b_class[i]] = (struct diff_count){0};
	add_counts(work, box);
}

int diff_classify(struct diff_work *work, const struct diff_box *box)
{
	SBX_CLEANUP(table_done) struct table table = {0};
	int r;

	r = table_init(&table, box->a1 - box->a0);
	if (r < 0)
		return r;
	number_a(work, &table, box);
	number_b(work, &table, box);
	work->counts = calloc((size_t)work->n_classes + 1, sizeof(*work->counts));
	work->place_in_b = malloc(((size_t)work->n_classes + 1) * sizeof(*work->place_in_b));
	if (!work->counts || !work->place_in_b)
		return -ENOMEM;
	add_counts(work, box);
	return 0;
}
