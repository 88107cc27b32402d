/* SPDX-License-Identifier: MIT */
#include "tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"
#include "sbx/json.h"
#include "sparse.h"
#include "xattr.h"

#define BLOCK      512u
#define CHUNK_SIZE (128u * 1024)
#define FLUSH_AT   (256u * 1024)
#define ID_MAX     07777777u              /* in seven octal digits */
#define NUMBER_MAX UINT64_C(077777777777) /* in eleven */

struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
	char type;
	char linkname[100], magic[6], version[2], uname[32], gname[32];
	char devmajor[8], devminor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct ustar) == BLOCK, "no padding");

int tar_init(struct tar *tar, int fd)
{
	*tar = (struct tar){.fd = fd, .chunk = malloc(CHUNK_SIZE)};
	return tar->chunk ? 0 : -ENOMEM;
}

void tar_done(struct tar *tar)
{
	sbx_buf_done(&tar->out);
	sbx_free_pointer(&tar->chunk);
}

static int flush(struct tar *tar, size_t at_least)
{
	int r;

	if (tar->out.size < at_least)
		return 0;
	r = sbx_fs_write_all(tar->fd, tar->out.data, tar->out.size);
	sbx_buf_clear(&tar->out);
	return r;
}

static int put_zeros(struct tar *tar, size_t n)
{
	static const char zeros[BLOCK];

	for (; n; n -= SBX_MIN(n, sizeof(zeros))) {
		int r = sbx_buf_append(&tar->out, zeros, SBX_MIN(n, sizeof(zeros)));

		if (r < 0)
			return r;
	}
	return 0;
}

static size_t padding_of(uint64_t size)
{
	return (size_t)(-size % BLOCK);
}

/* One record "LENGTH KEY=VALUE\n", whose length counts its own digits. */
static int put_pax(struct sbx_buf *pax, const char *key, const void *value, size_t size)
{
	size_t rest = strlen(key) + size + 3, length = rest + 1; /* blank, '=', newline */
	int r;

	while (length != rest + (size_t)snprintf(NULL, 0, "%zu", length))
		length = rest + (size_t)snprintf(NULL, 0, "%zu", length);
	r = sbx_buf_printf(pax, "%zu %s=", length, key);
	if (r == 0)
		r = sbx_buf_append(pax, value, size);
	return r < 0 ? r : sbx_buf_append(pax, "\n", 1);
}

static int put_pax_number(struct sbx_buf *pax, const char *key, uint64_t value)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%" PRIu64, value);

	return put_pax(pax, key, text, (size_t)n);
}

/* Seconds with nine digits; before 1970 the fraction counts down, as the number's text does. */
static int put_pax_time(struct sbx_buf *pax, const struct timespec *time)
{
	int64_t seconds = time->tv_sec;
	long nanoseconds = time->tv_nsec;
	char text[48];
	int n;

	if (seconds < 0 && nanoseconds) {
		seconds++;
		nanoseconds = (long)SBX_NSEC_PER_SEC - nanoseconds;
	}
	n = snprintf(text, sizeof(text), "%s%" PRIu64 ".%09ld", time->tv_sec < 0 ? "-" : "",
		(uint64_t)(seconds < 0 ? -seconds : seconds), nanoseconds);
	return put_pax(pax, "mtime", text, (size_t)n);
}

static int put_pax_xattrs(struct sbx_buf *pax, int fd, uint64_t *n_dropped)
{
	SBX_BUF struct sbx_buf names = SBX_BUF_INIT, value = SBX_BUF_INIT, key = SBX_BUF_INIT;
	size_t n = 0;
	int r = xattr_list(fd, xattr_is_portable, &names, &n);

	for (size_t at = 0; r == 0 && at < names.size; at += strlen(names.data + at) + 1) {
		sbx_buf_clear(&key);
		r = sbx_buf_printf(&key, "SCHILY.xattr.%s", names.data + at);
		if (r == 0 && strchr(names.data + at, '=')) {
			n++; /* the record's key would end there */
			continue;
		}
		if (r == 0)
			r = xattr_get(fd, names.data + at, &value);
		if (r == 0)
			r = put_pax(pax, key.data, value.data, value.size);
	}
	*n_dropped += n;
	return r;
}

/* An octal number in a field; one that does not fit is 0 here and has a pax record. */
static void set_number(char *field, size_t size, uint64_t value, uint64_t max)
{
	(void)snprintf(field, size, "%0*" PRIo64, (int)size - 1, value <= max ? value : 0);
}

/* A string that may fill its field without a NUL; a longer one has a pax record. */
static void set_string(char *field, size_t size, const char *s)
{
	memcpy(field, s, strnlen(s, size));
}

static void set_checksum(struct ustar *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned int sum = 0;

	memset(header->checksum, ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	(void)snprintf(header->checksum, sizeof(header->checksum), "%06o", sum); /* and a blank */
}

static int put_header(struct tar *tar, const struct ustar *from)
{
	struct ustar header = *from;

	memcpy(header.magic, "ustar", 6);
	memcpy(header.version, "00", 2);
	set_checksum(&header);
	return sbx_buf_append(&tar->out, &header, sizeof(header));
}

/* The records as an entry of their own in front of the one that they are about. */
static int put_pax_entry(struct tar *tar, const struct sbx_buf *pax)
{
	struct ustar header = {.name = "PaxHeaders/entry", .type = 'x'};
	int r;

	set_number(header.mode, sizeof(header.mode), 0644, ID_MAX);
	set_number(header.uid, sizeof(header.uid), 0, ID_MAX);
	set_number(header.gid, sizeof(header.gid), 0, ID_MAX);
	set_number(header.size, sizeof(header.size), pax->size, NUMBER_MAX);
	set_number(header.mtime, sizeof(header.mtime), 0, NUMBER_MAX);
	r = put_header(tar, &header);
	if (r == 0)
		r = sbx_buf_append(&tar->out, pax->data, pax->size);
	return r < 0 ? r : put_zeros(tar, padding_of(pax->size));
}

static char type_of(const struct tar_entry *entry)
{
	if (entry->is_hard_link)
		return '1';
	switch (entry->st->st_mode & S_IFMT) {
	case S_IFLNK:
		return '2';
	case S_IFDIR:
		return '5';
	case S_IFIFO:
		return '6';
	default:
		return '0';
	}
}

/* What is about to be written for one entry. */
struct plan {
	struct ustar header;
	struct sbx_buf name; /* with the slash of a directory */
	struct sbx_buf pax;
	struct sparse_map map;
	struct sbx_buf map_text; /* in front of the data of a file with holes */
	uint64_t size;           /* of what follows the header */
};

static void plan_done(struct plan *plan)
{
	sbx_buf_done(&plan->name);
	sbx_buf_done(&plan->pax);
	sparse_map_done(&plan->map);
	sbx_buf_done(&plan->map_text);
}

/* A string for the header, or for a record when it is too long for it. */
static int plan_string(
	struct plan *plan, char *field, size_t size, const char *key, const char *value)
{
	size_t length = strlen(value);
	int r = 0;

	set_string(field, size, value);
	if (length <= size)
		return 0;
	if (!sbx_utf8_valid(value, length)) /* records are UTF-8 unless told otherwise */
		r = put_pax(&plan->pax, "hdrcharset", "BINARY", 6);
	return r < 0 ? r : put_pax(&plan->pax, key, value, length);
}

static int plan_name(struct plan *plan, const struct tar_entry *entry)
{
	int r = sbx_buf_append_string(&plan->name, entry->path);

	if (r == 0 && type_of(entry) == '5')
		r = sbx_buf_append(&plan->name, "/", 1);
	if (r == 0)
		r = plan_string(plan, plan->header.name, sizeof(plan->header.name),
			plan->map.n ? "GNU.sparse.name" : "path", plan->name.data);
	if (r == 0 && entry->target)
		r = plan_string(plan, plan->header.linkname, sizeof(plan->header.linkname),
			"linkpath", entry->target);
	return r;
}

/* GNU sparse 1.0: the map in decimal lines, padded to a block, then the extents' data. */
static int plan_sparse(struct plan *plan, const struct tar_entry *entry)
{
	int r = sbx_buf_printf(&plan->map_text, "%zu\n", plan->map.n);

	for (size_t i = 0; i < plan->map.n && r == 0; i++) {
		r = sbx_buf_printf(&plan->map_text, "%" PRIu64 "\n%" PRIu64 "\n",
			plan->map.extents[i].offset, plan->map.extents[i].size);
		plan->size += plan->map.extents[i].size;
	}
	while (r == 0 && plan->map_text.size % BLOCK)
		r = sbx_buf_append(&plan->map_text, "", 1);
	plan->size += plan->map_text.size;
	if (r == 0)
		r = put_pax(&plan->pax, "GNU.sparse.major", "1", 1);
	if (r == 0)
		r = put_pax(&plan->pax, "GNU.sparse.minor", "0", 1);
	if (r == 0)
		r = put_pax_number(&plan->pax, "GNU.sparse.realsize", (uint64_t)entry->st->st_size);
	return r;
}

static int plan_content(struct plan *plan, const struct tar_entry *entry)
{
	int r;

	if (type_of(entry) != '0')
		return 0;
	r = sparse_map_read(&plan->map, entry->fd, entry->st);
	if (r < 0)
		return r;
	if (plan->map.n)
		return plan_sparse(plan, entry);
	plan->size = (uint64_t)entry->st->st_size;
	return 0;
}

static int plan_numbers(struct plan *plan, const struct tar_entry *entry)
{
	const struct timespec *mtime = &entry->st->st_mtim;
	struct ustar *header = &plan->header;
	int r = 0;

	set_number(header->mode, sizeof(header->mode), entry->st->st_mode & 07777, ID_MAX);
	set_number(header->uid, sizeof(header->uid), entry->uid, ID_MAX);
	set_number(header->gid, sizeof(header->gid), entry->gid, ID_MAX);
	set_number(header->size, sizeof(header->size), plan->size, NUMBER_MAX);
	set_number(header->mtime, sizeof(header->mtime),
		mtime->tv_sec < 0 ? 0 : (uint64_t)mtime->tv_sec, NUMBER_MAX);
	if (entry->uid > ID_MAX)
		r = put_pax_number(&plan->pax, "uid", entry->uid);
	if (r == 0 && entry->gid > ID_MAX)
		r = put_pax_number(&plan->pax, "gid", entry->gid);
	if (r == 0 && plan->size > NUMBER_MAX)
		r = put_pax_number(&plan->pax, "size", plan->size);
	if (r == 0 && (mtime->tv_nsec || mtime->tv_sec < 0 || (uint64_t)mtime->tv_sec > NUMBER_MAX))
		r = put_pax_time(&plan->pax, mtime);
	return r;
}

static int make_plan(struct plan *plan, const struct tar_entry *entry, uint64_t *n_dropped)
{
	int r = plan_content(plan, entry);

	plan->header.type = type_of(entry);
	if (r == 0)
		r = plan_name(plan, entry);
	if (r == 0)
		r = plan_numbers(plan, entry);
	if (r == 0 && entry->fd >= 0 && !entry->is_hard_link)
		r = put_pax_xattrs(&plan->pax, entry->fd, n_dropped);
	return r;
}

/* Exactly size bytes from offset: the header has promised them. */
static int put_data(struct tar *tar, int fd, uint64_t offset, uint64_t size)
{
	while (size) {
		ssize_t n =
			pread(fd, tar->chunk, SBX_MIN(size, (uint64_t)CHUNK_SIZE), (off_t)offset);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO; /* shorter than its inode says */
		r = sbx_buf_append(&tar->out, tar->chunk, (size_t)n);
		if (r == 0)
			r = flush(tar, FLUSH_AT);
		if (r < 0)
			return r;
		offset += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return 0;
}

static int put_content(struct tar *tar, const struct tar_entry *entry, const struct plan *plan)
{
	int r = 0;

	if (!plan->map.n)
		r = put_data(tar, entry->fd, 0, plan->size);
	else
		r = sbx_buf_append(&tar->out, plan->map_text.data, plan->map_text.size);
	for (size_t i = 0; i < plan->map.n && r == 0; i++)
		r = put_data(
			tar, entry->fd, plan->map.extents[i].offset, plan->map.extents[i].size);
	return r < 0 ? r : put_zeros(tar, padding_of(plan->size));
}

int tar_put(struct tar *tar, const struct tar_entry *entry, uint64_t *ret_n_dropped)
{
	SBX_CLEANUP(plan_done) struct plan plan = {0};
	int r = make_plan(&plan, entry, ret_n_dropped);

	if (r == 0 && plan.pax.size)
		r = put_pax_entry(tar, &plan.pax);
	if (r == 0)
		r = put_header(tar, &plan.header);
	if (r == 0)
		r = put_content(tar, entry, &plan);
	return r < 0 ? r : flush(tar, FLUSH_AT);
}

int tar_finish(struct tar *tar)
{
	int r = put_zeros(tar, (size_t)2 * BLOCK);

	return r < 0 ? r : flush(tar, 0);
}
