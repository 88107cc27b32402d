/* SPDX-License-Identifier: MIT */
/* The table of operations: schemas as the contract has them, argument checks as it words them. */
#include <criterion/criterion.h>
#include <string.h>

#include "sbx/op.h"

/* The contract's input schemas of the seven tools, in the order of tools/list, key for key. */
static const struct {
	const char *name;
	const char *schema;
} contract[] = {
	{"exec_command", "{\"type\":\"object\","
			 "\"properties\":{\"sandbox_id\":{\"type\":\"string\"},"
			 "\"workspace_session_id\":{\"type\":\"string\"},"
			 "\"cmd\":{\"type\":\"string\"},\"timeout_ms\":{\"type\":\"integer\","
			 "\"minimum\":0},\"yield_time_ms\":{\"type\":\"integer\",\"minimum\":0}},"
			 "\"required\":[\"sandbox_id\",\"cmd\"],\"additionalProperties\":false}"},
	{"write_command_stdin",
		"{\"type\":\"object\","
		"\"properties\":{\"sandbox_id\":{\"type\":\"string\"},"
		"\"command_session_id\":{\"type\":\"string\"},"
		"\"stdin\":{\"type\":\"string\"},\"yield_time_ms\":{\"type\":\"integer\","
		"\"minimum\":0}},\"required\":[\"sandbox_id\",\"command_session_id\","
		"\"stdin\"],\"additionalProperties\":false}"},
	{"read_command_lines",
		"{\"type\":\"object\","
		"\"properties\":{\"sandbox_id\":{\"type\":\"string\"},"
		"\"command_session_id\":{\"type\":\"string\"},"
		"\"start_offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0},"
		"\"limit\":{\"type\":\"integer\",\"minimum\":0,\"default\":200}},"
		"\"required\":[\"sandbox_id\",\"command_session_id\"],"
		"\"additionalProperties\":false}"},
	{"file_read", "{\"type\":\"object\","
		      "\"properties\":{\"sandbox_id\":{\"type\":\"string\"},"
		      "\"path\":{\"type\":\"string\"},\"offset\":{\"type\":\"integer\","
		      "\"minimum\":0,\"default\":1},\"limit\":{\"type\":\"integer\","
		      "\"minimum\":0,\"default\":2000},"
		      "\"workspace_session_id\":{\"type\":\"string\"}},"
		      "\"required\":[\"sandbox_id\",\"path\"],\"additionalProperties\":false}"},
	{"file_write", "{\"type\":\"object\","
		       "\"properties\":{\"sandbox_id\":{\"type\":\"string\"},"
		       "\"path\":{\"type\":\"string\"},\"content\":{\"type\":\"string\"},"
		       "\"workspace_session_id\":{\"type\":\"string\"}},"
		       "\"required\":[\"sandbox_id\",\"path\",\"content\"],"
		       "\"additionalProperties\":false}"},
	{"file_edit", "{\"type\":\"object\","
		      "\"properties\":{\"sandbox_id\":{\"type\":\"string\"},"
		      "\"path\":{\"type\":\"string\"},\"edits\":{\"type\":\"array\"},"
		      "\"workspace_session_id\":{\"type\":\"string\"}},"
		      "\"required\":[\"sandbox_id\",\"path\",\"edits\"],"
		      "\"additionalProperties\":false}"},
	{"file_blame", "{\"type\":\"object\","
		       "\"properties\":{\"sandbox_id\":{\"type\":\"string\"},"
		       "\"path\":{\"type\":\"string\"}},\"required\":[\"sandbox_id\",\"path\"],"
		       "\"additionalProperties\":false}"},
};

Test(op, schemas_are_exactly_the_contracts)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(contract); i++) {
		SBX_JSON struct json_object *schema = NULL;

		cr_assert_str_eq(sbx_ops[i].name, contract[i].name);
		schema = sbx_op_schema(&sbx_ops[i]);
		cr_expect_str_eq(
			sbx_json_text(schema, NULL), contract[i].schema, "%s", contract[i].name);
	}
}

Test(op, tools_are_the_first_seven_and_no_others)
{
	size_t n = 0;

	for (const struct sbx_op *op = sbx_ops; op->name; op++, n++) {
		cr_expect_eq(
			!!(op->flags & SBX_OP_TOOL), n < SBX_N_ELEMENTS(contract), "%s", op->name);
		cr_expect_eq(!!(op->flags & SBX_OP_ADMIN), n >= SBX_N_ELEMENTS(contract), "%s",
			op->name);
		cr_expect_eq(sbx_op_find(op->name), op);
		cr_expect_str_eq(op->args[0].name, "sandbox_id");
	}
	cr_expect_null(sbx_op_find("file_chmod"));
	cr_expect_null(sbx_op_find(""));
}

/* result: the plain form that the arguments take; or the words that the refusal holds. */
struct check {
	const char *op;
	const char *args;
	const char *result;
	const char *refusal[3];
};

#define S "\"sandbox_id\":\"s\""

static const struct check checks[] = {
	/* defaults are put in, nulls of optional arguments taken out */
	{"file_read", "{" S ",\"path\":\"a\"}",
		"{" S ",\"path\":\"a\",\"offset\":1,\"limit\":2000}", {0}},
	{"file_read", "{" S ",\"path\":\"a\",\"offset\":null,\"workspace_session_id\":null}",
		"{" S ",\"path\":\"a\",\"offset\":1,\"limit\":2000}", {0}},
	/* whole numbers in any notation */
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":1000.0,\"yield_time_ms\":5e2}",
		"{" S ",\"cmd\":\"x\",\"timeout_ms\":1000,\"yield_time_ms\":500}", {0}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":9223372036854775807}",
		"{" S ",\"cmd\":\"x\",\"timeout_ms\":9223372036854775807}", {0}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":1e18}",
		"{" S ",\"cmd\":\"x\",\"timeout_ms\":1000000000000000000}", {0}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":9223372036854775808}", NULL,
		{"timeout_ms", "from 0 to 9223372036854775807", "9223372036854775808"}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":1e300}", NULL,
		{"timeout_ms", "from 0 to 9223372036854775807", "1e300"}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":-1}", NULL,
		{"timeout_ms", "from 0", "-1"}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":0.5}", NULL,
		{"timeout_ms", "an integer", "0.5"}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":\"500\"}", NULL,
		{"timeout_ms", "the string \"500\"", "without quotes"}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":true}", NULL,
		{"timeout_ms", "an integer", "true"}},
	{"exec_command", "{" S ",\"cmd\":\"x\",\"timeout_ms\":[]}", NULL,
		{"timeout_ms", "an integer", "an array"}},
	/* text is never made from something else */
	{"file_write", "{" S ",\"path\":\"a\",\"content\":{\"a\":1}}", NULL,
		{"\"content\"", "an object", "as one string"}},
	{"file_write", "{" S ",\"path\":\"a\",\"content\":[\"x\"]}", NULL,
		{"\"content\"", "an array", "as one string"}},
	{"file_write", "{" S ",\"path\":\"a\",\"content\":42}", NULL,
		{"\"content\"", "a string", "42"}},
	/* NUL is a byte of contents and terminal input, of nothing else */
	{"file_write", "{" S ",\"path\":\"a\",\"content\":\"x\\u0000y\"}",
		"{" S ",\"path\":\"a\",\"content\":\"x\\u0000y\"}", {0}},
	{"file_write", "{" S ",\"path\":\"a\\u0000b\",\"content\":\"\"}", NULL,
		{"\"path\"", "NUL", "after 1 bytes"}},
	{"exec_command", "{" S ",\"cmd\":\"a\\u0000b\"}", NULL, {"\"cmd\"", "NUL"}},
	{"write_command_stdin", "{" S ",\"command_session_id\":\"c\",\"stdin\":\"\\u0000\"}",
		"{" S ",\"command_session_id\":\"c\",\"stdin\":\"\\u0000\"}", {0}},
	/* what is missing and what is too much */
	{"file_read", "{" S "}", NULL, {"\"path\" is missing", "sandbox_id, path"}},
	{"file_read", "{" S ",\"path\":null}", NULL, {"\"path\" is null"}},
	{"file_read", "{" S ",\"path\":\"a\",\"Path\":\"b\"}", NULL,
		{"unknown argument \"Path\"", "did you mean \"path\""}},
	{"file_read", "{" S ",\"path\":\"a\",\"ofset\":1}", NULL,
		{"unknown argument \"ofset\"", "did you mean \"offset\""}},
	{"file_read", "{" S ",\"path\":\"a\",\"encoding\":\"b\"}", NULL,
		{"unknown argument \"encoding\"",
			"sandbox_id, path, offset, limit, workspace_session_id"}},
	{"file_read", "{" S ",\"path\":\"a\",\"extra\":null}", NULL,
		{"unknown argument \"extra\""}},
	{"file_read", "[]", NULL, {"file_read", "must be an object"}},
	{"file_read", "null", NULL, {"file_read", "must be an object"}},
	{"file_read", "\"x\"", NULL, {"file_read", "must be an object"}},
	/* each edit is checked like arguments */
	{"file_edit",
		"{" S ",\"path\":\"a\",\"edits\":[{\"old_string\":\"a\",\"new_string\":\"\","
		"\"replace_all\":null}]}",
		"{" S ",\"path\":\"a\",\"edits\":[{\"old_string\":\"a\",\"new_string\":\"\"}]}",
		{0}},
	{"file_edit", "{" S ",\"path\":\"a\",\"edits\":\"[]\"}", NULL,
		{"\"edits\"", "an array of", "not its JSON text"}},
	{"file_edit", "{" S ",\"path\":\"a\",\"edits\":{\"old_string\":\"a\"}}", NULL,
		{"\"edits\"", "an array of one"}},
	{"file_edit", "{" S ",\"path\":\"a\",\"edits\":[7]}", NULL, {"\"edits[0]\"", "got 7"}},
	{"file_edit", "{" S ",\"path\":\"a\",\"edits\":[null]}", NULL,
		{"\"edits[0]\"", "got null"}},
	{"file_edit", "{" S ",\"path\":\"a\",\"edits\":[{\"new_string\":\"b\"}]}", NULL,
		{"\"edits[0].old_string\" is missing", "an edit needs old_string, new_string"}},
	{"file_edit",
		"{" S ",\"path\":\"a\",\"edits\":[{\"old_string\":null,\"new_string\":\"b\"}]}",
		NULL, {"\"edits[0].old_string\" is null"}},
	{"file_edit",
		"{" S ",\"path\":\"a\",\"edits\":[{\"old_string\":\"a\",\"new_string\":\"b\"},"
		"{\"old_string\":\"a\",\"new_string\":\"b\",\"replace_all\":\"true\"}]}",
		NULL, {"\"edits[1].replace_all\"", "true or false", "without quotes"}},
	{"file_edit",
		"{" S ",\"path\":\"a\",\"edits\":[{\"old_string\":\"a\",\"newstring\":\"b\"}]}",
		NULL, {"unknown argument \"edits[0].newstring\"", "did you mean \"new_string\""}},
	{"stop", "{" S ",\"force\":1}", NULL, {"\"force\"", "true or false", "got 1"}},
	{"cat", "{" S ",\"path\":\"a\",\"at\":0}", NULL, {"\"at\"", "from 1 to", "got 0"}},
};

static void expect_refusal(const struct check *check, int r, const struct sbx_err *err)
{
	cr_assert(r < 0, "%s %s was accepted", check->op, check->args);
	cr_expect_eq(err->kind, SBX_KIND_INVALID);
	for (size_t i = 0; i < SBX_N_ELEMENTS(check->refusal) && check->refusal[i]; i++)
		cr_expect_not_null(strstr(err->message, check->refusal[i]), "%s: \"%s\" lacks %s",
			check->args, err->message, check->refusal[i]);
}

Test(op, arguments_are_made_plain_or_refused_by_name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(checks); i++) {
		const struct check *check = &checks[i];
		SBX_JSON struct json_object *args = NULL;
		struct sbx_err err = SBX_ERR_INIT;
		int r;

		cr_assert_eq(sbx_json_parse(check->args, strlen(check->args), &args, &err), 0, "%s",
			err.message);
		r = sbx_op_check(sbx_op_find(check->op), args, &err);
		if (!check->result) {
			expect_refusal(check, r, &err);
			continue;
		}
		cr_assert_eq(r, 0, "%s %s: %s", check->op, check->args, err.message);
		cr_expect_str_eq(sbx_json_text(args, NULL), check->result);
	}
}

Test(op, a_long_value_is_shown_cut_at_a_character)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_JSON struct json_object *args = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	sbx_buf_append_string(&text, "{" S ",\"cmd\":\"x\",\"timeout_ms\":\"x");
	for (int i = 0; i < 1000; i++)
		sbx_buf_append_string(&text, "\u20ac");
	sbx_buf_append_string(&text, "\"}");
	cr_assert_eq(sbx_json_parse(text.data, text.size, &args, &err), 0);
	cr_assert_lt(sbx_op_check(sbx_op_find("exec_command"), args, &err), 0);
	cr_expect_not_null(strstr(err.message, "..."));
	cr_expect(sbx_utf8_valid(err.message, strlen(err.message)));
	cr_expect_lt(strlen(err.message), 200);
}
