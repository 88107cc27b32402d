/* SPDX-License-Identifier: MIT */
/*
 * The text of answers. Everything is appended to a buffer as one JSON value without a line end;
 * what another program made already (a tool's result) is spliced in as text and not parsed again.
 * All of these abort when there is no memory: half an answer must not go out.
 */
#ifndef SBX_MCP_REPLY_H
#define SBX_MCP_REPLY_H

#include "era.h"
#include "span.h"

/* JSON-RPC 2.0 and, the last one, MCP 2026-07-28. */
enum mcp_code {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_METHOD_NOT_FOUND = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_UNSUPPORTED_VERSION = -32022,
};

void mcp_put(struct sbx_buf *out, struct mcp_span text);
void mcp_put_string(struct sbx_buf *out, const char *s); /* literal text, not quoted */
/* text as a JSON string, with its quotes. */
void mcp_put_quoted(struct sbx_buf *out, struct mcp_span text);

/* data: JSON text of error.data, or NULL. */
void mcp_reply_error(struct sbx_buf *out, struct mcp_span id, enum mcp_code code,
	const char *message, const char *data);

/* A result of the given members, "\"tools\":[]", with what the era adds. "" is an empty result. */
void mcp_reply_result(
	struct sbx_buf *out, struct mcp_span id, enum mcp_era era, struct mcp_span members);

/* A tool's result. payload: the JSON object for structuredContent, or on is_error the object
 * {"kind", "message", "details"}. as_text: put it into content too, as text. */
struct mcp_tool_answer {
	enum mcp_era era;
	bool is_error;
	bool as_text;
	struct mcp_span payload;
};
void mcp_reply_tool(struct sbx_buf *out, struct mcp_span id, const struct mcp_tool_answer *answer);

/* What an error frame's payload would be: {"kind", "message", "details"}. */
void mcp_put_failure(struct sbx_buf *out, const struct sbx_err *err);

/* {"name", "title", "version"} of this program, for serverInfo. */
const char *mcp_server_info(void);

#endif
