/* SPDX-License-Identifier: MIT */
/* One request of a session, and the ways to answer it: alone on a line, or within a batch. */
#ifndef SBX_MCP_REQUEST_H
#define SBX_MCP_REQUEST_H

#include "reply.h"
#include "session.h"

/* A batch that is being answered: its answers go out together, as one array. */
struct mcp_batch {
	size_t n_waiting; /* calls without an answer, and one while the batch is being read */
	struct sbx_buf answers;
};

/* One less to wait for. After the last one the batch goes out, if anything is in it, and is freed.
 * NULL is fine. */
void mcp_batch_release(struct mcp_session *session, struct mcp_batch *batch);

struct mcp_request {
	struct mcp_session *session;
	struct mcp_batch *batch; /* or NULL */
	enum mcp_era era;
	struct mcp_span id;
	struct json_object *params; /* or NULL */
};

/* A request is answered exactly once, by one of these or, later, by mcp_session_answer(). */
void mcp_answer_error(const struct mcp_request *request, enum mcp_code code, const char *message,
	const char *data);
/* An error about something that the client named: "<what>: <name>", the name cut to a length. */
void mcp_answer_named(
	const struct mcp_request *request, enum mcp_code code, const char *what, const char *name);
void mcp_answer_members(const struct mcp_request *request, struct mcp_span members);
void mcp_answer_tool(const struct mcp_request *request, bool is_error, struct mcp_span payload);
void mcp_answer_failure(const struct mcp_request *request, const struct sbx_err *err);

#endif
