/* SPDX-License-Identifier: MIT */
#ifndef SBX_OPS_EXPORT_OCI_H
#define SBX_OPS_EXPORT_OCI_H

#include "dest.h"

/*
 * Writes what the view shows as an OCI image layout (image-spec 1.0) into the new directory dest:
 * one uncompressed layer, no entry point. The image is named ref. Fills ret_report as
 * sbx_store_export_tar() does. After a failure what was written so far stays.
 */
int sbx_export_oci(const struct sbx_dest *dest, struct sbx_view *view,
	const struct sbx_sandbox *sandbox, const char *ref, struct json_object *ret_report,
	struct sbx_err *err);

#endif
