/* SPDX-License-Identifier: MIT */
/*
 * Any bytes on stdin of sandbox-mcp, cut into lines as they come: no line has a line end or is too
 * long, every JSON value among them is some kind of message, an id stands in the text as it was
 * written, and each request is of one era or is refused with a reason. The first byte says in what
 * pieces the bytes arrive.
 */
#include <assert.h>
#include <string.h>

#include "../../src/mcp/era.h"
#include "../../src/mcp/lines.h"
#include "../../src/mcp/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool lies_in(struct mcp_span piece, struct mcp_span text)
{
	return piece.data >= text.data && piece.data + piece.size <= text.data + text.size;
}

static void check_request(const struct mcp_message *message)
{
	struct mcp_era_check check = {0};
	enum mcp_era_verdict verdict = mcp_era_of(message->method, message->params, NULL, &check);

	assert(message->method);
	if (verdict == MCP_ERA_INCOMPLETE)
		assert(check.problem);
	if (verdict == MCP_ERA_UNSUPPORTED)
		assert(check.requested);
}

static void check_message(struct json_object *value, struct mcp_span text)
{
	struct mcp_message message = {0};

	mcp_message_read(value, text, &message);
	assert(lies_in(message.id, text) ||
		mcp_span_equal(message.id, (struct mcp_span){"null", 4}));
	if (message.kind == MCP_REQUEST)
		assert(mcp_message_id_usable(message.id));
	if (message.kind == MCP_INVALID)
		assert(message.problem);
	if (message.kind == MCP_REQUEST || message.kind == MCP_NOTIFICATION)
		check_request(&message);
}

static void check_batch(struct json_object *value, struct mcp_span text)
{
	struct mcp_span element;
	size_t at = 0, n = 0;

	while (mcp_span_element(text, &at, &element)) {
		assert(lies_in(element, text) && n < json_object_array_length(value));
		check_message(json_object_array_get_idx(value, n++), element);
	}
	assert(n == json_object_array_length(value));
}

static void check_line(const char *text, size_t size)
{
	SBX_JSON struct json_object *value = NULL;
	struct mcp_span span = {text, size};

	assert(size <= MCP_LINE_MAX && !memchr(text, '\n', size));
	if (sbx_json_parse(text, size, &value, NULL) < 0)
		return;
	if (json_object_is_type(value, json_type_array))
		check_batch(value, span);
	else
		check_message(value, span);
}

static void take_lines(struct mcp_lines *lines, bool ended)
{
	enum mcp_line kind;
	const char *text;
	size_t size;

	while ((kind = mcp_lines_next(lines, ended, &text, &size)) != MCP_LINE_NONE)
		if (kind == MCP_LINE_TEXT)
			check_line(text, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBX_CLEANUP(mcp_lines_done) struct mcp_lines lines = {0};
	size_t piece = size ? 1 + data[0] : 1, room;
	char *to;

	for (size_t at = 1; at < size;) {
		size_t n = SBX_MIN(piece, size - at);

		assert(mcp_lines_room(&lines, &to, &room) == 0 && room > 0);
		n = SBX_MIN(n, room);
		memcpy(to, data + at, n);
		mcp_lines_added(&lines, n);
		at += n;
		take_lines(&lines, false);
	}
	take_lines(&lines, true);
	return 0;
}
