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
	struct own_pool pool;
	bool across; /* moves between files can still be found */
	uint32_t new_owner;
};

static void work_done(struct work *work)
{
	for (size_t i = 0; i < work->n_files; i++)
		own_file_done(&work->files[i]);
	sbx_free_pointer(&work->files);
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

static int compute(struct work *work, struct sbx_err *err)
{
	int r;

	r = own_pair_renames(work->files, work->n_files, err);
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
