/* SPDX-License-Identifier: MIT */
/* tools/list: the tools of the table, whole and in order. */
#include "../../../src/mcp/tools.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const names[] = {
	"exec_command",
	"write_command_stdin",
	"read_command_lines",
	"file_read",
	"file_write",
	"file_edit",
	"file_blame",
};

static const bool read_only[] = {false, false, true, true, false, false, true};

static struct json_object *parse_tools(void)
{
	struct json_object *tools = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	struct mcp_span text = mcp_tools_text();

	cr_assert_eq(sbx_json_parse(text.data, text.size, &tools, &err), 0, "%s", err.message);
	return tools;
}

Test(tools, come_in_the_order_of_the_contract)
{
	SBX_JSON struct json_object *tools = parse_tools();

	cr_assert_eq(json_object_array_length(tools), SBX_N_ELEMENTS(names));
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		cr_expect_str_eq(
			sbx_json_string(json_object_array_get_idx(tools, i), "name", ""), names[i]);
}

Test(tools, have_words_schemas_and_annotations)
{
	SBX_JSON struct json_object *tools = parse_tools();

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i);
		struct json_object *hints = sbx_json_member(tool, "annotations");
		SBX_JSON struct json_object *schema = sbx_op_schema(mcp_tool_find(names[i]));

		cr_expect_str_neq(sbx_json_string(tool, "title", ""), "");
		cr_expect_gt(strlen(sbx_json_string(tool, "description", "")), 100);
		cr_expect(json_object_equal(sbx_json_member(tool, "inputSchema"), schema));
		cr_expect_eq(sbx_json_bool(hints, "readOnlyHint", !read_only[i]), read_only[i]);
	}
}

/* Each member that must be there is described, and "error" is the other way to be valid. */
Test(tools, output_schemas_allow_success_and_failure)
{
	SBX_JSON struct json_object *tools = parse_tools();

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i);
		struct json_object *schema = sbx_json_member(tool, "outputSchema");
		struct json_object *members = sbx_json_member(schema, "properties");
		struct json_object *ways = sbx_json_member(schema, "anyOf");
		struct json_object *success, *failure;

		cr_expect_str_eq(sbx_json_string(schema, "type", ""), "object");
		cr_assert_eq(json_object_array_length(ways), 2);
		success = sbx_json_member(json_object_array_get_idx(ways, 0), "required");
		failure = sbx_json_member(json_object_array_get_idx(ways, 1), "required");
		cr_assert_gt(json_object_array_length(success), 1);
		for (size_t n = 0; n < json_object_array_length(success); n++)
			cr_expect_not_null(sbx_json_member(members,
				json_object_get_string(json_object_array_get_idx(success, n))));
		cr_assert_eq(json_object_array_length(failure), 1);
		cr_expect_str_eq(
			json_object_get_string(json_object_array_get_idx(failure, 0)), "error");
		cr_expect_not_null(sbx_json_member(members, "error"));
	}
}

Test(tools, operations_of_sbx_admin_are_not_tools)
{
	cr_expect_null(mcp_tool_find("inspect"));
	cr_expect_null(mcp_tool_find("stop"));
	cr_expect_null(mcp_tool_find("nothing"));
	cr_expect_not_null(mcp_tool_find("file_read"));
}
