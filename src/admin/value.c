/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "show.h"

static int escape(struct sbx_buf *out, unsigned int c)
{
	switch (c) {
	case '\n':
		return sbx_buf_append(out, "\\n", 2);
	case '\t':
		return sbx_buf_append(out, "\\t", 2);
	default:
		return sbx_buf_printf(out, c < 0x80 ? "\\x%02x" : "\\u%04x", c);
	}
}

/* The control character that text begins with and its bytes; 0 bytes when it is none. */
static size_t control_at(const char *text, size_t size, unsigned int *ret_c)
{
	unsigned char c = (unsigned char)text[0];

	*ret_c = c;
	if (c < 0x20 || c == 0x7f)
		return 1;
	if (c != 0xc2 || size < 2 || (unsigned char)text[1] < 0x80 || (unsigned char)text[1] > 0x9f)
		return 0;
	*ret_c = (unsigned char)text[1];
	return 2;
}

static int show_except(struct sbx_buf *out, const char *text, size_t size, const char *keep)
{
	size_t from = 0, at = 0;
	int r = 0;

	while (r == 0 && at < size) {
		unsigned int c;
		size_t n = control_at(text + at, size - at, &c);

		if (n == 0 || (c && strchr(keep, (int)c))) {
			at++;
			continue;
		}
		r = sbx_buf_append(out, text + from, at - from);
		if (r == 0)
			r = escape(out, c);
		at += n;
		from = at;
	}
	return r < 0 ? r : sbx_buf_append(out, text + from, size - from);
}

int sbx_show_text(struct sbx_buf *out, const char *text, size_t size)
{
	return show_except(out, text, size, "");
}

int sbx_show_lines(struct sbx_buf *out, const char *text, size_t size)
{
	return show_except(out, text, size, "\n\t");
}

int sbx_value_bytes(struct sbx_buf *out, uint64_t n_bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double n = (double)n_bytes;
	size_t unit = 0;

	for (; n >= 1023.95 && unit + 1 < SBX_N_ELEMENTS(units); unit++)
		n /= 1024;
	return sbx_buf_printf(out, "%.*f %s", unit == 0 || n >= 99.95 ? 0 : 1, n, units[unit]);
}

static int show_bytes(struct sbx_buf *out, struct json_object *value)
{
	return sbx_value_bytes(out, (uint64_t)json_object_get_int64(value));
}

static int show_time(struct sbx_buf *out, struct json_object *value)
{
	int64_t ns = json_object_get_int64(value);
	time_t seconds = (time_t)(ns / (int64_t)SBX_NSEC_PER_SEC);
	char text[64];
	struct tm tm;

	if (ns == 0)
		return sbx_buf_append(out, "-", 1);
	if (!localtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		return sbx_buf_printf(out, "%jd ns", (intmax_t)ns);
	return sbx_buf_append_string(out, text);
}

static int show_seconds(struct sbx_buf *out, struct json_object *value)
{
	return sbx_buf_printf(out, "%.3f s", json_object_get_double(value));
}

static int show_mode(struct sbx_buf *out, struct json_object *value)
{
	return sbx_buf_printf(out, "%04o", (unsigned int)json_object_get_int64(value) & 07777);
}

static int show_limit_bytes(struct sbx_buf *out, struct json_object *value)
{
	return json_object_get_int64(value) ? show_bytes(out, value)
					    : sbx_buf_append_string(out, "default");
}

static int show_limit(struct sbx_buf *out, struct json_object *value)
{
	int64_t n = json_object_get_int64(value);

	return n ? sbx_buf_printf(out, "%jd", (intmax_t)n) : sbx_buf_append_string(out, "default");
}

static int show_cores(struct sbx_buf *out, struct json_object *value)
{
	int64_t n = json_object_get_int64(value);

	return n ? sbx_buf_printf(out, "%jd.%02jd cores", (intmax_t)(n / 100), (intmax_t)(n % 100))
		 : sbx_buf_append_string(out, "no limit");
}

static int show_disk(struct sbx_buf *out, struct json_object *value)
{
	return json_object_get_int64(value) ? show_bytes(out, value)
					    : sbx_buf_append_string(out, "no limit");
}

static int show_inodes(struct sbx_buf *out, struct json_object *value)
{
	return json_object_get_int64(value) ? show_limit(out, value)
					    : sbx_buf_append_string(out, "no limit");
}

/* Numbers only; the first pattern that fits the name counts. */
static const struct form {
	const char *pattern;
	int (*show)(struct sbx_buf *out, struct json_object *value);
	bool text;
} forms[] = {
	{"*_ns", show_time, true},
	{"memory_max", show_limit_bytes, false},
	{"history_max", show_limit_bytes, false},
	{"pids_max", show_limit, false},
	{"cpu_max", show_cores, false},
	{"disk_max", show_disk, false},
	{"inodes_max", show_inodes, false},
	{"bytes", show_bytes, false},
	{"*_bytes", show_bytes, false},
	{"size", show_bytes, false},
	{"*_seconds", show_seconds, false},
	{"mode", show_mode, true},
};

static const struct form *form_of(const char *key)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(forms); i++)
		if (fnmatch(forms[i].pattern, key, 0) == 0)
			return &forms[i];
	return NULL;
}

bool sbx_value_is_text(const char *key)
{
	const struct form *form = form_of(key);

	return form && form->text;
}

/* {"start_line": 3, "line_count": 2}: "3-4"; no lines: "before 3". */
static int show_range(struct sbx_buf *out, struct json_object *range)
{
	intmax_t first = sbx_json_int(range, "start_line", 0);
	intmax_t count = sbx_json_int(range, "line_count", 0);

	if (count == 1)
		return sbx_buf_printf(out, "%jd", first);
	if (count == 0)
		return sbx_buf_printf(out, "before %jd", first);
	return sbx_buf_printf(out, "%jd-%jd", first, first + count - 1);
}

static int show_object(struct sbx_buf *out, struct json_object *object)
{
	const char *text;
	size_t size;

	if (json_object_object_length(object) == 2 && sbx_json_member(object, "start_line") &&
		sbx_json_member(object, "line_count"))
		return show_range(out, object);
	text = sbx_json_text(object, &size);
	return sbx_show_text(out, text, size);
}

/* With commas between. */
static int show_array(struct sbx_buf *out, const char *key, struct json_object *array)
{
	int r = 0;

	if (json_object_array_length(array) == 0)
		return sbx_buf_append(out, "-", 1);
	for (size_t i = 0; r == 0 && i < json_object_array_length(array); i++) {
		if (i)
			r = sbx_buf_append(out, ", ", 2);
		if (r == 0)
			r = sbx_show_value(out, key, json_object_array_get_idx(array, i));
	}
	return r;
}

int sbx_show_value(struct sbx_buf *out, const char *key, struct json_object *value)
{
	const struct form *form = form_of(key);

	switch (json_object_get_type(value)) {
	case json_type_null:
		return sbx_buf_append(out, "-", 1);
	case json_type_boolean:
		return sbx_buf_append_string(out, json_object_get_boolean(value) ? "yes" : "no");
	case json_type_int:
	case json_type_double:
		if (form)
			return form->show(out, value);
		return sbx_buf_append_string(out, json_object_get_string(value));
	case json_type_string:
		return sbx_show_text(out, json_object_get_string(value),
			(size_t)json_object_get_string_len(value));
	case json_type_array:
		return show_array(out, key, value);
	default:
		return show_object(out, value);
	}
}
