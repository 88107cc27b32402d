/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <stdio.h>
#include <string.h>

#include "lines.h"
#include "message.h"
#include "reply.h"
#include "tools.h"

#define NAME_SHOWN_MAX 80 /* bytes of a caller's text that a message repeats */

/* A batch that is being answered: its answers go out together, as one array. */
struct mcp_batch {
	size_t n_waiting; /* calls without an answer, and one while the batch is being read */
	struct sbx_buf answers;
};

struct request {
	struct mcp_session *session;
	struct mcp_batch *batch; /* or NULL */
	enum mcp_era era;
	struct mcp_span id;
	struct json_object *params; /* or NULL */
};

/* The buffer for one answer, with what has to stand before it. */
static struct sbx_buf *begin(struct mcp_session *session, struct mcp_batch *batch)
{
	if (!batch)
		return session->out;
	if (batch->answers.size > 0)
		mcp_put_string(&batch->answers, ",");
	return &batch->answers;
}

static void end(struct mcp_session *session, struct mcp_batch *batch)
{
	if (batch)
		return;
	mcp_put_string(session->out, "\n");
	session->flush(session->data);
}

static void batch_release(struct mcp_session *session, struct mcp_batch *batch)
{
	if (!batch || --batch->n_waiting > 0)
		return;
	if (batch->answers.size > 0) {
		mcp_put_string(session->out, "[");
		mcp_put(session->out, (struct mcp_span){batch->answers.data, batch->answers.size});
		mcp_put_string(session->out, "]");
		end(session, NULL);
	}
	sbx_buf_done(&batch->answers);
	free(batch);
}

static void answer_error(
	const struct request *request, enum mcp_code code, const char *message, const char *data)
{
	mcp_reply_error(begin(request->session, request->batch), request->id, code, message, data);
	end(request->session, request->batch);
}

/* An error about something that the client named: "<what>: <name>", the name cut to a length. */
static void answer_named(
	const struct request *request, enum mcp_code code, const char *what, const char *name)
{
	char message[NAME_SHOWN_MAX + 64];
	size_t n = strnlen(name, NAME_SHOWN_MAX);

	while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
		n--; /* not in the middle of a character */
	(void)snprintf(message, sizeof(message), "%s: %.*s", what, (int)n, name);
	answer_error(request, code, message, NULL);
}

static void answer_members(const struct request *request, struct mcp_span members)
{
	mcp_reply_result(
		begin(request->session, request->batch), request->id, request->era, members);
	end(request->session, request->batch);
}

static void answer_tool(const struct request *request, bool is_error, struct mcp_span payload)
{
	const struct mcp_tool_answer answer = {
		request->era, is_error, request->session->as_text, payload};

	mcp_reply_tool(begin(request->session, request->batch), request->id, &answer);
	end(request->session, request->batch);
}

static void answer_failure(const struct request *request, const struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	mcp_put_failure(&text, err);
	answer_tool(request, true, (struct mcp_span){text.data, text.size});
}

void mcp_session_answer(void *data, struct mcp_call *call, bool is_error, struct mcp_span payload)
{
	const struct request request = {
		.session = data,
		.batch = call->batch,
		.era = call->era,
		.id = {call->id, call->id_size},
	};

	answer_tool(&request, is_error, payload);
	batch_release(data, call->batch);
	mcp_call_free(call);
}

/* What identifies this server and says what it can do, in the words that both eras share. */
static void put_capabilities(struct sbx_buf *out)
{
	mcp_put_string(out, "\"capabilities\":{\"tools\":{}},\"serverInfo\":");
	mcp_put_string(out, mcp_server_info());
	mcp_put_string(out, ",\"instructions\":");
	mcp_put_quoted(out, (struct mcp_span){mcp_instructions, strlen(mcp_instructions)});
}

static void do_initialize(const struct request *request)
{
	SBX_BUF struct sbx_buf members = SBX_BUF_INIT;
	const char *version =
		mcp_era_negotiate(sbx_json_member(request->params, "protocolVersion"));

	if (request->batch) {
		answer_error(
			request, MCP_INVALID_REQUEST, "initialize cannot be part of a batch", NULL);
		return;
	}
	request->session->negotiated = version;
	mcp_put_string(&members, "\"protocolVersion\":\"");
	mcp_put_string(&members, version);
	mcp_put_string(&members, "\",");
	put_capabilities(&members);
	answer_members(request, (struct mcp_span){members.data, members.size});
}

static void do_ping(const struct request *request)
{
	answer_members(request, (struct mcp_span){"", 0});
}

/* ["2026-07-28"] */
static void put_modern_versions(struct sbx_buf *out)
{
	for (const char *const *version = mcp_modern_versions; *version; version++) {
		mcp_put_string(out, version == mcp_modern_versions ? "[\"" : "\",\"");
		mcp_put_string(out, *version);
	}
	mcp_put_string(out, "\"]");
}

/* How long a client may keep what does not change while this process runs. */
static void put_cache_hint(struct sbx_buf *out, enum mcp_era era)
{
	if (era == MCP_MODERN)
		mcp_put_string(out, ",\"ttlMs\":3600000,\"cacheScope\":\"public\"");
}

static void do_discover(const struct request *request)
{
	SBX_BUF struct sbx_buf members = SBX_BUF_INIT;

	mcp_put_string(&members, "\"supportedVersions\":");
	put_modern_versions(&members);
	mcp_put_string(&members, ",");
	put_capabilities(&members);
	put_cache_hint(&members, request->era);
	answer_members(request, (struct mcp_span){members.data, members.size});
}

static void do_tools_list(const struct request *request)
{
	SBX_BUF struct sbx_buf members = SBX_BUF_INIT;

	if (sbx_json_member(request->params, "cursor")) {
		answer_error(request, MCP_INVALID_PARAMS,
			"unknown cursor: the list of tools has one page; leave cursor out", NULL);
		return;
	}
	mcp_put_string(&members, "\"tools\":");
	mcp_put(&members, mcp_tools_text());
	put_cache_hint(&members, request->era);
	answer_members(request, (struct mcp_span){members.data, members.size});
}

static struct mcp_call *call_new(const struct request *request)
{
	struct mcp_call *call = calloc(1, sizeof(*call));
	char *id = malloc(request->id.size);

	if (!call || !id)
		abort(); /* half an answer must not go out, and neither must none */
	memcpy(id, request->id.data, request->id.size);
	*call = (struct mcp_call){
		.id = id,
		.id_size = request->id.size,
		.era = request->era,
		.batch = request->batch,
	};
	return call;
}

static void call_tool(
	const struct request *request, const struct sbx_op *op, struct json_object *args)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct mcp_call *call;
	int r;

	r = sbx_op_check(op, args, &err);
	if (r < 0) {
		answer_failure(request, &err);
		return;
	}
	call = call_new(request);
	if (request->batch)
		request->batch->n_waiting++;
	r = mcp_links_call(request->session->links, op, args, call, &err);
	if (r < 0) {
		answer_failure(request, &err);
		batch_release(request->session, call->batch);
		mcp_call_free(call);
	}
}

static void do_tools_call(const struct request *request)
{
	struct json_object *name = sbx_json_member(request->params, "name");
	struct json_object *args = sbx_json_member(request->params, "arguments");
	SBX_JSON struct json_object *no_args = NULL;
	const struct sbx_op *op;

	if (!json_object_is_type(name, json_type_string)) {
		answer_error(request, MCP_INVALID_PARAMS, "params.name must be a string", NULL);
		return;
	}
	op = mcp_tool_find(json_object_get_string(name));
	if (!op || strlen(op->name) != (size_t)json_object_get_string_len(name)) {
		answer_named(
			request, MCP_INVALID_PARAMS, "Unknown tool", json_object_get_string(name));
		return;
	}
	if (!args)
		args = no_args = json_object_new_object();
	call_tool(request, op, args);
}

static const struct method {
	const char *name;
	int eras;
	void (*run)(const struct request *request);
} methods[] = {
	{"initialize", MCP_LEGACY, do_initialize},
	/* gone from 2026-07-28; answered there all the same, since nothing can be meant but this */
	{"ping", MCP_LEGACY | MCP_MODERN, do_ping},
	{"server/discover", MCP_MODERN, do_discover},
	{"tools/list", MCP_LEGACY | MCP_MODERN, do_tools_list},
	{"tools/call", MCP_LEGACY | MCP_MODERN, do_tools_call},
};

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(methods); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

static void answer_unsupported(const struct request *request, const char *requested)
{
	SBX_BUF struct sbx_buf data = SBX_BUF_INIT;

	mcp_put_string(&data, "{\"supported\":");
	put_modern_versions(&data);
	mcp_put_string(&data, ",\"requested\":");
	mcp_put_quoted(&data, (struct mcp_span){requested, strlen(requested)});
	mcp_put_string(&data, "}");
	answer_error(request, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version", data.data);
}

static void handle_request(struct request *request, const char *name)
{
	const struct method *method = find_method(name);
	struct mcp_era_check check;
	enum mcp_era_verdict verdict;

	if (!method) {
		answer_named(request, MCP_METHOD_NOT_FOUND, "Method not found", name);
		return;
	}
	verdict = mcp_era_of(name, request->params, request->session->negotiated, &check);
	request->era = check.era;
	if (verdict == MCP_ERA_UNSUPPORTED)
		answer_unsupported(request, check.requested);
	else if (verdict == MCP_ERA_INCOMPLETE)
		answer_error(request, MCP_INVALID_PARAMS, check.problem, NULL);
	else if (!(method->eras & (int)check.era))
		answer_named(request, MCP_METHOD_NOT_FOUND,
			"Method not found in this protocol version", name);
	else
		method->run(request);
}

/* Stops waiting for a request. It gets no answer any more; what it began goes on. A wrong or late
 * cancellation is nothing to talk about. */
static void handle_cancelled(struct mcp_session *session, const struct mcp_message *message)
{
	struct mcp_span id = mcp_message_id(message->params, message->params_text, "requestId");
	struct mcp_call *call;

	if (!mcp_message_id_usable(id))
		return;
	while ((call = mcp_links_cancel(session->links, id))) {
		batch_release(session, call->batch);
		mcp_call_free(call);
	}
}

static void handle_message(struct mcp_session *session, struct mcp_batch *batch,
	struct json_object *value, struct mcp_span text)
{
	struct mcp_message message;
	struct request request = {.session = session, .batch = batch, .era = MCP_LEGACY};

	mcp_message_read(value, text, &message);
	request.id = message.id;
	request.params = message.params;
	if (message.kind == MCP_INVALID)
		answer_named(&request, MCP_INVALID_REQUEST, "Invalid request", message.problem);
	else if (message.kind == MCP_REQUEST)
		handle_request(&request, message.method);
	else if (message.kind == MCP_NOTIFICATION &&
		 !strcmp(message.method, "notifications/cancelled"))
		handle_cancelled(session, &message);
}

static void handle_batch(
	struct mcp_session *session, struct json_object *array, struct mcp_span text)
{
	struct mcp_batch *batch = calloc(1, sizeof(*batch));
	struct mcp_span element;
	size_t at = 0;

	if (!batch)
		abort();
	batch->n_waiting = 1;
	for (size_t i = 0; mcp_span_element(text, &at, &element); i++)
		handle_message(session, batch, json_object_array_get_idx(array, i), element);
	batch_release(session, batch);
}

static void refuse(struct mcp_session *session, enum mcp_code code, const char *message)
{
	const struct request request = {.session = session, .id = {"null", 4}};

	answer_error(&request, code, message, NULL);
}

static void handle_array(
	struct mcp_session *session, struct json_object *array, struct mcp_span text)
{
	size_t n = json_object_array_length(array);

	if (!mcp_era_has_batches(session->negotiated))
		refuse(session, MCP_INVALID_REQUEST,
			"Invalid request: batches are part of protocol version 2025-03-26 only; "
			"send "
			"one message a line");
	else if (n == 0)
		refuse(session, MCP_INVALID_REQUEST, "Invalid request: an empty batch");
	else if (n > MCP_BATCH_MAX)
		refuse(session, MCP_INVALID_REQUEST,
			"Invalid request: more than 100 messages in one batch");
	else
		handle_batch(session, array, text);
}

void mcp_session_line(struct mcp_session *session, const char *text, size_t size)
{
	SBX_JSON struct json_object *value = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	if (sbx_json_parse(text, size, &value, &err) < 0) {
		(void)sbx_err_wrap(&err, -EINVAL, "Parse error");
		refuse(session, MCP_PARSE_ERROR, err.message);
	} else if (json_object_is_type(value, json_type_array)) {
		handle_array(session, value, (struct mcp_span){text, size});
	} else {
		handle_message(session, NULL, value, (struct mcp_span){text, size});
	}
}

void mcp_session_too_long(struct mcp_session *session)
{
	refuse(session, MCP_INVALID_REQUEST,
		"Invalid request: the line is longer than 64 MiB and was skipped; send less at "
		"once");
}
