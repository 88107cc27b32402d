/* SPDX-License-Identifier: MIT */
#include "fields.h"

#include <string.h>

static void *member(const struct field *field, void *what)
{
	return (char *)what + field->offset;
}

static const void *member_const(const struct field *field, const void *what)
{
	return (const char *)what + field->offset;
}

static void add_u64(struct json_object *to, const char *name, uint64_t value)
{
	struct json_object *number = json_object_new_uint64(value);

	if (!number)
		abort(); /* as the adders of sbx/json.h: no half-built object goes out */
	sbx_json_add(to, name, number);
}

void fields_to_json(const struct field *fields, size_t n, const void *from, struct json_object *to)
{
	for (const struct field *field = fields; field < fields + n; field++) {
		const void *at = member_const(field, from);

		switch (field->kind) {
		case FIELD_U64:
			add_u64(to, field->name, *(const uint64_t *)at);
			break;
		case FIELD_U32:
			add_u64(to, field->name, *(const uint32_t *)at);
			break;
		case FIELD_STRING:
			sbx_json_add_string(to, field->name, *(char *const *)at);
			break;
		case FIELD_ARRAY:
			sbx_json_add_string(to, field->name, at);
			break;
		case FIELD_LIST:
			if (*(struct json_object *const *)at)
				sbx_json_add(to, field->name,
					json_object_get(*(struct json_object *const *)at));
			break;
		}
	}
}

static int get_number(const struct field *field, struct json_object *value, void *at)
{
	uint64_t number;

	if (!value && field->optional)
		return 0;
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return -EBADMSG;
	number = json_object_get_uint64(value);
	if (field->kind == FIELD_U64)
		*(uint64_t *)at = number;
	else if (number <= UINT32_MAX)
		*(uint32_t *)at = (uint32_t)number;
	else
		return -EBADMSG;
	return 0;
}

static int get_string(const struct field *field, struct json_object *value, void *at)
{
	const char *s = json_object_get_string(value);

	if (!value && field->optional)
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return -EBADMSG;
	if (field->kind == FIELD_STRING) {
		*(char **)at = strdup(s);
		return *(char **)at ? 0 : -ENOMEM;
	}
	if (strlen(s) >= field->size)
		return -EBADMSG;
	memcpy(at, s, strlen(s) + 1);
	return 0;
}

static int get_list(const struct field *field, struct json_object *value, void *at)
{
	if (!value && field->optional)
		return 0;
	if (!json_object_is_type(value, json_type_array))
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(value); i++)
		if (!json_object_is_type(json_object_array_get_idx(value, i), json_type_string))
			return -EBADMSG;
	*(struct json_object **)at = json_object_get(value);
	return 0;
}

static int get(const struct field *field, struct json_object *value, void *at)
{
	switch (field->kind) {
	case FIELD_U64:
	case FIELD_U32:
		return get_number(field, value, at);
	case FIELD_STRING:
	case FIELD_ARRAY:
		return get_string(field, value, at);
	case FIELD_LIST:
		return get_list(field, value, at);
	}
	return -EINVAL;
}

int fields_from_json(const struct field *fields, size_t n, struct json_object *from, void *to,
	struct sbx_err *err)
{
	for (const struct field *field = fields; field < fields + n; field++) {
		struct json_object *value = sbx_json_member(from, field->name);
		int r = get(field, value, member(field, to));

		if (r < 0)
			return sbx_err_set(
				err, -r, "member \"%s\" is missing or wrong", field->name);
	}
	return 0;
}

void fields_done(const struct field *fields, size_t n, void *what)
{
	for (const struct field *field = fields; field < fields + n; field++)
		if (field->kind == FIELD_STRING)
			sbx_free_pointer(member(field, what));
		else if (field->kind == FIELD_LIST)
			sbx_json_put(member(field, what));
}
