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

#define SBX_OWNER_MAX 127 /* bytes of an owner's name */

/* count lines of one owner; runs tile a file, neighbours differ. */
struct sbx_run {
	uint32_t count;
	uint32_t owner; /* index into a table of names */
};

/* A table of owner names, each once. Index 0 is always "original". */
struct sbx_owner_table;
int sbx_owner_table_new(struct sbx_owner_table **ret);
void sbx_owner_table_free(struct sbx_owner_table *table);
int sbx_owner_table_add(struct sbx_owner_table *table, const char *name, uint32_t *ret_index);
const char *sbx_owner_table_name(const struct sbx_owner_table *table, uint32_t index);
size_t sbx_owner_table_size(const struct sbx_owner_table *table);

/* One file's record. Borrowed from the reader, or from the caller of the writer. */
struct sbx_owner_record {
	const char *path; /* relative to the workspace root, NUL-terminated */
	struct sbx_digest digest; /* of the content that the runs describe */
	uint64_t size;    /* bytes */
	bool whole;       /* binary or ignored: one owner for the file */
	const struct sbx_run *runs;
	uint32_t n_runs;
	uint32_t n_lines;
};

struct sbx_owners_writer;
int sbx_owners_writer_new(struct sbx_owners_writer **ret);
void sbx_owners_writer_free(struct sbx_owners_writer *writer);
/* Copies the record; owner indexes are the table's given at the end. */
int sbx_owners_writer_add(struct sbx_owners_writer *writer, const struct sbx_owner_record *record);
/* Sorts, checks and writes dir_fd/name (not synced: the publisher syncs the whole layer). */
int sbx_owners_writer_write(struct sbx_owners_writer *writer, const struct sbx_owner_table *table,
	int dir_fd, const char *name, struct sbx_err *err);

struct sbx_owners;
/* Maps and checks dir_fd/name: -ENOENT, -EBADMSG with the damage named. */
int sbx_owners_open(int dir_fd, const char *name, struct sbx_owners **ret, struct sbx_err *err);
void sbx_owners_free(struct sbx_owners *owners);
size_t sbx_owners_count(const struct sbx_owners *owners);
int sbx_owners_get(const struct sbx_owners *owners, size_t index, struct sbx_owner_record *ret);
/* -ENOENT when the layer has no record for the path. */
int sbx_owners_find(
	const struct sbx_owners *owners, const char *path, struct sbx_owner_record *ret);
/* Name of an owner index in this file. */
const char *sbx_owners_name(const struct sbx_owners *owners, uint32_t index);

/*
 * Newest record for a path in a stack. -ENOENT: none (content is the base's, untouched). *ret_from
 * (borrowed from view) resolves the indexes. The view keeps each layer's lines file open.
 */
struct sbx_view;
int sbx_owners_lookup(struct sbx_view *view, const char *path, struct sbx_owner_record *ret,
	const struct sbx_owners **ret_from, struct sbx_err *err);

#endif
