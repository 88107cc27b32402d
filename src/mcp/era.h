/* SPDX-License-Identifier: MIT */
/*
 * Protocol revisions. Legacy ones (2024-11-05 to 2025-11-25) are agreed on once, by initialize.
 * Modern ones (2026-07-28) come with each request, in params._meta. One process serves both at
 * the same time, request by request.
 */
#ifndef SBX_MCP_ERA_H
#define SBX_MCP_ERA_H

#include "sbx/json.h"

#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"

enum mcp_era {
	MCP_LEGACY = 1 << 0,
	MCP_MODERN = 1 << 1,
};

/* Newest first; NULL ends them. */
extern const char *const mcp_legacy_versions[];
extern const char *const mcp_modern_versions[];

/* The answer to initialize: the requested revision where we know it, else the newest legacy one.
 * requested: params.protocolVersion, of any type, may be NULL. The string is static. */
const char *mcp_era_negotiate(struct json_object *requested);

/* Whether messages may come in arrays: JSON-RPC batches were part of one revision only.
 * negotiated: mcp_era_negotiate()'s answer, or NULL before initialize. */
bool mcp_era_has_batches(const char *negotiated);

enum mcp_era_verdict {
	MCP_ERA_OK,
	MCP_ERA_INCOMPLETE,  /* -32602, ret->problem says what is missing */
	MCP_ERA_UNSUPPORTED, /* -32022, ret->requested is the revision */
};

struct mcp_era_check {
	enum mcp_era era;
	const char *problem;   /* static */
	const char *requested; /* borrowed from params */
};

/*
 * Which era a request belongs to. A _meta with a protocol version (or client capabilities) is a
 * modern one and has to be whole. Without, it is legacy, and for all but initialize and ping that
 * takes an initialize before it (negotiated is not NULL).
 */
enum mcp_era_verdict mcp_era_of(const char *method, struct json_object *params,
	const char *negotiated, struct mcp_era_check *ret);

#endif
