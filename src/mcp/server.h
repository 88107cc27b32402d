/* SPDX-License-Identifier: MIT */
/*
 * A session between stdin and stdout. Ends when stdin has ended (or SIGTERM, SIGINT or SIGHUP has
 * come) and everything that was asked is answered, when nobody reads stdout any more, or at a
 * second signal.
 */
#ifndef SBX_MCP_SERVER_H
#define SBX_MCP_SERVER_H

#include "sbx/err.h"

struct mcp_options {
	bool text_content; /* results go into content, too */
};

/* 0: all was answered. -errno with the reason in err otherwise. */
int mcp_server_run(const struct mcp_options *options, struct sbx_err *err);

#endif
