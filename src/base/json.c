/* SPDX-License-Identifier: MIT */
#include "sbx/json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define POSITION_SIZE 64

static size_t skip_digits(const char *text, size_t size, size_t at)
{
	while (at < size && text[at] >= '0' && text[at] <= '9')
		at++;
	return at;
}

/* RFC 8259: [-] (0 | 1-9 digits) [. digits] [e [+-] digits]. True when all of it is one. */
static bool is_number(const char *text, size_t size)
{
	size_t at = size > 0 && text[0] == '-', end = skip_digits(text, size, at);

	if (end == at || (text[at] == '0' && end > at + 1))
		return false;
	if (end < size && text[end] == '.') {
		at = end + 1;
		end = skip_digits(text, size, at);
		if (end == at)
			return false;
	}
	if (end < size && (text[end] == 'e' || text[end] == 'E')) {
		at = end + 1;
		at += at < size && (text[at] == '+' || text[at] == '-');
		end = skip_digits(text, size, at);
		if (end == at)
			return false;
	}
	return end == size;
}

/* What stands outside strings and between the marks: a number or one of the three names. */
static bool is_word(const char *text, size_t size)
{
	return is_number(text, size) || (size == 4 && !memcmp(text, "true", size)) ||
	       (size == 5 && !memcmp(text, "false", size)) ||
	       (size == 4 && !memcmp(text, "null", size));
}

static size_t skip_word(const char *text, size_t size, size_t at)
{
	while (at < size && !strchr(" \t\r\n{}[]:,\"", text[at]))
		at++; /* strchr() finds the NUL, too */
	return at;
}

/* json-c 0.16 takes raw control characters inside strings and, outside them, comments, NaN,
 * Infinity and numbers like "1." and "-01"; RFC 8259 takes none. Returns the offset of the first
 * offence, or -1. */
static ssize_t find_lexical_error(const char *text, size_t size)
{
	bool in_string = false;

	for (size_t i = 0, end; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (in_string) {
			if (c < 0x20)
				return (ssize_t)i;
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (!strchr(" \t\r\n{}[]:,", (int)c) || c == '\0') {
			end = skip_word(text, size, i);
			if (!is_word(text + i, end - i))
				return (ssize_t)i;
			i = end - 1;
		}
	}
	return -1;
}

static size_t skip_space(const char *text, size_t size, size_t at)
{
	while (at < size && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	return at;
}

/* "byte 7", and in a text of several lines also where that is for people. */
static const char *position(const char *text, size_t at, char ret[static POSITION_SIZE])
{
	size_t line = 1;

	for (const char *p = text; (p = memchr(p, '\n', at - (size_t)(p - text))); p++)
		line++;
	(void)snprintf(ret, POSITION_SIZE, line > 1 ? "byte %zu, line %zu" : "byte %zu", at, line);
	return ret;
}

static int parse_checked(const char *text, size_t size, struct json_object **ret,
	struct json_tokener *tokener, struct sbx_err *err)
{
	enum json_tokener_error error;
	SBX_JSON struct json_object *object = NULL;
	char where[POSITION_SIZE];
	size_t end;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
	object = json_tokener_parse_ex(tokener, text, (int)size);
	error = json_tokener_get_error(tokener);
	if (error == json_tokener_continue) {
		/* a number or literal at the very end is complete only when more is ruled out */
		object = json_tokener_parse_ex(tokener, " ", 1);
		error = json_tokener_get_error(tokener);
		end = size;
	} else {
		end = json_tokener_get_parse_end(tokener);
	}
	if (error == json_tokener_continue)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "JSON ends too early");
	if (error != json_tokener_success)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "not JSON: %s at %s",
			json_tokener_error_desc(error), position(text, end, where));
	end = skip_space(text, size, end);
	if (end < size)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"more text after the JSON value at %s", position(text, end, where));
	*ret = sbx_take(&object);
	return 0;
}

int sbx_json_parse(const char *text, size_t size, struct json_object **ret, struct sbx_err *err)
{
	struct json_tokener *tokener;
	char where[POSITION_SIZE];
	ssize_t at;
	int r;

	if (size > INT_MAX)
		return sbx_err_kind(
			err, SBX_KIND_INVALID, EFBIG, "JSON text of %zu bytes is too long", size);
	if (!sbx_utf8_valid(text, size))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "JSON text is not valid UTF-8");
	at = find_lexical_error(text, size);
	if (at >= 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "not JSON: byte 0x%02x at %s",
			(unsigned char)text[at], position(text, (size_t)at, where));
	if (skip_space(text, size, 0) == size)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "JSON text is empty");
	tokener = json_tokener_new_ex(SBX_JSON_DEPTH_MAX);
	if (!tokener)
		return sbx_err_set(err, ENOMEM, "parse JSON: no memory");
	r = parse_checked(text, size, ret, tokener, err);
	json_tokener_free(tokener);
	return r;
}

struct json_object *sbx_json_member(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	if (!json_object_is_type(o, json_type_object))
		return NULL;
	(void)json_object_object_get_ex(o, key, &value); /* absent leaves NULL */
	return value;
}

const char *sbx_json_string(struct json_object *o, const char *key, const char *fallback)
{
	struct json_object *value = sbx_json_member(o, key);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value)
							    : fallback;
}

int64_t sbx_json_int(struct json_object *o, const char *key, int64_t fallback)
{
	struct json_object *value = sbx_json_member(o, key);

	return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : fallback;
}

bool sbx_json_bool(struct json_object *o, const char *key, bool fallback)
{
	struct json_object *value = sbx_json_member(o, key);

	return json_object_is_type(value, json_type_boolean) ? json_object_get_boolean(value)
							     : fallback;
}

void sbx_json_add(struct json_object *o, const char *key, struct json_object *value)
{
	if (json_object_object_add(o, key, value) < 0)
		abort();
}

static struct json_object *checked(struct json_object *value)
{
	if (!value)
		abort();
	return value;
}

void sbx_json_add_string(struct json_object *o, const char *key, const char *value)
{
	if (!value)
		sbx_json_add(o, key, NULL);
	else
		sbx_json_add_bytes(o, key, value, strlen(value));
}

void sbx_json_add_int(struct json_object *o, const char *key, int64_t value)
{
	sbx_json_add(o, key, checked(json_object_new_int64(value)));
}

void sbx_json_add_double(struct json_object *o, const char *key, double value)
{
	char text[32];

	/* json-c prints 17 digits, which turns 0.1 into 0.10000000000000001 */
	(void)snprintf(text, sizeof(text), "%.6f", value);
	sbx_json_add(o, key, checked(json_object_new_double_s(value, text)));
}

void sbx_json_add_bool(struct json_object *o, const char *key, bool value)
{
	sbx_json_add(o, key, checked(json_object_new_boolean(value)));
}

static size_t valid_prefix(const unsigned char *p, size_t size)
{
	size_t n = 1;

	if (p[0] < 0x80)
		return 1;
	for (n = 2; n <= 4 && n <= size; n++)
		if (sbx_utf8_valid(p, n))
			return n;
	return 0;
}

enum repair { REPLACE, ESCAPE };

/* Copies text; each byte that is not part of a valid character is replaced or escaped. */
static void append_repaired(
	struct sbx_buf *out, const unsigned char *p, size_t size, enum repair repair)
{
	int r = 0;

	for (size_t i = 0; i < size && r == 0;) {
		size_t n = valid_prefix(p + i, size - i);

		if (n > 0)
			r = sbx_buf_append(out, p + i, n);
		else if (repair == ESCAPE)
			r = sbx_buf_printf(out, "\\x%02X", p[i]);
		else
			r = sbx_buf_append_string(out, "\xef\xbf\xbd"); /* U+FFFD */
		i += SBX_MAX(n, (size_t)1);
	}
	if (r < 0)
		abort();
}

static void add_repaired(
	struct json_object *o, const char *key, const void *data, size_t size, enum repair repair)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	if (size > INT_MAX)
		abort(); /* every caller has a limit far below */
	if (sbx_utf8_valid(data, size)) {
		sbx_json_add(o, key, checked(json_object_new_string_len(data, (int)size)));
		return;
	}
	append_repaired(&text, data, size, repair);
	sbx_json_add(o, key, checked(json_object_new_string_len(text.data, (int)text.size)));
}

void sbx_json_add_bytes(struct json_object *o, const char *key, const void *data, size_t size)
{
	add_repaired(o, key, data, size, REPLACE);
}

void sbx_json_add_path(struct json_object *o, const char *key, const char *path)
{
	add_repaired(o, key, path, strlen(path), ESCAPE);
}

const char *sbx_json_text(struct json_object *o, size_t *ret_size)
{
	const char *text = json_object_to_json_string_length(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, ret_size);

	if (!text)
		abort();
	return text;
}
