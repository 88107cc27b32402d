/* SPDX-License-Identifier: MIT */
/* A client's way to sandboxd: find it, start it when it is not running, call it. */
#ifndef SBX_CLIENT_H
#define SBX_CLIENT_H

#include "sbx/json.h"
#include "sbx/wire.h"

/*
 * Connects to the sandbox's daemon, starting it (detached) when nothing answers; blocking, at most
 * some seconds. An id that does not exist, cannot be one, or belongs to somebody else is
 * SBX_KIND_NOT_FOUND with the same bytes in all three cases. A daemon that cannot be started or
 * reached is SBX_KIND_CONNECTION with what it said.
 */
int sbx_client_connect(const char *sandbox_id, int *ret_fd, struct sbx_err *err);

/* The message of every "no such sandbox" answer. */
int sbx_client_no_sandbox(const char *sandbox_id, struct sbx_err *err);

typedef int (*sbx_client_chunk_fn)(void *data, const void *bytes, size_t size);
/*
 * One call, waiting for its answer. args is borrowed. On an error frame returns -errno with kind
 * and message in err and, when ret_details is not NULL, the details object (may be NULL).
 */
int sbx_client_call(int fd, const char *op, struct json_object *args, sbx_client_chunk_fn chunk,
	void *chunk_data, struct json_object **ret_result, struct json_object **ret_details,
	struct sbx_err *err);

#endif
