/* SPDX-License-Identifier: MIT */
/*
 * Moves. Removed and added lines get class numbers. First, distinct lines are paired and the blocks
 * around them followed up and down as long as both sides agree; then added lines that are still
 * open look for the removed block that agrees with them longest. A block counts by the letters and
 * digits in it: braces and blank lines alone are no evidence, but go along with their neighbours.
 */
#include "own_internal.h"

#include <string.h>

#define CLASS_NONE     UINT32_MAX
#define LINE_NONE      UINT32_MAX
#define WEIGHT_MAX     64 /* of one line; more than any threshold */
#define CANDIDATES_MAX 64 /* removed lines that one added line is tried against */

/* What is known about one class of lines. */
struct class
{
	uint32_t first; /* removed line that stands for the class */
	uint32_t open;  /* no removed line of the class before this one is still to be given */
	uint32_t n_removed;
	uint32_t n_added;
	bool elsewhere; /* also among the lines that did not change */
};

struct match {
	struct own_file *files;
	struct own_line_list *removed;
	struct own_line_list *added;
	uint32_t *slots; /* hash table: class + 1, or 0 */
	uint32_t mask;
	struct class *classes;
	uint32_t n_classes;
	uint32_t *next;   /* removed line -> next one of its class, or LINE_NONE */
	uint8_t *weights; /* of the added lines that have a class */
	uint64_t cost;
};

/* Removed lines [removed, removed + n) against added ones. */
struct block {
	uint32_t removed;
	uint32_t added;
	uint32_t n;
	uint32_t weight; /* at most WEIGHT_MAX counts from each line */
};

static void match_done(struct match *match)
{
	sbx_free_pointer(&match->slots);
	sbx_free_pointer(&match->classes);
	sbx_free_pointer(&match->next);
	sbx_free_pointer(&match->weights);
}

static int match_init(struct match *match)
{
	uint32_t size = 16;
	size_t n = match->removed->n;

	while (size < n + n / 2)
		size *= 2;
	match->mask = size - 1;
	match->slots = calloc(size, sizeof(*match->slots));
	match->classes = calloc(n + 1, sizeof(*match->classes));
	match->next = malloc((n + 1) * sizeof(*match->next));
	match->weights = malloc((size_t)match->added->n + 1);
	return match->slots && match->classes && match->next && match->weights ? 0 : -ENOMEM;
}

static const struct sbx_lines *old_lines(const struct match *match, const struct own_line *line)
{
	return &match->files[line->file].old_lines;
}

static const struct sbx_lines *new_lines(const struct match *match, const struct own_line *line)
{
	return &match->files[line->file].new_lines;
}

/* -------- classes */

/* The slot of a line's class, or the free one where it would go. */
static uint32_t *find_class(const struct match *match, const struct sbx_lines *lines, uint32_t line)
{
	for (uint32_t i = lines->hashes[line] & match->mask;; i = (i + 1) & match->mask) {
		const struct own_line *first;

		if (!match->slots[i])
			return &match->slots[i];
		first = &match->removed->items[match->classes[match->slots[i] - 1].first];
		if (sbx_line_equal(old_lines(match, first), first->line, lines, line))
			return &match->slots[i];
	}
}

static void classify_removed(struct match *match)
{
	/* from the back, so that each list of equal lines comes out in order */
	for (uint32_t i = match->removed->n; i-- > 0;) {
		struct own_line *line = &match->removed->items[i];
		uint32_t *slot = find_class(match, old_lines(match, line), line->line);

		if (!*slot) {
			*slot = ++match->n_classes;
			match->classes[*slot - 1].first = LINE_NONE;
		}
		line->class = *slot - 1;
		match->next[i] = match->classes[line->class].first;
		match->classes[line->class].first = i;
		match->classes[line->class].open = i;
		match->classes[line->class].n_removed++;
	}
}

/* Letters, digits and bytes beyond ASCII of a line, up to WEIGHT_MAX. */
static uint8_t weight_of(const struct match *match, const struct own_line *added)
{
	const struct sbx_lines *lines = new_lines(match, added);
	const char *p = sbx_line_data(lines, added->line);
	const char *end = p + sbx_line_size(lines, added->line);
	uint8_t weight = 0;

	for (; p < end && weight < WEIGHT_MAX; p++)
		weight += own_has_weight((unsigned char)*p);
	return weight;
}

/* False when no added line equals a removed one. */
static bool classify_added(struct match *match)
{
	bool any = false;

	for (uint32_t i = 0; i < match->added->n; i++) {
		struct own_line *line = &match->added->items[i];

		/* a free slot's 0 - 1 is CLASS_NONE */
		line->class = *find_class(match, new_lines(match, line), line->line) - 1;
		if (line->class == CLASS_NONE)
			continue;
		match->classes[line->class].n_added++;
		match->weights[i] = weight_of(match, line);
		any = true;
	}
	return any;
}

static bool is_distinct(const struct match *match, uint32_t class)
{
	const struct class *c = &match->classes[class];

	return c->n_removed == 1 && c->n_added == 1 && !c->elsewhere;
}

/* Notes which classes the file has more of than were removed or added, that is, unchanged ones. */
static void find_elsewhere(struct match *match)
{
	const struct sbx_lines *lines = new_lines(match, &match->added->items[0]);
	const uint32_t *owners = match->files[match->added->items[0].file].owners;

	for (uint32_t i = 0; i < lines->n; i++) {
		uint32_t class;

		if (owners[i] == OWN_OPEN)
			continue;
		class = *find_class(match, lines, i) - 1;
		if (class != CLASS_NONE)
			match->classes[class].elsewhere = true;
	}
}

/* -------- blocks */

/* Whether items i and i + 1 are lines of one file that follow each other. */
static bool is_consecutive(const struct own_line_list *list, uint32_t i)
{
	const struct own_line *line = &list->items[i];

	return i + 1 < list->n && line[0].file == line[1].file && line[0].line + 1 == line[1].line;
}

static bool agree(struct match *match, uint32_t removed, uint32_t added)
{
	const struct own_line *from = &match->removed->items[removed];
	const struct own_line *to = &match->added->items[added];

	match->cost++;
	return from->class == to->class && from->owner != OWN_OPEN && to->owner == OWN_OPEN;
}

/* The largest block around a pair of lines that agree. */
static struct block block_around(struct match *match, uint32_t removed, uint32_t added)
{
	struct block block = {removed, added, 1, 0};

	while (block.removed > 0 && block.added > 0 &&
		is_consecutive(match->removed, block.removed - 1) &&
		is_consecutive(match->added, block.added - 1) &&
		agree(match, block.removed - 1, block.added - 1)) {
		block.removed--;
		block.added--;
		block.n++;
	}
	while (is_consecutive(match->removed, block.removed + block.n - 1) &&
		is_consecutive(match->added, block.added + block.n - 1) &&
		agree(match, block.removed + block.n, block.added + block.n))
		block.n++;
	for (uint32_t i = 0; i < block.n && block.weight < WEIGHT_MAX; i++)
		block.weight += match->weights[block.added + i];
	return block;
}

static void give(struct match *match, const struct block *block)
{
	for (uint32_t i = 0; i < block->n; i++) {
		struct own_line *from = &match->removed->items[block->removed + i];
		struct own_line *to = &match->added->items[block->added + i];

		to->owner = from->owner;
		match->files[to->file].owners[to->line] = from->owner;
		from->owner = OWN_OPEN;
	}
}

static bool is_over(const struct match *match)
{
	return match->cost >= SBX_OWN_MOVE_COST_MAX;
}

static void match_distinct(struct match *match, uint32_t weight_min)
{
	for (uint32_t i = 0; i < match->added->n && !is_over(match); i++) {
		const struct own_line *to = &match->added->items[i];
		struct block block;

		if (to->class == CLASS_NONE || to->owner != OWN_OPEN ||
			!is_distinct(match, to->class) ||
			match->removed->items[match->classes[to->class].first].owner == OWN_OPEN)
			continue;
		block = block_around(match, match->classes[to->class].first, i);
		if (block.weight >= weight_min)
			give(match, &block);
	}
}

/* The heaviest block that an added line can be part of; of equals the first. */
static struct block best_block(struct match *match, uint32_t added)
{
	struct block best = {0};
	struct class *class = &match->classes[match->added->items[added].class];
	uint32_t n = 0;

	/* lines at the front that were given out need not be passed again */
	while (class->open != LINE_NONE && match->removed->items[class->open].owner == OWN_OPEN)
		class->open = match->next[class->open];
	for (uint32_t i = class->open; i != LINE_NONE && n < CANDIDATES_MAX;
		i = match->next[i], n++) {
		struct block block;

		if (!agree(match, i, added))
			continue;
		block = block_around(match, i, added);
		if (block.weight > best.weight || (block.weight == best.weight && block.n > best.n))
			best = block;
	}
	return best;
}

static void match_repeated(struct match *match, uint32_t weight_min)
{
	for (uint32_t i = 0; i < match->added->n && !is_over(match); i++) {
		const struct own_line *to = &match->added->items[i];
		struct block block;

		if (to->class == CLASS_NONE || to->owner != OWN_OPEN || match->weights[i] == 0)
			continue;
		block = best_block(match, i);
		if (block.weight >= weight_min)
			give(match, &block);
	}
}

int own_match(struct own_file *files, struct own_pool *pool, bool across)
{
	SBX_CLEANUP(match_done)
	struct match match = {
		.files = files,
		.removed = &pool->removed,
		.added = &pool->added,
	};
	int r;

	if (pool->removed.n == 0 || pool->added.n == 0)
		return 0;
	r = match_init(&match);
	if (r < 0)
		return r;
	classify_removed(&match);
	if (!classify_added(&match))
		return 0;
	if (!across)
		find_elsewhere(&match);
	match_distinct(
		&match, across ? SBX_OWN_MOVE_MIN_ACROSS_DISTINCT : SBX_OWN_MOVE_MIN_DISTINCT);
	match_repeated(&match, across ? SBX_OWN_MOVE_MIN_ACROSS : SBX_OWN_MOVE_MIN);
	return 0;
}
