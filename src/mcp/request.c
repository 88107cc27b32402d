/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <stdio.h>
#include <string.h>

#define NAME_SHOWN_MAX 80 /* bytes of a caller's text that a message repeats */

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

void mcp_batch_release(struct mcp_session *session, struct mcp_batch *batch)
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

void mcp_answer_error(const struct mcp_request *request, enum mcp_code code, const char *message,
	const char *data)
{
	mcp_reply_error(begin(request->session, request->batch), request->id, code, message, data);
	end(request->session, request->batch);
}

void mcp_answer_named(
	const struct mcp_request *request, enum mcp_code code, const char *what, const char *name)
{
	char message[NAME_SHOWN_MAX + 64];
	size_t n = strnlen(name, NAME_SHOWN_MAX);

	while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
		n--; /* not in the middle of a character */
	(void)snprintf(message, sizeof(message), "%s: %.*s", what, (int)n, name);
	mcp_answer_error(request, code, message, NULL);
}

void mcp_answer_members(const struct mcp_request *request, struct mcp_span members)
{
	mcp_reply_result(
		begin(request->session, request->batch), request->id, request->era, members);
	end(request->session, request->batch);
}

void mcp_answer_tool(const struct mcp_request *request, bool is_error, struct mcp_span payload)
{
	const struct mcp_tool_answer answer = {
		request->era, is_error, request->session->as_text, payload};

	mcp_reply_tool(begin(request->session, request->batch), request->id, &answer);
	end(request->session, request->batch);
}

void mcp_answer_failure(const struct mcp_request *request, const struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	mcp_put_failure(&text, err);
	mcp_answer_tool(request, true, (struct mcp_span){text.data, text.size});
}
