/* SPDX-License-Identifier: MIT */
/* What a JSON value is as a JSON-RPC message, and under which id it is answered. */
#include "../../../src/mcp/message.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct {
	const char *text;
	enum mcp_kind kind;
	const char *id;
} cases[] = {
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", MCP_REQUEST, "1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\"}", MCP_REQUEST, "0"},
	{"{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"m\"}", MCP_REQUEST, "-1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"m\"}", MCP_REQUEST, "\"\""},
	{"{\"jsonrpc\":\"2.0\",\"id\":\"0\",\"method\":\"m\"}", MCP_REQUEST, "\"0\""},
	{"{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa9\",\"method\":\"m\"}", MCP_REQUEST, "\"\xc3\xa9\""},
	{"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"m\"}", MCP_REQUEST,
		"9007199254740993"},
	{"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999999,\"method\":\"m\"}", MCP_REQUEST,
		"99999999999999999999999"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"m\"}", MCP_REQUEST, "1.0"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"m\"}", MCP_REQUEST, "1e3"},
	/* a key written with an escape: the value, at least */
	{"{\"jsonrpc\":\"2.0\",\"\\u0069d\":7,\"method\":\"m\"}", MCP_REQUEST, "7"},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", MCP_NOTIFICATION, "null"},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null}", MCP_NOTIFICATION, "null"},
	{"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", MCP_INVALID, "null"},
	{"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}", MCP_INVALID, "null"},
	{"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"m\"}", MCP_INVALID, "null"},
	{"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"m\"}", MCP_INVALID, "null"},
	{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}", MCP_INVALID, "1"},
	{"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}", MCP_INVALID, "1"},
	{"{\"id\":1,\"method\":\"m\"}", MCP_INVALID, "1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1}", MCP_INVALID, "1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", MCP_INVALID, "1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\\u0000ng\"}", MCP_INVALID, "1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":7}", MCP_INVALID, "1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[]}", MCP_INVALID, "1"},
	{"{}", MCP_INVALID, "null"},
	{"42", MCP_INVALID, "null"},
	{"\"x\"", MCP_INVALID, "null"},
	{"null", MCP_INVALID, "null"},
	{"[]", MCP_INVALID, "null"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MCP_RESPONSE, "1"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", MCP_RESPONSE, "1"},
};

Test(message, is_classified)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_JSON struct json_object *value = NULL;
		struct mcp_span text = {cases[i].text, strlen(cases[i].text)};
		struct sbx_err err = SBX_ERR_INIT;
		struct mcp_message message;

		cr_assert_eq(sbx_json_parse(text.data, text.size, &value, &err), 0, "%s: %s",
			text.data, err.message);
		mcp_message_read(value, text, &message);
		cr_expect_eq(message.kind, cases[i].kind, "%s is %d", text.data, message.kind);
		cr_expect_eq(
			message.problem != NULL, cases[i].kind == MCP_INVALID, "%s", text.data);
		cr_expect(mcp_span_equal(
				  message.id, (struct mcp_span){cases[i].id, strlen(cases[i].id)}),
			"%s: id %.*s", text.data, (int)message.id.size, message.id.data);
	}
}
