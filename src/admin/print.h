/* SPDX-License-Identifier: MIT */
/* Results for people that are more than fields and lists. */
#ifndef SBX_ADMIN_PRINT_H
#define SBX_ADMIN_PRINT_H

#include "verb.h"

int sbx_admin_print_created(const struct call *call, struct json_object *result,
	struct sbx_buf *out, struct sbx_err *err);
int sbx_admin_print_blame(const struct call *call, struct json_object *result, struct sbx_buf *out,
	struct sbx_err *err);
/* Files with their changes as text. */
int sbx_admin_print_diff(const struct call *call, struct json_object *result, struct sbx_buf *out,
	struct sbx_err *err);
/* What a publication did, or why it did not. */
int sbx_admin_print_publish(const struct call *call, struct json_object *result,
	struct sbx_buf *out, struct sbx_err *err);
/* For verbs whose output has already gone out as it came. */
int sbx_admin_print_nothing(const struct call *call, struct json_object *result,
	struct sbx_buf *out, struct sbx_err *err);

/* The blamed file: lines with owners. content: its size bytes; ranges: as file_blame gives them. */
int sbx_admin_print_owned_lines(
	struct json_object *ranges, const char *content, size_t size, struct sbx_buf *out);

#endif
