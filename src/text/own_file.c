/* SPDX-License-Identifier: MIT */
#include "own_internal.h"

#include <string.h>

void own_file_done(struct own_file *own)
{
	sbx_lines_done(&own->old_lines);
	sbx_lines_done(&own->new_lines);
	sbx_free_pointer(&own->owners);
}

int own_line_list_add(struct own_line_list *list, const struct own_line *line)
{
	if (list->n == list->capacity) {
		uint32_t capacity = list->capacity * 2 + 64;
		struct own_line *items = reallocarray(list->items, capacity, sizeof(*items));

		if (!items)
			return -ENOMEM;
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->n++] = *line;
	return 0;
}

void own_pool_done(struct own_pool *pool)
{
	sbx_free_pointer(&pool->removed.items);
	sbx_free_pointer(&pool->added.items);
	*pool = (struct own_pool){0};
}

/* Reads the owners of old lines in their order. */
struct reader {
	const struct sbx_run *runs;
	uint32_t left; /* lines of the run */
};

static struct reader reader_of(const struct sbx_own_file *source, const struct sbx_run *original)
{
	const struct sbx_run *runs = source->n_old_runs ? source->old_runs : original;

	return (struct reader){runs, runs->count};
}

static uint32_t read_owner(struct reader *reader)
{
	while (reader->left == 0) {
		reader->runs++;
		reader->left = reader->runs->count;
	}
	reader->left--;
	return reader->runs->owner;
}

static int check_runs(const struct sbx_own_file *source, uint32_t n_lines, struct sbx_err *err)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < source->n_old_runs; i++)
		sum += source->old_runs[i].count;
	if (source->n_old_runs > 0 && sum != n_lines)
		return sbx_err_set(err, EINVAL,
			"the owners noted for %s are of %llu lines, but it has %u", source->path,
			(unsigned long long)sum, n_lines);
	return 0;
}

static int split(struct own_file *own, struct sbx_err *err)
{
	const struct sbx_own_file *file = own->file;
	const struct sbx_own_file *source = own->source;
	int r = 0;

	if (source)
		r = sbx_lines_split(
			source->old_data, source->old_size, SBX_LINES_LOOSE, &own->old_lines, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "old content of %s", source->path);
	r = sbx_lines_split(file->has_new ? file->new_data : NULL,
		file->has_new ? file->new_size : 0, SBX_LINES_LOOSE, &own->new_lines, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "new content of %s", file->path);
	own->owners = malloc(((size_t)own->new_lines.n + 1) * sizeof(*own->owners));
	if (!own->owners)
		return sbx_err_set(err, ENOMEM, "note the owners of %s: %m", file->path);
	return source ? check_runs(source, own->old_lines.n, err) : 0;
}

/* Unchanged lines up to the region keep their owners; the region's go to the pool. */
static int take_region(struct own_file *own, uint32_t index, struct reader *reader,
	uint32_t *new_line, const struct sbx_diff_region *region, struct own_pool *pool)
{
	struct own_line line = {.file = index};
	int r = 0;

	while (*new_line < region->b_start)
		own->owners[(*new_line)++] = read_owner(reader);
	for (uint32_t i = 0; r == 0 && i < region->a_count; i++) {
		line.line = region->a_start + i;
		line.owner = read_owner(reader);
		r = own_line_list_add(&pool->removed, &line);
	}
	for (uint32_t i = 0; r == 0 && i < region->b_count; i++) {
		line.line = *new_line;
		line.owner = OWN_OPEN;
		own->owners[(*new_line)++] = OWN_OPEN;
		r = own_line_list_add(&pool->added, &line);
	}
	return r;
}

static int take_diff(
	struct own_file *own, uint32_t index, const struct sbx_diff *diff, struct own_pool *pool)
{
	const struct sbx_run original = {own->old_lines.n, SBX_OWN_ORIGINAL};
	const struct sbx_diff_region end = {.b_start = own->new_lines.n};
	struct reader reader = reader_of(own->source, &original);
	uint32_t new_line = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < diff->n_regions; i++)
		r = take_region(own, index, &reader, &new_line, &diff->regions[i], pool);
	return r < 0 ? r : take_region(own, index, &reader, &new_line, &end, pool);
}

/* Moves the lines that found no match from one list to another. */
static int append_open(struct own_line_list *to, const struct own_line_list *from, bool open)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < from->n; i++)
		if ((from->items[i].owner == OWN_OPEN) == open)
			r = own_line_list_add(to, &from->items[i]);
	return r;
}

static int compare(struct own_file *files, uint32_t index, struct own_pool *far)
{
	struct own_file *own = &files[index];
	SBX_CLEANUP(own_pool_done) struct own_pool near = {0};
	SBX_DIFF struct sbx_diff diff = SBX_DIFF_INIT;
	int r;

	r = sbx_diff(&own->old_lines, &own->new_lines, 0, &diff, NULL);
	if (r == 0)
		r = take_diff(own, index, &diff, &near);
	if (r == 0)
		r = own_match(files, &near, false);
	if (r == 0 && far)
		r = append_open(&far->removed, &near.removed, false);
	if (r == 0 && far)
		r = append_open(&far->added, &near.added, true);
	return r;
}

/* A file without a source has nothing near to match with. */
static int take_new(struct own_file *own, uint32_t index, struct own_pool *far)
{
	struct own_line line = {.file = index, .owner = OWN_OPEN};
	int r = 0;

	memset(own->owners, 0xff, own->new_lines.n * sizeof(*own->owners)); /* OWN_OPEN */
	for (line.line = 0; r == 0 && far && line.line < own->new_lines.n; line.line++)
		r = own_line_list_add(&far->added, &line);
	return r;
}

int own_file_compare(
	struct own_file *files, uint32_t index, struct own_pool *far, struct sbx_err *err)
{
	struct own_file *own = &files[index];
	int r;

	if (own->is_source && !own->file->has_new) /* its lines are the renamed file's business */
		return 0;
	if (!own->source && own->file->has_old && !own->is_source)
		own->source = own->file;
	r = split(own, err);
	if (r < 0)
		return r;
	r = own->source ? compare(files, index, far) : take_new(own, index, far);
	return r < 0 ? sbx_err_set(err, -r, "compute the owners of %s: %m", own->file->path) : 0;
}

static uint32_t owner_at(const struct own_file *own, uint32_t line, uint32_t new_owner)
{
	return own->owners[line] == OWN_OPEN ? new_owner : own->owners[line];
}

static uint32_t count_runs(const struct own_file *own, uint32_t new_owner)
{
	uint32_t n = own->new_lines.n > 0;

	for (uint32_t i = 1; i < own->new_lines.n; i++)
		n += owner_at(own, i, new_owner) != owner_at(own, i - 1, new_owner);
	return n;
}

int own_file_finish(struct own_file *own, uint32_t new_owner)
{
	struct sbx_own_file *file = own->file;
	struct sbx_run *run;
	uint32_t n = own->new_lines.n;

	if (!own->owners) /* done already, or there is nothing to do */
		return 0;
	if (file->has_new) {
		file->runs = calloc((size_t)count_runs(own, new_owner) + 1, sizeof(*file->runs));
		if (!file->runs)
			return -ENOMEM;
		file->n_lines = n;
		run = file->runs;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t owner = owner_at(own, i, new_owner);

			if (i > 0 && run->owner != owner)
				run++;
			run->owner = owner;
			run->count++;
		}
		file->n_runs = n > 0 ? (uint32_t)(run - file->runs) + 1 : 0;
	}
	own_file_done(own);
	return 0;
}
