/* SPDX-License-Identifier: MIT */
#include "tools.h"

#include <string.h>

#include "reply.h"

const struct sbx_op *mcp_tool_find(const char *name)
{
	const struct sbx_op *op = sbx_op_find(name);

	return op && (op->flags & SBX_OP_TOOL) ? op : NULL;
}

static const struct mcp_tool_words *words_of(const char *name)
{
	const struct mcp_tool_words *words = mcp_tool_words;

	while (words->name && strcmp(words->name, name) != 0)
		words++;
	if (!words->name)
		abort(); /* a tool without words is our own mistake; the unit test finds it */
	return words;
}

static void put_member(struct sbx_buf *out, const char *key, const char *value)
{
	mcp_put_string(out, key);
	mcp_put_quoted(out, (struct mcp_span){value, strlen(value)});
}

#define ERROR_SCHEMA                                                                               \
	"{\"type\":\"object\",\"properties\":{"                                                    \
	"\"kind\":{\"type\":\"string\",\"enum\":[\"invalid_request\",\"not_found\","               \
	"\"operation_conflict\",\"operation_failed\",\"server_busy\",\"connection_error\","        \
	"\"internal_error\"]},"                                                                    \
	"\"message\":{\"type\":\"string\"},\"details\":{\"type\":\"object\"}},"                    \
	"\"required\":[\"kind\",\"message\",\"details\"]}"

/* Success and failure in one schema, since clients check both kinds of result against it: either
 * all members of a success are there, or "error" is. */
static void put_output_schema(struct sbx_buf *out, const struct mcp_field *fields)
{
	const char *separator = "";

	mcp_put_string(out, "{\"type\":\"object\",\"properties\":{");
	for (const struct mcp_field *field = fields; field->name; field++) {
		put_member(out, "", field->name);
		mcp_put_string(out, ":");
		mcp_put_string(out, field->schema);
		mcp_put_string(out, ",");
	}
	mcp_put_string(out, "\"error\":" ERROR_SCHEMA "},\"anyOf\":[{\"required\":[");
	for (const struct mcp_field *field = fields; field->name; field++) {
		if (field->optional)
			continue;
		put_member(out, separator, field->name);
		separator = ",";
	}
	mcp_put_string(out, "]},{\"required\":[\"error\"]}]}");
}

static void put_tool(struct sbx_buf *out, const struct sbx_op *op)
{
	const struct mcp_tool_words *words = words_of(op->name);
	SBX_JSON struct json_object *schema = sbx_op_schema(op);
	struct mcp_span text;

	text.data = sbx_json_text(schema, &text.size);
	put_member(out, "{\"name\":", op->name);
	put_member(out, ",\"title\":", words->title);
	put_member(out, ",\"description\":", words->description);
	mcp_put_string(out, ",\"inputSchema\":");
	mcp_put(out, text);
	mcp_put_string(out, ",\"outputSchema\":");
	put_output_schema(out, words->fields);
	mcp_put_string(out, ",\"annotations\":{\"readOnlyHint\":");
	mcp_put_string(out, op->flags & SBX_OP_READ_ONLY ? "true" : "false");
	mcp_put_string(out, words->hints);
	mcp_put_string(out, "}}");
}

struct mcp_span mcp_tools_text(void)
{
	static struct sbx_buf text;

	if (text.size == 0) {
		for (const struct sbx_op *op = sbx_ops; op->name; op++) {
			if (!(op->flags & SBX_OP_TOOL))
				continue;
			mcp_put_string(&text, text.size ? "," : "[");
			put_tool(&text, op);
		}
		mcp_put_string(&text, "]");
	}
	return (struct mcp_span){text.data, text.size};
}
