/* SPDX-License-Identifier: MIT */
#ifndef SBX_MCP_METHODS_H
#define SBX_MCP_METHODS_H

#include "request.h"

/* Finds the method, checks that the request may call it in its era, and runs it: the request is
 * answered, or a call is on its way that will be. */
void mcp_method_run(struct mcp_request *request, const char *name);

#endif
