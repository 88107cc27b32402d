/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a lines file (docs/store-format.md). It is mapped and used as it lies, so its
 * integers are the machine's own and the machine must be little-endian.
 *
 *   header | index: one u64 offset for each record | owner names | records, sorted by path
 *
 * Opening checks the header and the names; a look-up checks the records that it touches. Each
 * record carries its own number, so that a damaged index cannot lead to a sound but wrong record.
 */
#ifndef SBX_STORE_OWNERS_FORMAT_H
#define SBX_STORE_OWNERS_FORMAT_H

#include <endian.h>

#include "checksum.h"
#include "sbx/owners.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "lines files are mapped as they are");
_Static_assert(sizeof(struct sbx_run) == 8, "runs are mapped as they are");

#define OWNERS_MAGIC   "SBXLINES"
#define OWNERS_VERSION 1
#define OWNERS_ALIGN   8

struct owners_header {
	char magic[8];
	uint32_t version;
	uint32_t n_records;
	uint64_t file_size;
	uint64_t index_offset;
	uint64_t names_offset;
	uint32_t n_names;
	uint32_t names_size; /* bytes: for each name its length (u8), its bytes, a NUL */
	uint8_t names_checksum[CHECKSUM_SIZE];
	uint8_t checksum[CHECKSUM_SIZE]; /* of everything before it */
};
_Static_assert(sizeof(struct owners_header) == 64, "no padding");

enum owners_record_flags {
	OWNERS_WHOLE = 1 << 0,
	OWNERS_KNOWN_FLAGS = OWNERS_WHOLE,
};

/* Followed by the path, a NUL, zeros up to a multiple of 8, and the runs. */
struct owners_record {
	uint32_t number; /* its place in the index */
	uint32_t flags;
	uint64_t size;
	uint8_t digest[SBX_DIGEST_SIZE];
	uint32_t n_lines;
	uint32_t n_runs;
	uint32_t path_size; /* without the NUL */
	uint32_t reserved;  /* 0 */
	uint8_t runs_checksum[CHECKSUM_SIZE];
	uint8_t checksum[CHECKSUM_SIZE]; /* of everything before it and the path */
};
_Static_assert(sizeof(struct owners_record) == 80, "no padding");

/* Bytes of the path as stored: with its NUL and the padding. */
static inline size_t owners_path_room(size_t path_size)
{
	return (path_size + 1 + OWNERS_ALIGN - 1) / OWNERS_ALIGN * OWNERS_ALIGN;
}

#endif
