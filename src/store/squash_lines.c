/* SPDX-License-Identifier: MIT */
/*
 * The records of a run of layers in one: all lines files are sorted, so they are merged like
 * lists. Of several records for a path the newest layer's counts; one whose file the run does not
 * show any more is history.
 */
#include <stdio.h>
#include <string.h>

#include "sbx/store.h"
#include "squash.h"

struct source {
	struct sbx_owners *owners; /* NULL: the layer has no lines */
	size_t next;
	bool has_record;
	struct sbx_owner_record record;
	uint32_t *names; /* its owner indexes in the new table, or UINT32_MAX: not there yet */
};

struct merge {
	struct source *sources; /* newest first */
	size_t n;
	struct sbx_owner_table *table;
	struct sbx_owners_writer *writer;
	uint64_t n_written;
	struct sbx_run *runs; /* of the record at hand, renumbered */
};

static void merge_done(struct merge *merge)
{
	for (size_t i = 0; i < merge->n; i++) {
		sbx_owners_free(merge->sources[i].owners);
		sbx_free_pointer(&merge->sources[i].names);
	}
	sbx_free_pointer(&merge->sources);
	sbx_free_pointer(&merge->runs);
	sbx_owner_table_free(merge->table);
	sbx_owners_writer_free(merge->writer);
}

/* Moves a source to its next record. */
static int advance(struct source *source)
{
	int r;

	source->has_record = false;
	if (!source->owners || source->next == sbx_owners_count(source->owners))
		return 0;
	r = sbx_owners_get(source->owners, source->next++, &source->record);
	source->has_record = r == 0;
	return r;
}

static int open_source(int layers_fd, const char *id, struct source *source, struct sbx_err *err)
{
	char path[SBX_ID_SIZE + sizeof("/" SBX_LAYER_LINES)];
	struct sbx_err open_err = SBX_ERR_INIT;
	size_t n;
	int r;

	(void)snprintf(path, sizeof(path), "%s/" SBX_LAYER_LINES, id); /* fits */
	r = sbx_owners_open(layers_fd, path, &source->owners, &open_err);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		if (err)
			*err = open_err;
		return r;
	}
	n = sbx_owners_n_names(source->owners);
	source->names = malloc((n + 1) * sizeof(*source->names));
	if (!source->names)
		return sbx_err_set(err, ENOMEM, "open %s: %m", path);
	memset(source->names, 0xff, (n + 1) * sizeof(*source->names));
	r = advance(source);
	return r < 0 ? sbx_err_set(err, -r, "%s is damaged at its first record", path) : 0;
}

static int open_sources(
	struct merge *merge, int layers_fd, const struct sbx_stack *run, struct sbx_err *err)
{
	merge->sources = calloc(run->n, sizeof(*merge->sources));
	if (!merge->sources || sbx_owner_table_new(&merge->table) < 0 ||
		sbx_owners_writer_new(&merge->writer) < 0)
		return sbx_err_set(err, ENOMEM, "merge lines: %m");
	for (merge->n = 0; merge->n < run->n; merge->n++) {
		int r = open_source(
			layers_fd, run->ids[run->n - 1 - merge->n], &merge->sources[merge->n], err);

		if (r < 0) {
			merge->n++; /* what was opened of it goes with the others */
			return r;
		}
	}
	return 0;
}

/* The source with the smallest path; the newest of those that have it. NULL at the end. */
static struct source *find_next(const struct merge *merge)
{
	struct source *best = NULL;

	for (size_t i = 0; i < merge->n; i++) {
		struct source *source = &merge->sources[i];

		if (source->has_record &&
			(!best || strcmp(source->record.path, best->record.path) < 0))
			best = source;
	}
	return best;
}

/* Moves every source past path, which lies in one of their maps and stays valid. */
static int pass(struct merge *merge, const char *path)
{
	for (size_t i = 0; i < merge->n; i++) {
		struct source *source = &merge->sources[i];
		int r;

		if (!source->has_record || strcmp(source->record.path, path) != 0)
			continue;
		r = advance(source);
		if (r < 0)
			return r;
	}
	return 0;
}

static int renumber(struct merge *merge, struct source *source, struct sbx_owner_record *record)
{
	struct sbx_run *runs =
		reallocarray(merge->runs, SBX_MAX(record->n_runs, 1u), sizeof(*runs));

	if (!runs)
		return -ENOMEM;
	merge->runs = runs;
	for (uint32_t i = 0; i < record->n_runs; i++) {
		uint32_t *name = &source->names[record->runs[i].owner];

		if (*name == UINT32_MAX) {
			int r = sbx_owner_table_add(merge->table,
				sbx_owners_name(source->owners, record->runs[i].owner), name);

			if (r < 0)
				return r;
		}
		runs[i] = (struct sbx_run){record->runs[i].count, *name};
	}
	record->runs = runs;
	return 0;
}

static int take_record(struct merge *merge, struct source *source, struct sbx_view *view)
{
	struct sbx_owner_record record = source->record;
	struct sbx_node node;
	int r = sbx_view_lookup(view, record.path, &node);

	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || (r == 0 && !S_ISREG(node.st.st_mode)))
		return 0;
	if (r == 0)
		r = renumber(merge, source, &record);
	if (r == 0)
		r = sbx_owners_writer_add(merge->writer, &record);
	merge->n_written += r == 0;
	return r;
}

int squash_lines(int layers_fd, const struct sbx_stack *run, struct sbx_view *view, int layer_fd,
	struct sbx_err *err)
{
	SBX_CLEANUP(merge_done) struct merge merge = {0};
	struct source *source;
	int r = open_sources(&merge, layers_fd, run, err);

	if (r < 0)
		return r;
	while ((source = find_next(&merge))) {
		const char *path = source->record.path;

		r = take_record(&merge, source, view);
		if (r == 0)
			r = pass(&merge, path);
		if (r < 0)
			return sbx_err_set(err, -r, "merge the lines of %s: %m", path);
	}
	if (!merge.n_written)
		return 0;
	return sbx_owners_writer_write(merge.writer, merge.table, layer_fd, SBX_LAYER_LINES, err);
}
