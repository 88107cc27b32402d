/* SPDX-License-Identifier: MIT */
/* Which protocol revision a request is held to. */
#include "../../../src/mcp/era.h"

#include <criterion/criterion.h>
#include <string.h>

#define VERSION(v)   "\"io.modelcontextprotocol/protocolVersion\":" v
#define CAPABILITIES "\"io.modelcontextprotocol/clientCapabilities\":{}"

static struct json_object *parse(const char *text)
{
	struct json_object *value = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(
		sbx_json_parse(text, strlen(text), &value, &err), 0, "%s: %s", text, err.message);
	return value;
}

Test(era, initialize_gets_the_version_it_asks_for_or_the_newest_legacy_one)
{
	static const char *const cases[][2] = {
		{"\"2024-11-05\"", "2024-11-05"},
		{"\"2025-03-26\"", "2025-03-26"},
		{"\"2025-06-18\"", "2025-06-18"},
		{"\"2025-11-25\"", "2025-11-25"},
		{"\"2026-07-28\"", "2025-11-25"},
		{"\"2099-01-01\"", "2025-11-25"},
		{"\"\"", "2025-11-25"},
		{"1", "2025-11-25"},
		{"null", "2025-11-25"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_JSON struct json_object *requested = parse(cases[i][0]);

		cr_expect_str_eq(mcp_era_negotiate(requested), cases[i][1], "%s", cases[i][0]);
	}
}

Test(era, batches_are_part_of_one_revision)
{
	cr_expect(mcp_era_has_batches("2025-03-26"));
	cr_expect_not(mcp_era_has_batches("2024-11-05"));
	cr_expect_not(mcp_era_has_batches("2025-06-18"));
	cr_expect_not(mcp_era_has_batches("2025-11-25"));
	cr_expect_not(mcp_era_has_batches(NULL));
}

static const struct {
	const char *method;
	const char *params;
	bool initialized;
	enum mcp_era_verdict verdict;
	enum mcp_era era;
} cases[] = {
	{"initialize", "{}", false, MCP_ERA_OK, MCP_LEGACY},
	{"ping", "{}", false, MCP_ERA_OK, MCP_LEGACY},
	{"ping", "null", false, MCP_ERA_OK, MCP_LEGACY},
	{"tools/list", "{}", true, MCP_ERA_OK, MCP_LEGACY},
	{"tools/call", "{\"_meta\":{\"progressToken\":1}}", true, MCP_ERA_OK, MCP_LEGACY},
	{"tools/list", "{}", false, MCP_ERA_INCOMPLETE, MCP_LEGACY},
	{"tools/list", "{\"_meta\":{}}", false, MCP_ERA_INCOMPLETE, MCP_LEGACY},
	{"tools/list", "{\"_meta\":7}", true, MCP_ERA_INCOMPLETE, MCP_LEGACY},
	{"tools/list", "{\"_meta\":{" VERSION("\"2026-07-28\"") "," CAPABILITIES "}}", false,
		MCP_ERA_OK, MCP_MODERN},
	{"tools/list", "{\"_meta\":{" VERSION("\"2026-07-28\"") "," CAPABILITIES "}}", true,
		MCP_ERA_OK, MCP_MODERN},
	{"tools/list", "{\"_meta\":{" VERSION("\"2026-07-28\"") "}}", true, MCP_ERA_INCOMPLETE,
		MCP_MODERN},
	{"tools/list",
		"{\"_meta\":{" VERSION(
			"\"2026-07-28\"") ",\"io.modelcontextprotocol/clientCapabilities\":[]}}",
		true, MCP_ERA_INCOMPLETE, MCP_MODERN},
	{"tools/list", "{\"_meta\":{" CAPABILITIES "}}", true, MCP_ERA_INCOMPLETE, MCP_MODERN},
	{"tools/list", "{\"_meta\":{" VERSION("5") "," CAPABILITIES "}}", true, MCP_ERA_INCOMPLETE,
		MCP_MODERN},
	{"tools/list", "{\"_meta\":{" VERSION("\"1900-01-01\"") "," CAPABILITIES "}}", false,
		MCP_ERA_UNSUPPORTED, MCP_MODERN},
	/* known, but not one that comes with each request */
	{"tools/list", "{\"_meta\":{" VERSION("\"2025-11-25\"") "," CAPABILITIES "}}", true,
		MCP_ERA_UNSUPPORTED, MCP_MODERN},
	{"server/discover", "{}", true, MCP_ERA_INCOMPLETE, MCP_MODERN},
	{"server/discover", "null", false, MCP_ERA_INCOMPLETE, MCP_MODERN},
	{"server/discover", "{\"_meta\":{" VERSION("\"2026-07-28\"") "," CAPABILITIES "}}", false,
		MCP_ERA_OK, MCP_MODERN},
};

Test(era, of_a_request_is_told_by_its_meta_and_by_initialize)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_JSON struct json_object *params = parse(cases[i].params);
		struct mcp_era_check check;
		enum mcp_era_verdict verdict = mcp_era_of(cases[i].method, params,
			cases[i].initialized ? "2025-11-25" : NULL, &check);

		cr_expect_eq(verdict, cases[i].verdict, "%s %s: %d", cases[i].method,
			cases[i].params, verdict);
		cr_expect_eq(check.era, cases[i].era, "%s %s", cases[i].method, cases[i].params);
		cr_expect_eq(check.problem != NULL, verdict == MCP_ERA_INCOMPLETE, "%s %s",
			cases[i].method, cases[i].params);
	}
}
