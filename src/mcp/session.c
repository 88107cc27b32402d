/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <string.h>

#include "message.h"
#include "methods.h"

void mcp_session_answer(void *data, struct mcp_call *call, bool is_error, struct mcp_span payload)
{
	const struct mcp_request request = {
		.session = data,
		.batch = call->batch,
		.era = call->era,
		.id = {call->id, call->id_size},
	};

	mcp_answer_tool(&request, is_error, payload);
	mcp_batch_release(data, call->batch);
	mcp_call_free(call);
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
		mcp_batch_release(session, call->batch);
		mcp_call_free(call);
	}
}

static void handle_message(struct mcp_session *session, struct mcp_batch *batch,
	struct json_object *value, struct mcp_span text)
{
	struct mcp_message message;
	struct mcp_request request = {.session = session, .batch = batch, .era = MCP_LEGACY};

	mcp_message_read(value, text, &message);
	request.id = message.id;
	request.params = message.params;
	if (message.kind == MCP_INVALID)
		mcp_answer_named(&request, MCP_INVALID_REQUEST, "Invalid request", message.problem);
	else if (message.kind == MCP_REQUEST)
		mcp_method_run(&request, message.method);
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
	mcp_batch_release(session, batch);
}

static void refuse(struct mcp_session *session, enum mcp_code code, const char *message)
{
	const struct mcp_request request = {.session = session, .id = {"null", 4}};

	mcp_answer_error(&request, code, message, NULL);
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

void mcp_session_end(struct mcp_session *session)
{
	struct mcp_call *call;

	while ((call = mcp_links_drop(session->links))) {
		mcp_batch_release(session, call->batch);
		mcp_call_free(call);
	}
}
