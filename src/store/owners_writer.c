/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "owners_format.h"
#include "sbx/buf.h"
#include "sbx/fs.h"
#include "sbx/id.h"

#define WRITE_CHUNK (256u * 1024)

struct pending {
	struct sbx_owner_record record; /* path and runs are ours */
	char *path;
	struct sbx_run *runs;
};

struct sbx_owners_writer {
	struct pending *items;
	size_t n;
	size_t capacity;
};

int sbx_owners_writer_new(struct sbx_owners_writer **ret)
{
	struct sbx_owners_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	*ret = writer;
	return 0;
}

void sbx_owners_writer_free(struct sbx_owners_writer *writer)
{
	if (!writer)
		return;
	for (size_t i = 0; i < writer->n; i++) {
		sbx_free_pointer(&writer->items[i].path);
		sbx_free_pointer(&writer->items[i].runs);
	}
	sbx_free_pointer(&writer->items);
	sbx_free_pointer(&writer);
}

static int reserve(struct sbx_owners_writer *writer)
{
	size_t capacity = SBX_MAX(writer->capacity * 2, (size_t)16);
	struct pending *items;

	if (writer->n < writer->capacity)
		return 0;
	items = reallocarray(writer->items, capacity, sizeof(*items));
	if (!items)
		return -ENOMEM;
	writer->items = items;
	writer->capacity = capacity;
	return 0;
}

/* Copies the runs with empty ones dropped and neighbours of one owner joined; counts the lines. */
static uint32_t copy_runs(
	struct sbx_run *to, const struct sbx_run *from, uint32_t n, uint64_t *ret_n_lines)
{
	uint32_t n_to = 0;

	*ret_n_lines = 0;
	for (uint32_t i = 0; i < n; i++) {
		*ret_n_lines += from[i].count;
		if (!from[i].count)
			continue;
		if (n_to && to[n_to - 1].owner == from[i].owner)
			to[n_to - 1].count += from[i].count;
		else
			to[n_to++] = from[i];
	}
	return n_to;
}

/* The one run of a file with one owner stays even when the file has no line. */
static int fill_runs(struct pending *item, const struct sbx_owner_record *record)
{
	uint64_t n_lines;

	item->runs = calloc(SBX_MAX(record->n_runs, 1u), sizeof(*item->runs));
	if (!item->runs)
		return -ENOMEM;
	item->record.n_runs = copy_runs(item->runs, record->runs, record->n_runs, &n_lines);
	if (n_lines != record->n_lines)
		return -EINVAL;
	if (!record->whole)
		return 0;
	if (!record->n_runs || item->record.n_runs > 1)
		return -EINVAL;
	item->runs[0] = (struct sbx_run){record->n_lines, record->runs[0].owner};
	item->record.n_runs = 1;
	return 0;
}

int sbx_owners_writer_add(struct sbx_owners_writer *writer, const struct sbx_owner_record *record)
{
	struct pending item = {.record = *record};
	size_t path_size = strlen(record->path);
	int r;

	if (!path_size || path_size > SBX_PATH_MAX)
		return -EINVAL;
	r = reserve(writer);
	if (r < 0)
		return r;
	r = fill_runs(&item, record);
	if (r == 0)
		item.path = strdup(record->path);
	if (r == 0 && !item.path)
		r = -ENOMEM;
	if (r < 0) {
		sbx_free_pointer(&item.runs);
		return r;
	}
	writer->items[writer->n++] = item;
	return 0;
}

static int compare_pending(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static size_t record_room(const struct pending *item)
{
	return sizeof(struct owners_record) + owners_path_room(strlen(item->path)) +
	       item->record.n_runs * sizeof(struct sbx_run);
}

/* Sorts; each path must be there once, each owner must have a name. */
static int prepare(struct sbx_owners_writer *writer, size_t n_owners, struct sbx_err *err)
{
	if (writer->n > UINT32_MAX)
		return sbx_err_set(err, E2BIG, "too many files in one layer: %zu", writer->n);
	if (writer->n)
		qsort(writer->items, writer->n, sizeof(*writer->items), compare_pending);
	for (size_t i = 0; i < writer->n; i++) {
		const struct pending *item = &writer->items[i];

		if (i && !strcmp(item->path, writer->items[i - 1].path))
			return sbx_err_set(err, EEXIST, "two records for %s", item->path);
		for (uint32_t k = 0; k < item->record.n_runs; k++)
			if (item->runs[k].owner >= n_owners)
				return sbx_err_set(
					err, EINVAL, "owner without a name in %s", item->path);
	}
	return 0;
}

static int put_names(const struct sbx_owner_table *table, struct sbx_buf *names)
{
	for (uint32_t i = 0; i < sbx_owner_table_size(table); i++) {
		const char *name = sbx_owner_table_name(table, i);
		uint8_t size = (uint8_t)strlen(name); /* at most SBX_OWNER_MAX */
		int r = sbx_buf_append(names, &size, 1);

		if (r == 0)
			r = sbx_buf_append(names, name, size + 1u);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Header, index and names: all that comes before the records. */
static int put_front(const struct sbx_owners_writer *writer, const struct sbx_owner_table *table,
	struct sbx_buf *out)
{
	SBX_BUF struct sbx_buf names = SBX_BUF_INIT;
	struct owners_header header = {
		.magic = OWNERS_MAGIC,
		.version = OWNERS_VERSION,
		.n_records = (uint32_t)writer->n,
		.index_offset = sizeof(header),
		.n_names = (uint32_t)sbx_owner_table_size(table),
	};
	uint64_t at;
	int r;

	r = put_names(table, &names);
	if (r < 0)
		return r;
	header.names_size = (uint32_t)names.size; /* at most SBX_OWNERS_MAX names */
	header.names_offset = header.index_offset + writer->n * sizeof(at);
	checksum(names.data, names.size, header.names_checksum);
	while (names.size % OWNERS_ALIGN && r == 0)
		r = sbx_buf_append(&names, "", 1);
	header.file_size = header.names_offset + names.size;
	at = header.file_size;
	for (size_t i = 0; i < writer->n; i++)
		header.file_size += record_room(&writer->items[i]);
	checksum(&header, offsetof(struct owners_header, checksum), header.checksum);
	if (r == 0)
		r = sbx_buf_append(out, &header, sizeof(header));
	for (size_t i = 0; i < writer->n && r == 0; i++) {
		r = sbx_buf_append(out, &at, sizeof(at));
		at += record_room(&writer->items[i]);
	}
	return r < 0 ? r : sbx_buf_append(out, names.data, names.size);
}

static int put_record(const struct pending *item, size_t number, struct sbx_buf *out)
{
	static const char zeros[OWNERS_ALIGN];
	size_t path_size = strlen(item->path),
	       runs_size = item->record.n_runs * sizeof(*item->runs);
	struct owners_record head = {
		.number = (uint32_t)number,
		.flags = item->record.whole ? OWNERS_WHOLE : 0,
		.size = item->record.size,
		.n_lines = item->record.n_lines,
		.n_runs = item->record.n_runs,
		.path_size = (uint32_t)path_size,
	};
	int r;

	memcpy(head.digest, item->record.digest.bytes, sizeof(head.digest));
	checksum(item->runs, runs_size, head.runs_checksum);
	checksum_pair(&head, offsetof(struct owners_record, checksum), item->path, path_size,
		head.checksum);
	r = sbx_buf_append(out, &head, sizeof(head));
	if (r == 0)
		r = sbx_buf_append(out, item->path, path_size);
	if (r == 0)
		r = sbx_buf_append(out, zeros, owners_path_room(path_size) - path_size);
	if (r == 0)
		r = sbx_buf_append(out, item->runs, runs_size);
	return r;
}

static int write_out(
	int fd, const struct sbx_owners_writer *writer, const struct sbx_owner_table *table)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	int r = put_front(writer, table, &out);

	for (size_t i = 0; i < writer->n && r == 0; i++) {
		r = put_record(&writer->items[i], i, &out);
		if (r == 0 && out.size >= WRITE_CHUNK) {
			r = sbx_fs_write_all(fd, out.data, out.size);
			sbx_buf_clear(&out);
		}
	}
	return r < 0 ? r : sbx_fs_write_all(fd, out.data, out.size);
}

int sbx_owners_writer_write(struct sbx_owners_writer *writer, const struct sbx_owner_table *table,
	int dir_fd, const char *name, struct sbx_err *err)
{
	char temporary[SBX_ID_SIZE];
	SBX_CLOSE int fd = -EBADF;
	int r;

	r = prepare(writer, sbx_owner_table_size(table), err);
	if (r < 0)
		return r;
	r = sbx_id_new(".lines", temporary);
	if (r < 0)
		return sbx_err_set(err, -r, "name for %s: %m", name);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return sbx_err_set(err, errno, "create %s: %m", name);
	r = write_out(fd, writer, table);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir_fd, temporary, 0); /* goes with its layer otherwise */
		return sbx_err_set(err, -r, "write %s: %m", name);
	}
	return 0;
}
