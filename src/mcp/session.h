/* SPDX-License-Identifier: MIT */
/*
 * One client's conversation: takes its lines, puts answers into a buffer, sends tool calls on.
 * Knows nothing of stdin and stdout.
 */
#ifndef SBX_MCP_SESSION_H
#define SBX_MCP_SESSION_H

#include "link.h"
#include "sbx/buf.h"

#define MCP_BATCH_MAX 100 /* messages in one batch */

struct mcp_session {
	struct sbx_buf *out;       /* whole lines are appended here ... */
	void (*flush)(void *data); /* ... and then this is called */
	void *data;
	struct mcp_links *links;
	const char *negotiated; /* the legacy revision; NULL before initialize */
	bool as_text;           /* results go into content, too */
};

/* One line, without its end. */
void mcp_session_line(struct mcp_session *session, const char *text, size_t size);
/* A line that was refused for its length. */
void mcp_session_too_long(struct mcp_session *session);
/* Forgets the calls that wait: nobody is there to be answered. */
void mcp_session_end(struct mcp_session *session);
/* The links' answer to a call; data is the session. */
void mcp_session_answer(void *data, struct mcp_call *call, bool is_error, struct mcp_span payload);

#endif
