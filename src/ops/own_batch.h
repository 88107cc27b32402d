/* SPDX-License-Identifier: MIT */
/* Files whose owners are computed together, and the records that come out of it. */
#ifndef SBX_OPS_OWN_BATCH_H
#define SBX_OPS_OWN_BATCH_H

#include "sbx/buf.h"
#include "sbx/digest.h"
#include "sbx/owners.h"
#include "sbx/view.h"

#define SBX_OWN_DELETED_DEPTH_MAX                                                                  \
	64 /* how far below a deleted directory renames are looked for                             \
	    */

/* What is known about one file. */
struct sbx_own_item {
	bool whole;    /* one owner for the file */
	bool original; /* never touched by anybody, only renamed */
	uint64_t size; /* of the new content */
	struct sbx_digest digest;
	bool has_old;
	struct sbx_buf old_content;
	struct sbx_run *old_runs; /* NULL: all original */
	uint32_t n_old_runs;
};
void sbx_own_item_done(struct sbx_own_item *item);

struct sbx_own_batch;
int sbx_own_batch_new_for(const char *owner, struct sbx_own_batch **ret);
void sbx_own_batch_free(struct sbx_own_batch *batch);

/* Fills in old_runs with what the view's stack records for path. */
int sbx_own_batch_old_runs(struct sbx_own_batch *batch, struct sbx_view *view, const char *path,
	struct sbx_own_item *item);
/* A record for path with the runs that the view has for origin. -ENOENT: it has none. */
int sbx_own_batch_carry(
	struct sbx_own_batch *batch, struct sbx_view *view, const char *origin, const char *path);
/* The record that a lines file has for path, once more. -ENOENT: it has none. */
int sbx_own_batch_keep(
	struct sbx_own_batch *batch, const struct sbx_owners *owners, const char *path);
/* A record at once: all lines new (or original). content is not kept. */
int sbx_own_batch_new(struct sbx_own_batch *batch, const char *path,
	const struct sbx_own_item *item, const struct sbx_buf *content);
/* A file for the comparison; takes item's old content and content's bytes. content NULL: deleted.
 */
int sbx_own_batch_compare(struct sbx_own_batch *batch, const char *path, struct sbx_own_item *item,
	struct sbx_buf *content);
/* Computes what is waiting. */
int sbx_own_batch_flush(struct sbx_own_batch *batch, struct sbx_err *err);
/* Writes SBX_LAYER_LINES. */
int sbx_own_batch_write(struct sbx_own_batch *batch, int layer_fd, struct sbx_err *err);

#endif
