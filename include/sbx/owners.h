/* SPDX-License-Identifier: MIT */
/*
 * The lines file of a layer: who owns each line of every text file that the layer changed.
 * Written once at publish, then mapped read-only; a look-up is a binary search.
 * Byte format: docs/store-format.md.
 */
#ifndef SBX_OWNERS_H
#define SBX_OWNERS_H

#include "sbx/digest.h"
#include "sbx/err.h"
#include "sbx/own.h"

#define SBX_OWNER_MAX      127        /* bytes of an owner's name */
#define SBX_OWNERS_MAX     (1u << 24) /* names in one table */
#define SBX_OWNER_ORIGINAL "original" /* the imported project */

/* A table of owner names, each once. Index 0 is always "original". */
struct sbx_owner_table;
int sbx_owner_table_new(struct sbx_owner_table **ret);
void sbx_owner_table_free(struct sbx_owner_table *table);
static inline void sbx_owner_table_freep(struct sbx_owner_table **table)
{
	sbx_owner_table_free(*table);
}
#define SBX_OWNER_TABLE SBX_CLEANUP(sbx_owner_table_freep)
/* The index of name, added when new. -EINVAL: empty or over SBX_OWNER_MAX; -E2BIG; -ENOMEM. */
int sbx_owner_table_add(struct sbx_owner_table *table, const char *name, uint32_t *ret_index);
/* NULL when there is no such index. */
const char *sbx_owner_table_name(const struct sbx_owner_table *table, uint32_t index);
size_t sbx_owner_table_size(const struct sbx_owner_table *table);

/* One file's record. Borrowed from the reader, or from the caller of the writer. */
struct sbx_owner_record {
	const char *path;         /* relative to the workspace root, NUL-terminated */
	struct sbx_digest digest; /* of the content that the runs describe */
	uint64_t size;            /* bytes */
	bool whole;               /* binary or ignored: one owner for the file, n_runs is 1 */
	const struct sbx_run *runs;
	uint32_t n_runs;
	uint32_t n_lines;
};

struct sbx_owners_writer;
int sbx_owners_writer_new(struct sbx_owners_writer **ret);
void sbx_owners_writer_free(struct sbx_owners_writer *writer);
static inline void sbx_owners_writer_freep(struct sbx_owners_writer **writer)
{
	sbx_owners_writer_free(*writer);
}
#define SBX_OWNERS_WRITER SBX_CLEANUP(sbx_owners_writer_freep)
/*
 * Copies the record; owner indexes are those of the table given at the end. Empty runs are dropped
 * and neighbours of one owner joined. -EINVAL when the runs do not add up to n_lines, when a whole
 * file has not exactly one owner, or for an empty or over-long path; -ENOMEM.
 */
int sbx_owners_writer_add(struct sbx_owners_writer *writer, const struct sbx_owner_record *record);
/*
 * Sorts, checks and writes dir_fd/name, replacing it whole (not synced: the publisher syncs the
 * whole layer). -EEXIST: two records for one path; -EINVAL: an owner index without a name.
 */
int sbx_owners_writer_write(struct sbx_owners_writer *writer, const struct sbx_owner_table *table,
	int dir_fd, const char *name, struct sbx_err *err);

struct sbx_owners;
/*
 * Maps dir_fd/name and checks its header and names: -ENOENT, -EBADMSG with the damage named. The
 * records are checked as they are used, so that opening costs the same for any number of them.
 */
int sbx_owners_open(int dir_fd, const char *name, struct sbx_owners **ret, struct sbx_err *err);
void sbx_owners_free(struct sbx_owners *owners);
size_t sbx_owners_count(const struct sbx_owners *owners);
/* The record with that place in the order of paths. -ENOENT beyond the last, -EBADMSG: damaged. */
int sbx_owners_get(const struct sbx_owners *owners, size_t index, struct sbx_owner_record *ret);
/* -ENOENT when the layer has no record for the path, -EBADMSG: a record on the way is damaged. */
int sbx_owners_find(
	const struct sbx_owners *owners, const char *path, struct sbx_owner_record *ret);
/* Name of an owner index in this file; NULL when there is no such index. */
const char *sbx_owners_name(const struct sbx_owners *owners, uint32_t index);
size_t sbx_owners_n_names(const struct sbx_owners *owners);

/*
 * Newest record for a path in a stack. -ENOENT: none (content is the base's, untouched). *ret_from
 * (borrowed from view) resolves the indexes. The view keeps each layer's lines file open.
 */
struct sbx_view;
int sbx_owners_lookup(struct sbx_view *view, const char *path, struct sbx_owner_record *ret,
	const struct sbx_owners **ret_from, struct sbx_err *err);

#endif
