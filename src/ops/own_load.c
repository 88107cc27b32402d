/* SPDX-License-Identifier: MIT */
#include "own_load.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "sbx/fs.h"
#include "sbx/lines.h"

void sbx_owned_done(struct sbx_owned *owned)
{
	sbx_buf_done(&owned->content);
	sbx_free_pointer(&owned->runs);
	*owned = SBX_OWNED_INIT;
}

uint32_t sbx_owned_count_lines(const void *data, size_t size)
{
	const char *p = data, *end = p + size;
	uint32_t n = 0;

	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));

		n++;
		p = newline ? newline + 1 : end;
	}
	return n;
}

/* Reads the content unless it is too large to be worked on by lines. */
static int load_content(struct sbx_view *view, const char *path, struct sbx_owned *owned,
	uint64_t *ret_size, struct sbx_err *err)
{
	SBX_CLOSE int fd = sbx_view_openat(view, path, O_RDONLY);
	struct stat st;
	int r;

	if (fd < 0)
		return sbx_err_set(err, -fd, "open '%s': %m", path);
	if (fstat(fd, &st) < 0)
		return sbx_err_set(err, errno, "stat '%s': %m", path);
	*ret_size = (uint64_t)st.st_size;
	if (st.st_size > (off_t)SBX_LINES_BYTES_MAX) {
		owned->is_large = true;
		return 0;
	}
	r = sbx_fs_read_fd(fd, SBX_LINES_BYTES_MAX, &owned->content);
	if (r < 0)
		return sbx_err_set(err, -r, "read '%s': %m", path);
	return 0;
}

static int set_original(struct sbx_owned *owned)
{
	owned->whole =
		owned->is_large || sbx_text_is_binary(owned->content.data, owned->content.size);
	owned->n_lines = owned->is_large
				 ? 1
				 : sbx_owned_count_lines(owned->content.data, owned->content.size);
	owned->runs = calloc(1, sizeof(*owned->runs));
	if (!owned->runs)
		return -ENOMEM;
	owned->runs[0].count = owned->n_lines; /* owner 0 is "original" */
	owned->n_runs = 1;
	return 0;
}

static int translate(const struct sbx_owner_record *record, const struct sbx_owners *from,
	struct sbx_owner_table *table, struct sbx_owned *owned)
{
	owned->runs = calloc(record->n_runs + 1, sizeof(*owned->runs));
	if (!owned->runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < record->n_runs; i++) {
		const char *name = sbx_owners_name(from, record->runs[i].owner);
		int r;

		if (!name)
			return -EBADMSG;
		r = sbx_owner_table_add(table, name, &owned->runs[i].owner);
		if (r < 0)
			return r;
		owned->runs[i].count = record->runs[i].count;
	}
	owned->n_runs = record->n_runs;
	owned->n_lines = record->n_lines;
	owned->whole = record->whole;
	return 0;
}

static int load_owners(struct sbx_view *view, const char *path, uint64_t size,
	struct sbx_owner_table *table, struct sbx_owned *owned, struct sbx_err *err)
{
	const struct sbx_owners *from = NULL;
	struct sbx_owner_record record;
	int r;

	r = sbx_owners_lookup(view, path, &record, &from, err);
	if (r == -ENOENT)
		r = set_original(owned);
	else if (r < 0)
		return r;
	else if (record.size != size)
		return sbx_err_kind(err, SBX_KIND_INTERNAL, EBADMSG,
			"the owners recorded for '%s' are those of %llu bytes, but it has %llu; "
			"run \"sbx-admin verify\"",
			path, (unsigned long long)record.size, (unsigned long long)size);
	else
		r = translate(&record, from, table, owned);
	if (r < 0)
		return sbx_err_set(err, -r, "load the owners of '%s': %m", path);
	return 0;
}

int sbx_owned_load(struct sbx_view *view, const char *path, struct sbx_owner_table *table,
	struct sbx_owned *ret, struct sbx_err *err)
{
	SBX_OWNED struct sbx_owned owned = SBX_OWNED_INIT;
	uint64_t size = 0;
	int r;

	r = load_content(view, path, &owned, &size, err);
	if (r == 0)
		r = load_owners(view, path, size, table, &owned, err);
	if (r < 0)
		return r;
	*ret = owned;
	owned = SBX_OWNED_INIT;
	return 0;
}
