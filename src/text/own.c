/* SPDX-License-Identifier: MIT */
/*
 * Renames are paired first, for they decide what each file is compared with. Each file then is
 * settled by itself as far as possible. What it has left over, removed or added, is matched across
 * files at the end, so that a line never comes from afar when it can come from near.
 */
#include "own_internal.h"

#include <string.h>

struct work {
	struct own_file *files;
	size_t n_files;
	struct sbx_own_file *displaced;
	struct own_pool pool;
	bool across; /* moves between files can still be found */
	uint32_t new_owner;
};

static void work_done(struct work *work)
{
	for (size_t i = 0; i < work->n_files; i++)
		own_file_done(&work->files[i]);
	sbx_free_pointer(&work->files);
	sbx_free_pointer(&work->displaced);
	own_pool_done(&work->pool);
}

static int by_path(const void *a, const void *b)
{
	const struct own_file *x = a;
	const struct own_file *y = b;

	return strcmp(x->file->path, y->file->path);
}

static int work_init(struct work *work, struct sbx_own_file *files, size_t n_files)
{
	work->files = calloc(n_files + 1, sizeof(*work->files));
	if (!work->files)
		return -ENOMEM;
	work->n_files = n_files;
	for (size_t i = 0; i < n_files; i++) {
		work->files[i].file = &files[i];
		work->across |= files[i].has_old; /* without removed lines nothing moves */
		files[i].runs = NULL;
		files[i].n_runs = 0;
		files[i].n_lines = 0;
		files[i].renamed_from = NULL;
	}
	qsort(work->files, n_files, sizeof(*work->files), by_path);
	return 0;
}

/* Ends the search across files: all lines held for it are let go. */
static int stop_across(struct work *work, size_t n_compared)
{
	int r = 0;

	work->across = false;
	own_pool_done(&work->pool);
	for (size_t i = 0; r == 0 && i < n_compared; i++)
		r = own_file_finish(&work->files[i], work->new_owner);
	return r;
}

static int compare_file(struct work *work, uint32_t index, struct sbx_err *err)
{
	const struct own_pool *pool = &work->pool;
	uint32_t n = pool->removed.n + pool->added.n;
	int r;

	r = own_file_compare(work->files, index, work->across ? &work->pool : NULL, err);
	if (r < 0)
		return r;
	if (pool->removed.n + pool->added.n == n)
		r = own_file_finish(&work->files[index], work->new_owner);
	else if (pool->removed.n + pool->added.n > SBX_OWN_ACROSS_LINES_MAX)
		r = stop_across(work, index + 1);
	return r < 0 ? sbx_err_set(
			       err, -r, "note the owners of %s: %m", work->files[index].file->path)
		     : 0;
}

/* A file that another one was renamed over: its old content is compared with nothing. */
static bool is_displaced(const struct own_file *own)
{
	return own->file->has_old && !own->is_source && own->source && own->source != own->file;
}

/* Displaced contents count as deleted files, so that lines can move out of them. */
static int add_displaced(struct work *work)
{
	struct own_file *files;
	size_t n = 0;

	for (size_t i = 0; i < work->n_files; i++)
		n += is_displaced(&work->files[i]);
	if (n == 0)
		return 0;
	work->displaced = calloc(n, sizeof(*work->displaced));
	files = reallocarray(work->files, work->n_files + n, sizeof(*files));
	work->files = files ? files : work->files;
	if (!files || !work->displaced)
		return -ENOMEM;
	for (size_t i = 0, j = 0; j < n; i++) {
		if (!is_displaced(&files[i]))
			continue;
		work->displaced[j] = *files[i].file;
		work->displaced[j].has_new = false;
		files[work->n_files + j] = (struct own_file){.file = &work->displaced[j]};
		j++;
	}
	work->n_files += n;
	return 0;
}

static int compute(struct work *work, struct sbx_err *err)
{
	int r;

	r = own_pair_renames(work->files, work->n_files, err);
	if (r < 0)
		return r;
	r = add_displaced(work);
	if (r < 0)
		return sbx_err_set(err, -r, "compute owners: %m");
	for (size_t i = 0; r == 0 && i < work->n_files; i++)
		r = compare_file(work, (uint32_t)i, err);
	if (r < 0)
		return r;
	if (work->across)
		r = own_match(work->files, &work->pool, true);
	for (size_t i = 0; r == 0 && i < work->n_files; i++)
		r = own_file_finish(&work->files[i], work->new_owner);
	return r < 0 ? sbx_err_set(err, -r, "find lines that moved between files: %m") : 0;
}

int sbx_own_compute(
	struct sbx_own_file *files, size_t n_files, uint32_t new_owner, struct sbx_err *err)
{
	SBX_CLEANUP(work_done) struct work work = {.new_owner = new_owner};
	int r;

	r = work_init(&work, files, n_files);
	if (r < 0)
		return sbx_err_set(err, -r, "compute the owners of %zu files: %m", n_files);
	r = compute(&work, err);
	for (size_t i = 0; r < 0 && i < n_files; i++)
		sbx_own_file_done(&files[i]);
	return r;
}

void sbx_own_file_done(struct sbx_own_file *file)
{
	sbx_free_pointer(&file->runs);
	file->n_runs = 0;
	file->n_lines = 0;
	file->renamed_from = NULL;
}
