/* SPDX-License-Identifier: MIT */
#include "era.h"

#include <string.h>

#define BATCH_VERSION "2025-03-26"

const char *const mcp_legacy_versions[] = {
	"2025-11-25", "2025-06-18", BATCH_VERSION, "2024-11-05", NULL};
const char *const mcp_modern_versions[] = {"2026-07-28", NULL};

static const char *find(const char *const *versions, const char *version)
{
	for (; *versions; versions++)
		if (!strcmp(*versions, version))
			return *versions;
	return NULL;
}

const char *mcp_era_negotiate(struct json_object *requested)
{
	const char *known = NULL;

	if (json_object_is_type(requested, json_type_string))
		known = find(mcp_legacy_versions, json_object_get_string(requested));
	return known ? known : mcp_legacy_versions[0];
}

bool mcp_era_has_batches(const char *negotiated)
{
	return negotiated && !strcmp(negotiated, BATCH_VERSION);
}

static enum mcp_era_verdict check_modern(struct json_object *meta, struct mcp_era_check *ret)
{
	struct json_object *version = sbx_json_member(meta, MCP_META_VERSION);

	ret->era = MCP_MODERN;
	if (!json_object_is_type(version, json_type_string)) {
		ret->problem = "params._meta needs " MCP_META_VERSION ", a string";
		return MCP_ERA_INCOMPLETE;
	}
	ret->requested = json_object_get_string(version);
	if (!find(mcp_modern_versions, ret->requested))
		return MCP_ERA_UNSUPPORTED;
	if (!json_object_is_type(sbx_json_member(meta, MCP_META_CAPABILITIES), json_type_object)) {
		ret->problem = "params._meta needs " MCP_META_CAPABILITIES
			       ", an object ({} when there are none)";
		return MCP_ERA_INCOMPLETE;
	}
	return MCP_ERA_OK;
}

/* What a client may ask before it has initialized. */
static bool opens(const char *method)
{
	return !strcmp(method, "initialize") || !strcmp(method, "ping");
}

enum mcp_era_verdict mcp_era_of(const char *method, struct json_object *params,
	const char *negotiated, struct mcp_era_check *ret)
{
	struct json_object *meta = sbx_json_member(params, "_meta");

	*ret = (struct mcp_era_check){.era = MCP_LEGACY};
	if (meta && !json_object_is_type(meta, json_type_object)) {
		ret->problem = "params._meta must be an object";
		return MCP_ERA_INCOMPLETE;
	}
	if (json_object_object_get_ex(meta, MCP_META_VERSION, NULL) ||
		json_object_object_get_ex(meta, MCP_META_CAPABILITIES, NULL) ||
		!strcmp(method, "server/discover"))
		return check_modern(meta, ret);
	if (negotiated || opens(method))
		return MCP_ERA_OK;
	ret->problem = "send initialize first, or put " MCP_META_VERSION
		       " and " MCP_META_CAPABILITIES " into params._meta";
	return MCP_ERA_INCOMPLETE;
}
