/* SPDX-License-Identifier: MIT */
/* What we add to json-c: strict parsing, typed look-ups, exact integers. */
#ifndef SBX_JSON_H
#define SBX_JSON_H

#include <json-c/json.h>

#include "sbx/buf.h"
#include "sbx/err.h"

#define SBX_JSON_DEPTH_MAX 64

static inline void sbx_json_put(struct json_object **o)
{
	int saved = errno;

	json_object_put(*o);
	*o = NULL;
	errno = saved;
}
#define SBX_JSON SBX_CLEANUP(sbx_json_put)

/* Whether the bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool sbx_utf8_valid(const void *data, size_t size);

/*
 * Parses exactly one JSON text (RFC 8259) of size bytes: valid UTF-8, nothing but white space
 * after it, at most SBX_JSON_DEPTH_MAX deep. Integers beyond 64 bits become the nearest one that
 * fits; of equal keys the last one counts. -EINVAL with the reason and byte offset in err.
 */
int sbx_json_parse(const char *text, size_t size, struct json_object **ret, struct sbx_err *err);

/* Member look-ups. Absent and null members yield the default; a wrong type does too: validate
 * with a schema first where the text came from outside. Strings live as long as o. */
const char *sbx_json_string(struct json_object *o, const char *key, const char *fallback);
int64_t sbx_json_int(struct json_object *o, const char *key, int64_t fallback);
bool sbx_json_bool(struct json_object *o, const char *key, bool fallback);
struct json_object *sbx_json_member(struct json_object *o, const char *key); /* borrowed or NULL */

/* Adders that ignore nothing: abort on no memory, since a half-built answer must not go out. */
void sbx_json_add(
	struct json_object *o, const char *key, struct json_object *value); /* takes value */
void sbx_json_add_string(
	struct json_object *o, const char *key, const char *value); /* NULL: null */
/* size bytes; invalid UTF-8 is replaced by U+FFFD so that the text stays JSON. */
void sbx_json_add_bytes(struct json_object *o, const char *key, const void *data, size_t size);
void sbx_json_add_int(struct json_object *o, const char *key, int64_t value);
void sbx_json_add_double(struct json_object *o, const char *key, double value);
void sbx_json_add_bool(struct json_object *o, const char *key, bool value);
/* A path or file name: as a string when valid UTF-8, else with each bad byte as "\xNN" text. */
void sbx_json_add_path(struct json_object *o, const char *key, const char *path);

/* Compact text, slashes not escaped. Lives as long as o. */
const char *sbx_json_text(struct json_object *o, size_t *ret_size);

#endif
