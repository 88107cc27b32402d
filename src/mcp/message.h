/* SPDX-License-Identifier: MIT */
/* What one JSON value is as a JSON-RPC 2.0 message (https://www.jsonrpc.org/specification). */
#ifndef SBX_MCP_MESSAGE_H
#define SBX_MCP_MESSAGE_H

#include "sbx/json.h"
#include "span.h"

enum mcp_kind {
	MCP_REQUEST,
	MCP_NOTIFICATION,
	MCP_RESPONSE, /* to a request that we never send: ignored */
	MCP_INVALID,
};

struct mcp_message {
	enum mcp_kind kind;
	struct mcp_span id;          /* as it was written; "null" where there is no usable one */
	const char *method;          /* requests and notifications */
	struct json_object *params;  /* an object, or NULL: none (null counts as none) */
	struct mcp_span params_text; /* of params; empty where it cannot be told */
	const char *problem;         /* MCP_INVALID: what is wrong */
};

/* Borrows from value and text, which is value's own text. */
void mcp_message_read(struct json_object *value, struct mcp_span text, struct mcp_message *ret);

/* A member that is an id, as it was written; "null" when it is absent or neither a string nor a
 * number. text: the object's text, may be empty. Borrows from both. */
struct mcp_span mcp_message_id(struct json_object *object, struct mcp_span text, const char *key);
bool mcp_message_id_usable(struct mcp_span id);

#endif
