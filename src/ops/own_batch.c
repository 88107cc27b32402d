/* SPDX-License-Identifier: MIT */
#include "own_batch.h"

#include <string.h>

#include "ownership.h"
#include "sbx/own.h"
#include "sbx/store.h"

#define OWNER_UNKNOWN "unknown"

/* A file that waits for the comparison, with all that it borrows from. */
struct waiting {
	char *path;
	struct sbx_own_item item;
	struct sbx_buf new_content;
	bool has_new;
};

struct sbx_own_batch {
	struct sbx_owner_table *table;
	struct sbx_owners_writer *writer;
	uint32_t new_owner;
	struct waiting *waiting;
	size_t n;
	size_t capacity;
	uint64_t bytes; /* of the contents that wait */
};

void sbx_own_item_done(struct sbx_own_item *item)
{
	sbx_buf_done(&item->old_content);
	sbx_free_pointer(&item->old_runs);
}

static void forget_waiting(struct sbx_own_batch *batch)
{
	for (size_t i = 0; i < batch->n; i++) {
		sbx_own_item_done(&batch->waiting[i].item);
		sbx_buf_done(&batch->waiting[i].new_content);
		sbx_free_pointer(&batch->waiting[i].path);
	}
	batch->n = 0;
	batch->bytes = 0;
}

void sbx_own_batch_free(struct sbx_own_batch *batch)
{
	if (!batch)
		return;
	forget_waiting(batch);
	sbx_free_pointer(&batch->waiting);
	sbx_owners_writer_free(batch->writer);
	sbx_owner_table_free(batch->table);
	sbx_free_pointer(&batch);
}

static void batch_freep(struct sbx_own_batch **batch)
{
	sbx_own_batch_free(*batch);
}

int sbx_own_batch_new_for(const char *owner, struct sbx_own_batch **ret)
{
	SBX_CLEANUP(batch_freep) struct sbx_own_batch *batch = calloc(1, sizeof(*batch));
	int r = batch ? sbx_owner_table_new(&batch->table) : -ENOMEM;

	if (r == 0)
		r = sbx_owners_writer_new(&batch->writer);
	if (r == 0)
		r = sbx_owner_table_add(batch->table, owner, &batch->new_owner);
	if (r == 0)
		*ret = sbx_take(&batch);
	return r;
}

/* The record's runs with the owners of our table. */
static int copy_runs(struct sbx_own_batch *batch, const struct sbx_owner_record *record,
	const struct sbx_owners *from, struct sbx_run **ret)
{
	SBX_FREE struct sbx_run *runs = calloc(record->n_runs + 1, sizeof(*runs));

	if (!runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < record->n_runs; i++) {
		const char *name = sbx_owners_name(from, record->runs[i].owner);
		int r = sbx_owner_table_add(
			batch->table, name ? name : OWNER_UNKNOWN, &runs[i].owner);

		if (r < 0)
			return r;
		runs[i].count = record->runs[i].count;
	}
	*ret = sbx_take(&runs);
	return 0;
}

static uint32_t count_lines(const struct sbx_buf *text)
{
	const char *at = text->data, *end = at ? at + text->size : at;
	uint32_t n = 0;

	for (; at < end; n++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline ? newline + 1 : end;
	}
	return n;
}

static int one_run(uint32_t owner, const struct sbx_buf *text, struct sbx_own_item *item)
{
	uint32_t n = count_lines(text);

	item->old_runs = calloc(1, sizeof(*item->old_runs));
	if (!item->old_runs)
		return -ENOMEM;
	*item->old_runs = (struct sbx_run){.count = n, .owner = owner};
	item->n_old_runs = n ? 1 : 0;
	return 0;
}

static bool describes(const struct sbx_owner_record *record, const struct sbx_buf *text)
{
	struct sbx_digest digest;

	if (record->size != text->size)
		return false;
	sbx_digest_bytes(text->data, text->size, &digest);
	return sbx_digest_equal(&digest, &record->digest);
}

int sbx_own_batch_old_runs(struct sbx_own_batch *batch, struct sbx_view *view, const char *path,
	struct sbx_own_item *item)
{
	SBX_FREE struct sbx_run *runs = NULL;
	struct sbx_owner_record record;
	const struct sbx_owners *from;
	uint32_t unknown;
	int r;

	r = sbx_owners_lookup(view, path, &record, &from, NULL);
	if (r == -ENOENT)
		return 0;
	if (r == 0 && !describes(&record, &item->old_content)) {
		r = sbx_owner_table_add(batch->table, OWNER_UNKNOWN, &unknown);
		return r < 0 ? r : one_run(unknown, &item->old_content, item);
	}
	if (r == 0)
		r = copy_runs(batch, &record, from, &runs);
	if (r < 0)
		return r;
	if (record.whole)
		return one_run(
			record.n_runs ? runs[0].owner : batch->new_owner, &item->old_content, item);
	item->old_runs = sbx_take(&runs);
	item->n_old_runs = record.n_runs;
	return 0;
}

/* Adds a record of another lines file under a path. */
static int add_record(struct sbx_own_batch *batch, const struct sbx_owners *from,
	const struct sbx_owner_record *record, const char *path)
{
	SBX_FREE struct sbx_run *runs = NULL;
	struct sbx_owner_record added = *record;
	int r = copy_runs(batch, record, from, &runs);

	if (r < 0)
		return r;
	added.path = path;
	added.runs = runs;
	return sbx_owners_writer_add(batch->writer, &added);
}

int sbx_own_batch_carry(
	struct sbx_own_batch *batch, struct sbx_view *view, const char *origin, const char *path)
{
	struct sbx_owner_record record;
	const struct sbx_owners *from;
	int r = sbx_owners_lookup(view, origin, &record, &from, NULL);

	return r < 0 ? r : add_record(batch, from, &record, path);
}

int sbx_own_batch_keep(
	struct sbx_own_batch *batch, const struct sbx_owners *owners, const char *path)
{
	struct sbx_owner_record record;
	int r = sbx_owners_find(owners, path, &record);

	return r < 0 ? r : add_record(batch, owners, &record, path);
}

int sbx_own_batch_new(struct sbx_own_batch *batch, const char *path,
	const struct sbx_own_item *item, const struct sbx_buf *content)
{
	struct sbx_run run = {.owner = item->original ? SBX_OWN_ORIGINAL : batch->new_owner};
	struct sbx_owner_record record = {.path = path,
		.digest = item->digest,
		.size = item->size,
		.whole = item->whole,
		.runs = &run};

	run.count = item->whole ? 1 : count_lines(content);
	record.n_runs = run.count ? 1 : 0;
	record.n_lines = run.count;
	return sbx_owners_writer_add(batch->writer, &record);
}

static int make_room(struct sbx_own_batch *batch)
{
	size_t capacity = batch->capacity * 2 + 16;
	struct waiting *waiting;

	if (batch->n < batch->capacity)
		return 0;
	waiting = reallocarray(batch->waiting, capacity, sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	batch->waiting = waiting;
	batch->capacity = capacity;
	return 0;
}

int sbx_own_batch_compare(struct sbx_own_batch *batch, const char *path, struct sbx_own_item *item,
	struct sbx_buf *content)
{
	SBX_FREE char *copy = strdup(path);
	struct waiting *waiting;
	int r = copy ? make_room(batch) : -ENOMEM;

	if (r < 0)
		return r;
	waiting = &batch->waiting[batch->n++];
	*waiting = (struct waiting){.path = sbx_take(&copy), .item = *item};
	*item = (struct sbx_own_item){0};
	if (content) {
		waiting->has_new = true;
		waiting->new_content = *content;
		*content = SBX_BUF_INIT;
	}
	batch->bytes += waiting->item.old_content.size + waiting->new_content.size;
	if (batch->n < SBX_OWNERSHIP_BATCH_FILES && batch->bytes < SBX_OWNERSHIP_BATCH_BYTES)
		return 0;
	return sbx_own_batch_flush(batch, NULL);
}

static struct sbx_own_file own_file(const struct waiting *waiting)
{
	return (struct sbx_own_file){.path = waiting->path,
		.has_old = waiting->item.has_old,
		.old_data = waiting->item.old_content.data,
		.old_size = waiting->item.old_content.size,
		.old_runs = waiting->item.old_runs,
		.n_old_runs = waiting->item.n_old_runs,
		.has_new = waiting->has_new,
		.new_data = waiting->new_content.data,
		.new_size = waiting->new_content.size};
}

static int add_result(
	struct sbx_own_batch *batch, const struct waiting *waiting, const struct sbx_own_file *file)
{
	struct sbx_owner_record record = {.path = waiting->path,
		.digest = waiting->item.digest,
		.size = waiting->item.size,
		.runs = file->runs,
		.n_runs = file->n_runs,
		.n_lines = file->n_lines};

	return waiting->has_new ? sbx_owners_writer_add(batch->writer, &record) : 0;
}

int sbx_own_batch_flush(struct sbx_own_batch *batch, struct sbx_err *err)
{
	SBX_FREE struct sbx_own_file *files = NULL;
	int r;

	if (!batch->n)
		return 0;
	files = calloc(batch->n, sizeof(*files));
	if (!files)
		return sbx_err_set(err, ENOMEM, "find the owners of %zu files: %m", batch->n);
	for (size_t i = 0; i < batch->n; i++)
		files[i] = own_file(&batch->waiting[i]);
	r = sbx_own_compute(files, batch->n, batch->new_owner, err);
	for (size_t i = 0; r == 0 && i < batch->n; i++) {
		r = add_result(batch, &batch->waiting[i], &files[i]);
		if (r < 0)
			(void)sbx_err_set(
				err, -r, "record the owners of %s: %m", batch->waiting[i].path);
	}
	for (size_t i = 0; i < batch->n; i++)
		sbx_own_file_done(&files[i]);
	forget_waiting(batch);
	return r;
}

int sbx_own_batch_write(struct sbx_own_batch *batch, int layer_fd, struct sbx_err *err)
{
	return sbx_owners_writer_write(batch->writer, batch->table, layer_fd, SBX_LAYER_LINES, err);
}
