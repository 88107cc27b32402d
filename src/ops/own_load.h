/* SPDX-License-Identifier: MIT */
/* A regular file as a view shows it, with who owns its lines. */
#ifndef SBX_OPS_OWN_LOAD_H
#define SBX_OPS_OWN_LOAD_H

#include "sbx/buf.h"
#include "sbx/owners.h"
#include "sbx/view.h"

struct sbx_owned {
	struct sbx_buf content; /* empty with is_large */
	bool is_large;          /* over SBX_LINES_BYTES_MAX: not read, whole */
	bool whole;             /* binary, large or ignored: one owner for the file */
	struct sbx_run *runs;   /* tile the lines */
	uint32_t n_runs;
	uint32_t n_lines;
};
#define SBX_OWNED_INIT ((struct sbx_owned){0})
void sbx_owned_done(struct sbx_owned *owned);
#define SBX_OWNED SBX_CLEANUP(sbx_owned_done)

/*
 * Loads path, which the view shows as a regular file; its owners' names go into table. A file that
 * no layer has a record of is "original". -ENOENT when the view shows no such file;
 * SBX_KIND_INTERNAL
 * (-EBADMSG) when the record is of other content than the file has.
 */
int sbx_owned_load(struct sbx_view *view, const char *path, struct sbx_owner_table *table,
	struct sbx_owned *ret, struct sbx_err *err);

/* Lines of a content: its newlines, and a last piece without one. */
uint32_t sbx_owned_count_lines(const void *data, size_t size);

#endif
