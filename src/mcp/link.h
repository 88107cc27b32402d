/* SPDX-License-Identifier: MIT */
/*
 * Connections to sandboxds: one for each sandbox that is called, made at its first call and kept.
 * Calls to one sandbox share its connection and are answered in any order. When the daemon goes
 * away, the calls that wait for it are answered by connection_error, and the next call connects
 * again.
 */
#ifndef SBX_MCP_LINK_H
#define SBX_MCP_LINK_H

#include "era.h"
#include "sbx/loop.h"
#include "sbx/op.h"
#include "span.h"

#define MCP_LINKS_MAX 64   /* sandboxes connected at once; idle ones make room */
#define MCP_CALLS_MAX 1024 /* waiting for an answer at once, over all sandboxes */

struct mcp_batch;

/* A tools/call that waits: how to answer it. */
struct mcp_call {
	struct mcp_call *next; /* of the same connection */
	uint64_t wire_id;
	char *id; /* the client's, as it was written */
	size_t id_size;
	enum mcp_era era;
	struct mcp_batch *batch; /* or NULL */
};
void mcp_call_free(struct mcp_call *call);

/* The answer to a call, which now belongs to the callee. payload: one line of JSON, borrowed; on
 * is_error the object {"kind", "message", "details"}. */
typedef void (*mcp_answer_fn)(
	void *data, struct mcp_call *call, bool is_error, struct mcp_span payload);
/* Something was sent: mcp_links_queued() went down. */
typedef void (*mcp_sent_fn)(void *data);

struct mcp_links;

int mcp_links_new(struct sbx_loop *loop, mcp_answer_fn answer, mcp_sent_fn sent, void *data,
	struct mcp_links **ret);
/* Gives one call that waits back, whichever, without an answer; NULL when none is left. What it
 * asked for goes on in the daemon. */
struct mcp_call *mcp_links_drop(struct mcp_links *links);
/* NULL is fine. No call may be left. */
void mcp_links_free(struct mcp_links *links);

/*
 * Sends op with its checked arguments to the daemon of args.sandbox_id. On success the call is
 * taken and will be answered, on failure (not_found, server_busy, ...) it stays the caller's.
 */
int mcp_links_call(struct mcp_links *links, const struct sbx_op *op, struct json_object *args,
	struct mcp_call *call, struct sbx_err *err);

/* Stops waiting for one call with this id; the daemon is told, the command goes on. The call is
 * the caller's again; NULL when none has the id. */
struct mcp_call *mcp_links_cancel(struct mcp_links *links, struct mcp_span id);

size_t mcp_links_n_calls(const struct mcp_links *links);
size_t mcp_links_queued(const struct mcp_links *links); /* bytes that daemons have not taken */

/* While paused no answers are read, so that they wait in the daemons and not in our memory. */
void mcp_links_pause(struct mcp_links *links, bool paused);

#endif
