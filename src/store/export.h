/* SPDX-License-Identifier: MIT */
/* What both kinds of export share. */
#ifndef SBX_STORE_EXPORT_H
#define SBX_STORE_EXPORT_H

#include "sbx/store.h"

#define EXPORT_PROGRESS_EVERY 256u /* entries */

/* Owner outside of what has this owner on disk. */
void export_map_owner(const struct sbx_sandbox *sandbox, uid_t *uid, gid_t *gid);

struct export_counts {
	uint64_t n_entries, n_bytes, n_xattrs_dropped;
};
void export_report(const struct export_counts *counts, struct json_object *ret_report);

#endif
