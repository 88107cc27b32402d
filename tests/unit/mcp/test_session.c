/* SPDX-License-Identifier: MIT */
/* A client's lines and their answers, without any daemon. */
#include "../../../src/mcp/session.h"

#include <criterion/criterion.h>
#include <string.h>

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define PING(id)       "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define PONG(id)       "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
#define FAIL(id, code) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",*"
#define NOTE           "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

struct conversation {
	struct sbx_loop *loop;
	struct sbx_buf out;
	struct mcp_session session;
};

static void no_answer(void *data SBX_UNUSED, struct mcp_call *call SBX_UNUSED,
	bool is_error SBX_UNUSED, struct mcp_span payload SBX_UNUSED)
{
	cr_assert_fail("no call was expected");
}

static void nothing(void *data SBX_UNUSED)
{
}

static void begin(struct conversation *c, const char *negotiated)
{
	*c = (struct conversation){0};
	cr_assert_eq(sbx_loop_new(&c->loop), 0);
	c->session =
		(struct mcp_session){.out = &c->out, .flush = nothing, .negotiated = negotiated};
	cr_assert_eq(mcp_links_new(c->loop, no_answer, nothing, NULL, &c->session.links), 0);
}

static void end(struct conversation *c)
{
	mcp_links_free(c->session.links);
	sbx_loop_free(c->loop);
	sbx_buf_done(&c->out);
}

/* Whether text is pattern, where a final "*" stands for anything. */
static bool matches(const char *text, const char *pattern)
{
	size_t n = strlen(pattern);

	if (n > 0 && pattern[n - 1] == '*')
		return !strncmp(text, pattern, n - 1);
	return !strcmp(text, pattern);
}

/* Says the line and expects the answers (patterns, one a line); "" is silence. */
static void expect(const char *negotiated, const char *line, size_t size, const char *pattern)
{
	struct conversation c;
	SBX_JSON struct json_object *value = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	begin(&c, negotiated);
	mcp_session_line(&c.session, line, size);
	if (c.out.size == 0) {
		cr_expect_str_eq(pattern, "", "%s: silence", line);
	} else {
		c.out.data[c.out.size - 1] = '\0'; /* the line end */
		cr_expect(matches(c.out.data, pattern), "%s: %s", line, c.out.data);
		cr_expect_eq(sbx_json_parse(c.out.data, c.out.size - 1, &value, &err), 0, "%s: %s",
			line, err.message);
	}
	end(&c);
}

struct exchange {
	const char *line;
	const char *pattern;
};

static void expect_all(const char *negotiated, const struct exchange *exchanges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect(negotiated, exchanges[i].line, strlen(exchanges[i].line),
			exchanges[i].pattern);
}

static const struct exchange ids[] = {
	{PING("0"), PONG("0")},
	{PING("-1"), PONG("-1")},
	{PING("\"\""), PONG("\"\"")},
	{PING("\"0\""), PONG("\"0\"")},
	{PING("\"\xc3\xa9\""), PONG("\"\xc3\xa9\"")},
	{PING("\"\\u00e9\""), PONG("\"\\u00e9\"")},
	{PING("9007199254740993"), PONG("9007199254740993")},
	{PING("123456789012345678901234567890"), PONG("123456789012345678901234567890")},
	{PING("1.0"), PONG("1.0")},
	{PING("1.5"), PONG("1.5")},
	{PING("1e3"), PONG("1e3")},
	{PING("null"), FAIL("null", "-32600")},
	{PING("true"), FAIL("null", "-32600")},
	{PING("{}"), FAIL("null", "-32600")},
	{PING("[]"), FAIL("null", "-32600")},
};

Test(session, ids_come_back_as_they_were_written)
{
	expect_all(NULL, ids, SBX_N_ELEMENTS(ids));
}

static const struct exchange bad_lines[] = {
	{"{bad", FAIL("null", "-32700")},
	{"[", FAIL("null", "-32700")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth", FAIL("null", "-32700")},
	{PING("1") PING("2"), FAIL("null", "-32700")},
	{PING("1") " x", FAIL("null", "-32700")},
	{PING("\"\xff\""), FAIL("null", "-32700")},
	{PING("\"\xed\xa0\x80\""), FAIL("null", "-32700")},
	{PING("\"\x01\""), FAIL("null", "-32700")},
	{"\xc3\x28", FAIL("null", "-32700")},
	{"42", FAIL("null", "-32600")},
	{"\"x\"", FAIL("null", "-32600")},
	{"null", FAIL("null", "-32600")},
	{"true", FAIL("null", "-32600")},
	{"{}", FAIL("null", "-32600")},
	{"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", FAIL("1", "-32600")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1}", FAIL("1", "-32600")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", FAIL("1", "-32600")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":7}", FAIL("1", "-32600")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nope\"}", FAIL("1", "-32601")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", FAIL("1", "-32601")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\"}", FAIL("1", "-32601")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", ""},
	{NOTE, ""},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard/of\"}", ""},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"file_read\","
	 "\"arguments\":{\"sandbox_id\":\"a\",\"path\":\"b\"}}}",
		""},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", ""},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
	 "{\"requestId\":null}}",
		""},
	{"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
	 "{\"requestId\":9}}",
		""},
};

Test(session, bad_lines_get_their_error_and_nothing_else)
{
	expect_all("2025-11-25", bad_lines, SBX_N_ELEMENTS(bad_lines));
}

Test(session, bytes_that_are_no_text_are_parse_errors)
{
	static const char nul_inside[] = "{\"jsonrpc\":\"2.0\",\0\"id\":1,\"method\":\"ping\"}";
	static const char nuls[] = "\0\0\0";

	expect(NULL, nul_inside, sizeof(nul_inside) - 1, FAIL("null", "-32700"));
	expect(NULL, nuls, sizeof(nuls) - 1, FAIL("null", "-32700"));
}

Test(session, deep_nesting_is_an_error_and_no_crash)
{
	size_t depth = 10000;
	char *line = malloc(2 * depth);

	cr_assert_not_null(line);
	memset(line, '[', depth);
	memset(line + depth, ']', depth);
	expect(NULL, line, 2 * depth, FAIL("null", "-32700"));
	free(line);
}

static const struct exchange batches[] = {
	{"[" PING("1") "," PING("\"2\"") "]", "[" PONG("1") "," PONG("\"2\"") "]"},
	{"[" PING("1") "," NOTE "]", "[" PONG("1") "]"},
	{"[" NOTE "," NOTE "]", ""},
	{"[]", FAIL("null", "-32600")},
	{"[1]", "[" FAIL("null", "-32600")},
	{"[" PING("1") ",1]", "[" PONG("1") "," FAIL("null", "-32600")},
	{"[[" PING("1") "]]", "[" FAIL("null", "-32600")},
	{"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}]",
		"[" FAIL("1", "-32600")},
};

Test(session, batches_are_answered_together_where_they_exist)
{
	expect_all("2025-03-26", batches, SBX_N_ELEMENTS(batches));
}

Test(session, batches_are_refused_as_one_where_they_do_not_exist)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(batches); i++) {
		expect("2025-11-25", batches[i].line, strlen(batches[i].line),
			FAIL("null", "-32600"));
		expect(NULL, batches[i].line, strlen(batches[i].line), FAIL("null", "-32600"));
	}
}

Test(session, batches_have_a_greatest_size)
{
	SBX_BUF struct sbx_buf line = SBX_BUF_INIT;

	for (size_t i = 0; i <= MCP_BATCH_MAX; i++)
		cr_assert_eq(sbx_buf_append_string(&line, i ? "," NOTE : "[" NOTE), 0);
	cr_assert_eq(sbx_buf_append_string(&line, "]"), 0);
	expect("2025-03-26", line.data, line.size, FAIL("null", "-32600"));
}

static const struct exchange before_initialize[] = {
	{PING("1"), PONG("1")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", FAIL("1", "-32602")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}",
		FAIL("1", "-32602")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", FAIL("1", "-32602")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",*"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",*"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{" META "}}",
		FAIL("1", "-32601")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":"
	 "{\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\","
	 "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,"
		"\"message\":\"Unsupported protocol version\",\"data\":{"
		"\"supported\":[\"2026-07-28\"],\"requested\":\"1900-01-01\"}}}"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",*"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
	 "{\"protocolVersion\":\"2024-11-05\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2024-11-05\",*"},
};

Test(session, needs_initialize_or_meta_for_all_but_ping)
{
	expect_all(NULL, before_initialize, SBX_N_ELEMENTS(before_initialize));
}

static const struct exchange tools[] = {
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}",
		FAIL("1", "-32602")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":null}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[*"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,"
		"\"message\":\"Unknown tool: nope\"}}"},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
	 "{\"name\":\"inspect\",\"arguments\":{\"sandbox_id\":\"a\"}}}",
		FAIL("1", "-32602")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
	 "{\"name\":\"file_read\\u0000\"}}",
		FAIL("1", "-32602")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
		FAIL("1", "-32602")},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", FAIL("1", "-32602")},
};

Test(session, tools_are_listed_and_named_exactly)
{
	expect_all("2025-11-25", tools, SBX_N_ELEMENTS(tools));
}

#define CALL(arguments)                                                                            \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"                      \
	"{\"name\":\"file_read\"" arguments "}}"
#define REFUSED                                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"structuredContent\":"          \
	"{\"error\":{\"kind\":\"invalid_request\",*"

static const struct exchange arguments[] = {
	{CALL(""), REFUSED},
	{CALL(",\"arguments\":null"), REFUSED},
	{CALL(",\"arguments\":[]"), REFUSED},
	{CALL(",\"arguments\":\"x\""), REFUSED},
	{CALL(",\"arguments\":{\"sandbox_id\":5,\"path\":\"p\"}"), REFUSED},
	{CALL(",\"arguments\":{\"sandbox_id\":\"s\",\"path\":\"p\",\"limit\":\"5\"}"), REFUSED},
	{CALL(",\"arguments\":{\"sandbox_id\":\"s\",\"path\":\"p\",\"Limit\":5}"), REFUSED},
};

Test(session, arguments_that_break_the_schema_are_the_tools_failure)
{
	expect_all("2025-11-25", arguments, SBX_N_ELEMENTS(arguments));
}

Test(session, text_content_repeats_the_result_as_text)
{
	struct conversation c;

	begin(&c, "2024-11-05");
	c.session.as_text = true;
	mcp_session_line(&c.session, CALL(""), strlen(CALL("")));
	cr_expect_not_null(strstr(c.out.data,
		"\"content\":[{\"type\":\"text\",\"text\":\"{\\\"error\\\":{\\\"kind\\\":"));
	end(&c);
}

Test(session, initialize_can_be_repeated_and_the_last_one_counts)
{
	static const char first[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
				    "\"params\":{\"protocolVersion\":\"2025-03-26\"}}";
	static const char second[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\","
				     "\"params\":{\"protocolVersion\":\"2025-06-18\"}}";
	struct conversation c;

	begin(&c, NULL);
	mcp_session_line(&c.session, first, strlen(first));
	cr_expect_str_eq(c.session.negotiated, "2025-03-26");
	mcp_session_line(&c.session, second, strlen(second));
	cr_expect_str_eq(c.session.negotiated, "2025-06-18");
	end(&c);
}
