/* SPDX-License-Identifier: MIT */
/*
 * Any lines file: opening it and each look-up gives what is there or says that it is damaged, and
 * what can be read can be written again and reads the same. The first byte of the input tells which
 * checksums are put right before, so that what stands behind them is met as well; the rest is the
 * file.
 */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../src/store/owners_format.h"
#include "sbx/buf.h"
#include "sbx/fs.h"

enum mend {
	MEND_HEADER = 1 << 0,
	MEND_NAMES = 1 << 1,
	MEND_RECORDS = 1 << 2,
	MEND_RUNS = 1 << 3,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir_path[] = "/tmp/sbx-fuzz-owners-XXXXXX";
static int dir_fd = -EBADF;

static void remove_dir(void)
{
	(void)unlinkat(dir_fd, "lines", 0); /* may not be there */
	(void)unlinkat(dir_fd, "again", 0);
	(void)rmdir(dir_path);
}

static void make_dir(void)
{
	if (dir_fd >= 0)
		return;
	assert(mkdtemp(dir_path));
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(dir_fd >= 0);
	assert(atexit(remove_dir) == 0);
}

static bool fits(uint64_t at, uint64_t n, size_t size)
{
	return at <= size && n <= size - at;
}

static void mend_record(char *data, size_t size, uint64_t at, uint32_t number, enum mend mend)
{
	struct owners_record record;
	uint64_t path_at = at + sizeof(record);
	uint64_t room, n_bytes;

	if (!fits(at, sizeof(record), size))
		return;
	memcpy(&record, data + at, sizeof(record));
	record.number = number;
	room = owners_path_room(record.path_size);
	n_bytes = record.n_runs * sizeof(struct sbx_run);
	if ((mend & MEND_RUNS) && fits(path_at + room, n_bytes, size))
		checksum(data + path_at + room, n_bytes, record.runs_checksum);
	if (fits(path_at, record.path_size, size))
		checksum_pair(&record, offsetof(struct owners_record, checksum), data + path_at,
			record.path_size, record.checksum);
	memcpy(data + at, &record, sizeof(record));
}

static void mend_file(char *data, size_t size, enum mend mend)
{
	struct owners_header header;

	if (size < sizeof(header))
		return;
	memcpy(&header, data, sizeof(header));
	for (uint32_t i = 0; (mend & MEND_RECORDS) && i < header.n_records; i++) {
		uint64_t at;

		if (!fits(header.index_offset, (i + UINT64_C(1)) * sizeof(at), size))
			break;
		memcpy(&at, data + header.index_offset + i * sizeof(at), sizeof(at));
		mend_record(data, size, at, i, mend);
	}
	if ((mend & MEND_NAMES) && fits(header.names_offset, header.names_size, size))
		checksum(data + header.names_offset, header.names_size, header.names_checksum);
	if (mend & MEND_HEADER) {
		memcpy(header.magic, OWNERS_MAGIC, sizeof(header.magic));
		header.version = OWNERS_VERSION;
		header.file_size = size;
		checksum(&header, offsetof(struct owners_header, checksum), header.checksum);
	}
	memcpy(data, &header, sizeof(header));
}

static void write_file(const struct sbx_buf *file)
{
	SBX_CLOSE int fd = openat(dir_fd, "lines", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert(fd >= 0);
	assert(sbx_fs_write_all(fd, file->data, file->size) == 0);
}

static bool same_record(const struct sbx_owners *x_from, const struct sbx_owner_record *x,
	const struct sbx_owners *y_from, const struct sbx_owner_record *y)
{
	uint32_t i = 0, j = 0, i_left = 0, j_left = 0, n = 0;

	if (strcmp(x->path, y->path) != 0 || x->size != y->size || x->whole != y->whole ||
		x->n_lines != y->n_lines || !sbx_digest_equal(&x->digest, &y->digest))
		return false;
	/* runs may have been joined: line by line would be too slow, piece by piece is not */
	while (n < x->n_lines) {
		const char *x_name, *y_name;
		uint32_t piece;

		while (!i_left)
			i_left = x->runs[i++].count;
		while (!j_left)
			j_left = y->runs[j++].count;
		x_name = sbx_owners_name(x_from, x->runs[i - 1].owner);
		y_name = sbx_owners_name(y_from, y->runs[j - 1].owner);
		if (!x_name || !y_name || strcmp(x_name, y_name) != 0)
			return false;
		piece = SBX_MIN(i_left, j_left);
		i_left -= piece;
		j_left -= piece;
		n += piece;
	}
	return true;
}

/* The same names and records in a new file; false when the writer will not have them. */
static bool write_again(const struct sbx_owners *owners)
{
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	struct sbx_owner_record record;
	uint32_t index;

	assert(sbx_owners_writer_new(&writer) == 0);
	assert(sbx_owner_table_new(&table) == 0);
	for (uint32_t i = 1; i < sbx_owners_n_names(owners); i++) {
		assert(sbx_owner_table_add(table, sbx_owners_name(owners, i), &index) == 0);
		if (index != i)
			return false; /* a name twice */
	}
	for (size_t i = 0; i < sbx_owners_count(owners); i++) {
		assert(sbx_owners_get(owners, i, &record) == 0);
		if (sbx_owners_writer_add(writer, &record) < 0)
			return false;
	}
	return sbx_owners_writer_write(writer, table, dir_fd, "again", NULL) == 0;
}

/* Every record is sound, paths grow, names are as the writer makes them. */
static void check_round_trip(const struct sbx_owners *owners)
{
	struct sbx_owners *again = NULL;
	struct sbx_owner_record x, y;

	if (!write_again(owners))
		return;
	assert(sbx_owners_open(dir_fd, "again", &again, NULL) == 0);
	assert(sbx_owners_count(again) == sbx_owners_count(owners));
	for (size_t i = 0; i < sbx_owners_count(owners); i++) {
		assert(sbx_owners_get(owners, i, &x) == 0);
		assert(sbx_owners_find(owners, x.path, &y) == 0 && y.runs == x.runs);
		assert(sbx_owners_find(again, x.path, &y) == 0);
		assert(same_record(owners, &x, again, &y));
	}
	sbx_owners_free(again);
}

static void check_records(const struct sbx_owners *owners)
{
	const char *name = sbx_owners_name(owners, 0);
	struct sbx_owner_record record;
	const char *last = NULL;
	bool sound = name && !strcmp(name, SBX_OWNER_ORIGINAL);

	for (size_t i = 0; i < sbx_owners_count(owners); i++) {
		int r = sbx_owners_get(owners, i, &record);

		assert(r == 0 || r == -EBADMSG);
		if (r == 0) {
			uint64_t n_lines = 0;

			for (uint32_t run = 0; run < record.n_runs; run++) {
				assert(sbx_owners_name(owners, record.runs[run].owner));
				n_lines += record.runs[run].count;
			}
			assert(n_lines == record.n_lines);
			r = sbx_owners_find(owners, record.path, &record);
			assert(r == 0 || r == -EBADMSG || r == -ENOENT);
		}
		sound = sound && r == 0 && (!last || strcmp(last, record.path) < 0);
		last = r == 0 ? record.path : last;
	}
	assert(sbx_owners_get(owners, sbx_owners_count(owners), &record) == -ENOENT);
	if (sound)
		check_round_trip(owners);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	struct sbx_owners *owners = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	if (!size)
		return 0;
	make_dir();
	assert(sbx_buf_append(&file, data + 1, size - 1) == 0);
	mend_file(file.data, file.size, data[0]);
	write_file(&file);
	r = sbx_owners_open(dir_fd, "lines", &owners, &err);
	if (r < 0) {
		assert(r == -EBADMSG && strstr(err.message, "lines"));
		return 0;
	}
	check_records(owners);
	sbx_owners_free(owners);
	return 0;
}
