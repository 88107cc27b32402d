/* SPDX-License-Identifier: MIT */
/* The JSON Schema of an operation's arguments, made from its table. */
#include "sbx/op.h"

#include "answer.h"

static const char *const type_words[] = {
	[SBX_ARG_STRING] = "string",
	[SBX_ARG_INTEGER] = "integer",
	[SBX_ARG_BOOLEAN] = "boolean",
	[SBX_ARG_EDITS] = "array",
};

static struct json_object *property(const struct sbx_arg *arg)
{
	struct json_object *o = json_object_new_object();

	sbx_json_add_string(o, "type", type_words[arg->type]);
	if (arg->type != SBX_ARG_INTEGER)
		return o;
	sbx_json_add_int(o, "minimum", arg->minimum);
	if (arg->maximum != INT64_MAX)
		sbx_json_add_int(o, "maximum", arg->maximum);
	if (arg->flags & SBX_ARG_HAS_DEFAULT)
		sbx_json_add_int(o, "default", arg->default_value);
	return o;
}

struct json_object *sbx_op_schema(const struct sbx_op *op)
{
	struct json_object *schema = json_object_new_object();
	struct json_object *properties = json_object_new_object();
	struct json_object *required = json_object_new_array();

	for (const struct sbx_arg *arg = op->args; arg->name; arg++) {
		sbx_json_add(properties, arg->name, property(arg));
		if (arg->flags & SBX_ARG_REQUIRED)
			sbx_answer_push(required, json_object_new_string(arg->name));
	}
	sbx_json_add_string(schema, "type", "object");
	sbx_json_add(schema, "properties", properties);
	sbx_json_add(schema, "required", required);
	sbx_json_add_bool(schema, "additionalProperties", false);
	return schema;
}
