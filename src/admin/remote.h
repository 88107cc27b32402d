/* SPDX-License-Identifier: MIT */
/* Verbs that are operations of sandboxd. */
#ifndef SBX_ADMIN_REMOTE_H
#define SBX_ADMIN_REMOTE_H

#include "verb.h"

/* With --json the bytes of cat and tail become a member of the result; more than this is refused.
 */
#define REMOTE_CONTENT_MAX (64u << 20)

/*
 * Calls the verb's operation with the parsed arguments. Bytes that come with the answer go to
 * standard output or, with --json, into the result as "content".
 */
int sbx_admin_remote(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err);

/* Blame, of one fixed version, so that lines and owners shown belong together. */
int sbx_admin_blame(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err);

/* One call of any operation; *content gets the bytes that come along. */
int sbx_admin_fetch(const char *op, struct json_object *args, struct sbx_buf *content,
	struct json_object **ret_result, struct sbx_err *err);

#endif
