/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <string.h>

static const struct mcp_span no_id = {"null", 4};

bool mcp_message_id_usable(struct mcp_span id)
{
	return !mcp_span_equal(id, no_id);
}

struct mcp_span mcp_message_id(struct json_object *object, struct mcp_span text, const char *key)
{
	struct json_object *value = sbx_json_member(object, key);
	struct mcp_span span;

	if (!json_object_is_type(value, json_type_string) &&
		!json_object_is_type(value, json_type_int) &&
		!json_object_is_type(value, json_type_double))
		return no_id;
	span = mcp_span_member(text, key);
	if (span.size == 0)
		span.data = sbx_json_text(value, &span.size);
	return span;
}

static const char *params_problem(struct json_object *value)
{
	struct json_object *params = sbx_json_member(value, "params");

	if (params && !json_object_is_type(params, json_type_object))
		return "params must be an object";
	return NULL;
}

static const char *method_problem(struct json_object *value)
{
	struct json_object *method = sbx_json_member(value, "method");

	if (!method)
		return "method is missing";
	if (!json_object_is_type(method, json_type_string))
		return "method must be a string";
	if (strlen(json_object_get_string(method)) != (size_t)json_object_get_string_len(method))
		return "method must not contain U+0000";
	return NULL;
}

static const char *problem_of(struct json_object *value, struct mcp_span id)
{
	const char *version = sbx_json_string(value, "jsonrpc", "");
	const char *problem;

	if (!json_object_is_type(value, json_type_object))
		return "a message is a JSON object";
	if (strcmp(version, "2.0") != 0)
		return "jsonrpc must be \"2.0\"";
	problem = method_problem(value);
	if (problem)
		return problem;
	if (json_object_object_get_ex(value, "id", NULL) && !mcp_message_id_usable(id))
		return "id must be a string or a number";
	return params_problem(value);
}

/* Whether value answers something: it has what only answers have, and asks for nothing. */
static bool is_response(struct json_object *value)
{
	return json_object_is_type(value, json_type_object) &&
	       !json_object_object_get_ex(value, "method", NULL) &&
	       !strcmp(sbx_json_string(value, "jsonrpc", ""), "2.0") &&
	       (json_object_object_get_ex(value, "result", NULL) ||
		       json_object_object_get_ex(value, "error", NULL));
}

void mcp_message_read(struct json_object *value, struct mcp_span text, struct mcp_message *ret)
{
	*ret = (struct mcp_message){.id = mcp_message_id(value, text, "id")};
	if (is_response(value)) {
		ret->kind = MCP_RESPONSE;
		return;
	}
	ret->problem = problem_of(value, ret->id);
	if (ret->problem) {
		ret->kind = MCP_INVALID;
		return;
	}
	ret->kind = mcp_message_id_usable(ret->id) ? MCP_REQUEST : MCP_NOTIFICATION;
	ret->method = sbx_json_string(value, "method", "");
	ret->params = sbx_json_member(value, "params");
	ret->params_text = mcp_span_member(text, "params");
}
