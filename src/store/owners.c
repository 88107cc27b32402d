/* SPDX-License-Identifier: MIT */
#include "sbx/owners.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "owners_format.h"
#include "sbx/store.h"
#include "view_internal.h"

struct sbx_owners {
	const uint8_t *map;
	size_t size;
	const struct owners_header *header;
	const uint64_t *index;
	const char **names;
};

void sbx_owners_free(struct sbx_owners *owners)
{
	if (!owners)
		return;
	if (owners->map)
		(void)munmap((void *)(uintptr_t)owners->map, owners->size); /* ours, whole */
	sbx_free_pointer(&owners->names);
	sbx_free_pointer(&owners);
}

static void owners_freep(struct sbx_owners **owners)
{
	sbx_owners_free(*owners);
}

static int map_file(int dir_fd, const char *name, struct sbx_owners *owners, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	void *map;

	if (fd < 0)
		return sbx_err_set(err, errno, "open %s: %m", name);
	if (fstat(fd, &st) < 0)
		return sbx_err_set(err, errno, "stat %s: %m", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < sizeof(struct owners_header))
		return sbx_err_set(err, EBADMSG, "%s is damaged: %jd bytes are no lines file", name,
			(intmax_t)st.st_size);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return sbx_err_set(err, errno, "map %s: %m", name);
	owners->map = map;
	owners->size = (size_t)st.st_size;
	owners->header = map;
	return 0;
}

static bool range_fits(uint64_t offset, uint64_t size, uint64_t limit)
{
	return offset <= limit && size <= limit - offset;
}

/* What is wrong with the header, or NULL. */
static const char *header_damage(const struct owners_header *header, size_t size)
{
	uint8_t sum[CHECKSUM_SIZE];

	if (memcmp(header->magic, OWNERS_MAGIC, sizeof(header->magic)) != 0)
		return "it does not begin with " OWNERS_MAGIC;
	if (header->version != OWNERS_VERSION)
		return "its format version is unknown to this program";
	checksum(header, offsetof(struct owners_header, checksum), sum);
	if (memcmp(sum, header->checksum, sizeof(sum)) != 0)
		return "the header's checksum does not match";
	if (header->file_size != size)
		return "its length is not the one that its header says";
	if (header->index_offset % OWNERS_ALIGN ||
		!range_fits(header->index_offset, header->n_records * sizeof(uint64_t), size) ||
		!range_fits(header->names_offset, header->names_size, size))
		return "the header points outside of the file";
	return NULL;
}

/* Fills names[]; what is wrong with the table, or NULL. */
static const char *names_damage(const struct owners_header *header, const char **names)
{
	const char *at = (const char *)header + header->names_offset;
	const char *end = at + header->names_size;
	uint8_t sum[CHECKSUM_SIZE];

	checksum(at, header->names_size, sum);
	if (memcmp(sum, header->names_checksum, sizeof(sum)) != 0)
		return "the checksum of the owner names does not match";
	for (uint32_t i = 0; i < header->n_names; i++) {
		size_t size = at < end ? (uint8_t)*at : 0;

		if (!size || size > SBX_OWNER_MAX || (size_t)(end - at) < size + 2 ||
			strnlen(at + 1, size + 1) != size)
			return "an owner name is malformed";
		names[i] = at + 1;
		at += size + 2;
	}
	return at == end ? NULL : "bytes follow the owner names";
}

int sbx_owners_open(int dir_fd, const char *name, struct sbx_owners **ret, struct sbx_err *err)
{
	SBX_CLEANUP(owners_freep) struct sbx_owners *owners = NULL;
	const char *damage;
	int r;

	owners = calloc(1, sizeof(*owners));
	if (!owners)
		return sbx_err_set(err, ENOMEM, "open %s: %m", name);
	r = map_file(dir_fd, name, owners, err);
	if (r < 0)
		return r;
	damage = header_damage(owners->header, owners->size);
	if (!damage && owners->header->n_names > SBX_OWNERS_MAX)
		damage = "it has too many owner names";
	if (damage)
		return sbx_err_set(err, EBADMSG, "%s is damaged: %s", name, damage);
	owners->index =
		(const uint64_t *)(const void *)(owners->map + owners->header->index_offset);
	owners->names = calloc(owners->header->n_names + 1u, sizeof(*owners->names));
	if (!owners->names)
		return sbx_err_set(err, ENOMEM, "open %s: %m", name);
	damage = names_damage(owners->header, owners->names);
	if (damage)
		return sbx_err_set(err, EBADMSG, "%s is damaged: %s", name, damage);
	*ret = sbx_take(&owners);
	return 0;
}

size_t sbx_owners_count(const struct sbx_owners *owners)
{
	return owners->header->n_records;
}

const char *sbx_owners_name(const struct sbx_owners *owners, uint32_t index)
{
	return index < owners->header->n_names ? owners->names[index] : NULL;
}

size_t sbx_owners_n_names(const struct sbx_owners *owners)
{
	return owners->header->n_names;
}

static const char *record_path(const struct owners_record *record)
{
	return (const char *)(record + 1);
}

static const struct sbx_run *record_runs(const struct owners_record *record)
{
	return (const struct sbx_run *)(const void *)(record_path(record) +
						      owners_path_room(record->path_size));
}

/* The record with its fixed part and path checked, or NULL. */
static const struct owners_record *record_at(const struct sbx_owners *owners, size_t number)
{
	const struct owners_record *record;
	uint8_t sum[CHECKSUM_SIZE];
	uint64_t at = owners->index[number], room;

	if (at % OWNERS_ALIGN || !range_fits(at, sizeof(*record), owners->size))
		return NULL;
	record = (const struct owners_record *)(const void *)(owners->map + at);
	room = owners->size - at - sizeof(*record);
	if (record->number != number || record->path_size >= room ||
		!range_fits(owners_path_room(record->path_size),
			record->n_runs * sizeof(struct sbx_run), room))
		return NULL;
	checksum_pair(record, offsetof(struct owners_record, checksum), record_path(record),
		record->path_size, sum);
	if (memcmp(sum, record->checksum, sizeof(sum)) != 0 ||
		strnlen(record_path(record), record->path_size + 1u) != record->path_size)
		return NULL;
	return record->flags & ~(uint32_t)OWNERS_KNOWN_FLAGS ? NULL : record;
}

/* Whether the runs are as written and tile the file. */
static bool runs_sound(const struct sbx_owners *owners, const struct owners_record *record)
{
	const struct sbx_run *runs = record_runs(record);
	uint8_t sum[CHECKSUM_SIZE];
	uint64_t n_lines = 0;

	checksum(runs, record->n_runs * sizeof(*runs), sum);
	if (memcmp(sum, record->runs_checksum, sizeof(sum)) != 0)
		return false;
	for (uint32_t i = 0; i < record->n_runs; i++) {
		if (runs[i].owner >= owners->header->n_names)
			return false;
		n_lines += runs[i].count;
	}
	return n_lines == record->n_lines && !(record->flags & OWNERS_WHOLE && record->n_runs != 1);
}

static int give_record(const struct sbx_owners *owners, const struct owners_record *record,
	struct sbx_owner_record *ret)
{
	if (!runs_sound(owners, record))
		return -EBADMSG;
	*ret = (struct sbx_owner_record){
		.path = record_path(record),
		.size = record->size,
		.whole = record->flags & OWNERS_WHOLE,
		.runs = record_runs(record),
		.n_runs = record->n_runs,
		.n_lines = record->n_lines,
	};
	memcpy(ret->digest.bytes, record->digest, sizeof(ret->digest.bytes));
	return 0;
}

int sbx_owners_get(const struct sbx_owners *owners, size_t index, struct sbx_owner_record *ret)
{
	const struct owners_record *record;

	if (index >= owners->header->n_records)
		return -ENOENT;
	record = record_at(owners, index);
	return record ? give_record(owners, record, ret) : -EBADMSG;
}

int sbx_owners_find(const struct sbx_owners *owners, const char *path, struct sbx_owner_record *ret)
{
	size_t low = 0, high = owners->header->n_records;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct owners_record *record = record_at(owners, middle);
		int order;

		if (!record)
			return -EBADMSG;
		order = strcmp(record_path(record), path);
		if (order == 0)
			return give_record(owners, record, ret);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -ENOENT;
}

/* Opens the layer's lines file at the first need; NULL in *ret when it has none. */
static int layer_owners(
	struct view_layer *layer, const struct sbx_owners **ret, struct sbx_err *err)
{
	if (layer->has_lines && !layer->owners) {
		struct sbx_err open_err = SBX_ERR_INIT;
		int r = sbx_owners_open(
			layer->tree_fd, "../" SBX_LAYER_LINES, &layer->owners, &open_err);

		if (r < 0 && r != -ENOENT) {
			if (err)
				*err = open_err;
			return sbx_err_wrap(err, r, "layer %s", layer->id);
		}
		layer->has_lines = r == 0;
	}
	*ret = layer->owners;
	return 0;
}

int sbx_owners_lookup(struct sbx_view *view, const char *path, struct sbx_owner_record *ret,
	const struct sbx_owners **ret_from, struct sbx_err *err)
{
	struct sbx_node node;
	/* what gives a file content is in its layer's tree, so that no layer above the one that
	 * shows it has a record; of a file that is gone the last one counts */
	size_t n = sbx_view_lookup(view, path, &node) == 0 ? node.layer + 1 : view->n;

	for (size_t i = n; i-- > 0;) {
		const struct sbx_owners *owners;
		int r = layer_owners(&view->layers[i], &owners, err);

		if (r < 0)
			return r;
		if (!owners)
			continue;
		r = sbx_owners_find(owners, path, ret);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return sbx_err_set(err, -r,
				"lines of layer %s are damaged near the record of %s",
				view->layers[i].id, path);
		*ret_from = owners;
		return 0;
	}
	return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT, "no owners are recorded for %s", path);
}
