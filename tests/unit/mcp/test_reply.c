/* SPDX-License-Identifier: MIT */
/* The text of answers: one line of JSON whatever is put in. */
#include "../../../src/mcp/reply.h"

#include <criterion/criterion.h>
#include <string.h>

static struct mcp_span span(const char *s)
{
	return (struct mcp_span){s, strlen(s)};
}

static void expect_text(struct sbx_buf *out, const char *expected)
{
	SBX_JSON struct json_object *value = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	cr_expect_str_eq(out->data, expected);
	cr_expect_eq(sbx_json_parse(out->data, out->size, &value, &err), 0, "%s: %s", out->data,
		err.message);
}

Test(reply, quoted_text_has_no_raw_control_character)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	mcp_put_quoted(&out, (struct mcp_span){"a\"b\\c\n\0\x7f\xc3\xa9", 10});
	expect_text(&out, "\"a\\\"b\\\\c\\u000a\\u0000\x7f\xc3\xa9\"");
}

Test(reply, error_carries_code_message_and_data)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	mcp_reply_error(&out, span("\"1\""), MCP_PARSE_ERROR, "say \"what\"", "{\"a\":1}");
	expect_text(&out, "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"error\":{\"code\":-32700,"
			  "\"message\":\"say \\\"what\\\"\",\"data\":{\"a\":1}}}");
}

Test(reply, legacy_results_hold_just_their_members)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	mcp_reply_result(&out, span("1.0"), MCP_LEGACY, span("\"tools\":[]"));
	expect_text(&out, "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{\"tools\":[]}}");
}

static void check_modern(const char *members)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	SBX_JSON struct json_object *value = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	struct json_object *result, *meta, *info;

	mcp_reply_result(&out, span("1"), MCP_MODERN, span(members));
	cr_assert_eq(sbx_json_parse(out.data, out.size, &value, &err), 0, "%s", err.message);
	result = sbx_json_member(value, "result");
	meta = sbx_json_member(result, "_meta");
	info = sbx_json_member(meta, "io.modelcontextprotocol/serverInfo");
	cr_expect_str_eq(sbx_json_string(result, "resultType", ""), "complete");
	cr_expect_str_eq(sbx_json_string(info, "name", ""), "sbx");
	cr_expect_str_neq(sbx_json_string(info, "version", ""), "");
}

Test(reply, modern_results_say_that_they_are_complete_and_whose_they_are)
{
	check_modern("");
	check_modern("\"tools\":[]");
}

static const struct {
	struct mcp_tool_answer answer;
	const char *payload;
	const char *text;
} tools[] = {
	{{MCP_LEGACY, false, false, {0}}, "{\"a\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[],"
		"\"structuredContent\":{\"a\":1},\"isError\":false}}"},
	{{MCP_LEGACY, true, false, {0}}, "{\"kind\":\"not_found\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[],"
		"\"structuredContent\":{\"error\":{\"kind\":\"not_found\"}},\"isError\":true}}"},
	{{MCP_LEGACY, false, true, {0}}, "{\"a\":\"\\n\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\","
		"\"text\":\"{\\\"a\\\":\\\"\\\\n\\\"}\"}],"
		"\"structuredContent\":{\"a\":\"\\n\"},\"isError\":false}}"},
	{{MCP_LEGACY, true, true, {0}}, "{}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\","
		"\"text\":\"{\\\"error\\\":{}}\"}],"
		"\"structuredContent\":{\"error\":{}},\"isError\":true}}"},
};

Test(reply, tool_results_are_spliced_in_as_they_are)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(tools); i++) {
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
		struct mcp_tool_answer answer = tools[i].answer;

		answer.payload = span(tools[i].payload);
		mcp_reply_tool(&out, span("7"), &answer);
		expect_text(&out, tools[i].text);
	}
}

Test(reply, failure_of_ours_looks_like_the_daemons)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	(void)sbx_err_kind(&err, SBX_KIND_BUSY, EBUSY, "later");
	mcp_put_failure(&out, &err);
	expect_text(&out, "{\"kind\":\"server_busy\",\"message\":\"later\",\"details\":{}}");
}
