/* SPDX-License-Identifier: MIT */
/*
 * Connecting to a sandboxd without waiting for it. sbx_client_connect() blocks, for seconds when
 * the daemon has to be started, so a short-lived child does it and hands the socket over.
 */
#ifndef SBX_MCP_CONNECT_H
#define SBX_MCP_CONNECT_H

#include "sbx/err.h"
#include "sbx/loop.h"

struct mcp_connect;

/* fd: a connected socket that now belongs to the callee, or -EBADF with the reason in err. The
 * attempt is over: the callee frees it. */
typedef void (*mcp_connect_fn)(void *data, int fd, const struct sbx_err *err);

/* Starts one attempt. Fails only when no child can be made. */
int mcp_connect_new(struct sbx_loop *loop, const char *sandbox_id, mcp_connect_fn fn, void *data,
	struct mcp_connect **ret, struct sbx_err *err);
/* NULL is fine. Ends the child if it is still at work. */
void mcp_connect_free(struct mcp_connect *connect);

#endif
