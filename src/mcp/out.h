/* SPDX-License-Identifier: MIT */
/*
 * The queue before stdout. Writes never block where the kernel can help it: a client that does not
 * read makes the queue grow, and whoever fills it has to stop at MCP_OUT_HIGH.
 */
#ifndef SBX_MCP_OUT_H
#define SBX_MCP_OUT_H

#include "sbx/buf.h"
#include "sbx/loop.h"

#define MCP_OUT_HIGH (8u << 20) /* bytes waiting, above which nothing new is begun */

/* Some bytes went out, or (failed) none ever will. */
typedef void (*mcp_out_fn)(void *data);

struct mcp_out {
	struct sbx_buf buf; /* append whole lines here, then mcp_out_flush() */
	size_t sent;        /* bytes at its front that are gone */
	int failed;         /* -errno: the reader is gone */
	int fd;
	int own_fd;
	bool is_socket;
	struct sbx_watch *watch; /* NULL for a file, which takes everything at once */
	mcp_out_fn fn;
	void *data;
};

/* fd is borrowed and stays as it is for others that share it, where that can be had. */
int mcp_out_init(struct mcp_out *out, struct sbx_loop *loop, int fd, mcp_out_fn fn, void *data);
void mcp_out_done(struct mcp_out *out);

void mcp_out_flush(struct mcp_out *out);
size_t mcp_out_pending(const struct mcp_out *out);

#endif
