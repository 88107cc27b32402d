/* SPDX-License-Identifier: MIT */
/* Structs to and from JSON objects by a table of their members. */
#ifndef SBX_STORE_FIELDS_H
#define SBX_STORE_FIELDS_H

#include "sbx/json.h"

enum field_kind {
	FIELD_U64,
	FIELD_U32,
	FIELD_STRING, /* char *, allocated */
	FIELD_ARRAY,  /* char[size] */
	FIELD_LIST,   /* struct json_object *, an array of strings; NULL: an empty one */
};

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	size_t size;   /* of a FIELD_ARRAY */
	bool optional; /* a string that may be NULL, a list or number that may be missing */
};

#define FIELD_OF(type, member, name, kind)                                                         \
	{                                                                                          \
		name, kind, offsetof(type, member), sizeof(((type *)NULL)->member), false          \
	}
#define FIELD_STRINGS(type, member, name)                                                          \
	{                                                                                          \
		name, FIELD_LIST, offsetof(type, member), 0, true                                  \
	}
#define FIELD_OPTIONAL(type, member, name)                                                         \
	{                                                                                          \
		name, FIELD_STRING, offsetof(type, member), 0, true                                \
	}

/* Absent in files of before it was: 0. */
#define FIELD_OPTIONAL_U64(type, member, name)                                                     \
	{                                                                                          \
		name, FIELD_U64, offsetof(type, member), 0, true                                   \
	}

void fields_to_json(const struct field *fields, size_t n, const void *from, struct json_object *to);
/*
 * Fills a zeroed struct; -EBADMSG naming the member that is missing or wrong. What was filled
 * stays: fields_done() it in any case.
 */
int fields_from_json(const struct field *fields, size_t n, struct json_object *from, void *to,
	struct sbx_err *err);
/* Frees the strings and lists. */
void fields_done(const struct field *fields, size_t n, void *what);

#endif
