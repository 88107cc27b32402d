/* SPDX-License-Identifier: MIT */
/*
 * Frames between a client (sandbox-mcp, sbx-admin) and sandboxd, and between sandboxd and its
 * workers: a 16-byte header in host byte order (both ends are on one machine) and a payload.
 *
 *   request   client → sandboxd   {"op": "file_read", "args": {...}}
 *   result    sandboxd → client   the JSON object that the caller gets (structuredContent)
 *   error     sandboxd → client   {"kind", "message", "details"}
 *   cancel    client → sandboxd   no payload: stop waiting for id; the command goes on. It is
 *                                 answered by an error frame of kind operation_conflict, unless
 *                                 the answer is already on its way.
 *   chunk     sandboxd → client   raw bytes that belong to id (cat, tail); a result follows
 *
 * One connection carries any number of requests at once; answers come in any order.
 */
#ifndef SBX_WIRE_H
#define SBX_WIRE_H

#include "sbx/buf.h"
#include "sbx/err.h"
#include "sbx/json.h"

#define SBX_WIRE_PAYLOAD_MAX (72u << 20) /* a 64 MiB line of JSON-RPC and what surrounds it */

enum sbx_wire_kind {
	SBX_WIRE_REQUEST = 1,
	SBX_WIRE_RESULT = 2,
	SBX_WIRE_ERROR = 3,
	SBX_WIRE_CANCEL = 4,
	SBX_WIRE_CHUNK = 5,
};

struct sbx_wire_header {
	uint32_t size; /* of the payload */
	uint32_t kind; /* enum sbx_wire_kind */
	uint64_t id;   /* chosen by the requester, unique among its requests in flight */
};

/* Appends a frame to an output buffer. */
int sbx_wire_put(struct sbx_buf *out, enum sbx_wire_kind kind, uint64_t id, const void *payload,
	size_t size);
/*
 * Looks at the front of in: 1 and the header and payload (borrowed) when a whole frame is there,
 * 0 when more bytes are needed, -EPROTO for a header that cannot be (unknown kind, too long).
 * After use: sbx_buf_consume(in, sizeof(header) + header.size).
 */
int sbx_wire_peek(
	const struct sbx_buf *in, struct sbx_wire_header *ret_header, const char **ret_payload);

/* An error frame's payload from err, with details (may be NULL; borrowed). */
int sbx_wire_put_error(
	struct sbx_buf *out, uint64_t id, const struct sbx_err *err, struct json_object *details);

#endif
