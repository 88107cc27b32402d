/* SPDX-License-Identifier: MIT */
#ifndef SBX_STORE_IMPORT_H
#define SBX_STORE_IMPORT_H

#include "sbx/store.h"

#define IMPORT_EXAMPLES_MAX 20 /* paths named in a report for each kind of loss */

/*
 * Copies the tree below source_fd into the empty directory tree_fd as a base layer: the owner of
 * source_fd (st) becomes 0:0, other ids stay up to 65535 and become 65534 beyond. The source is
 * only read and may change meanwhile. Not synced. ret_report gets:
 *
 *   entries, bytes, hard_links, reflinked   counts
 *   owners_lost, xattrs_dropped             counts
 *   vanished, not_kept, other_file_systems  {"count", "paths": the first ones}
 */
int import_tree(int source_fd, const struct stat *st, int tree_fd, sbx_progress_fn progress,
	void *progress_data, struct json_object *ret_report, struct sbx_err *err);

#endif
