/* SPDX-License-Identifier: MIT */
/*
 * Checks arguments against an operation's table. One rule for everybody: integers may come as
 * 1000.0 but not as "1000", text is never made from something else, null means absent. Each
 * refusal names the argument, what was expected and what came.
 */
#include "sbx/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sbx/word.h"

#include "answer.h"

#define SHOWN_MAX 48 /* bytes of a caller's text that a message repeats */

/* What is being checked: the arguments of an op, or one element of one of them. */
struct subject {
	const char *what;  /* "file_read", "an edit": who takes the arguments */
	const char *where; /* before each argument's name: "", "edits[2]." */
	const struct sbx_arg *args;
};

static const struct sbx_arg edit_args[] = {
	{.name = "old_string", .type = SBX_ARG_STRING, .flags = SBX_ARG_REQUIRED | SBX_ARG_TEXT},
	{.name = "new_string", .type = SBX_ARG_STRING, .flags = SBX_ARG_REQUIRED | SBX_ARG_TEXT},
	{.name = "replace_all", .type = SBX_ARG_BOOLEAN},
	{.name = NULL},
};

static const char *const expected[] = {
	[SBX_ARG_STRING] = "a string",
	[SBX_ARG_INTEGER] = "an integer",
	[SBX_ARG_BOOLEAN] = "true or false",
	[SBX_ARG_EDITS] = "an array of {old_string, new_string, replace_all?}",
};

/* What to do about a mix-up that real clients make; NULL: the expectation says it all. */
static const char *hint(enum sbx_arg_type type, enum json_type got)
{
	static const struct {
		enum sbx_arg_type type;
		enum json_type got;
		const char *text;
	} hints[] = {
		{SBX_ARG_STRING, json_type_object, "JSON text has to be passed as one string"},
		{SBX_ARG_STRING, json_type_array, "JSON text has to be passed as one string"},
		{SBX_ARG_INTEGER, json_type_string, "pass the number without quotes"},
		{SBX_ARG_BOOLEAN, json_type_string, "pass it without quotes"},
		{SBX_ARG_EDITS, json_type_string, "pass the array itself, not its JSON text"},
		{SBX_ARG_EDITS, json_type_object, "pass one edit as an array of one"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(hints); i++)
		if (hints[i].type == type && hints[i].got == got)
			return hints[i].text;
	return NULL;
}

#define DESCRIBED_SIZE (SHOWN_MAX + 32)

/* "the string \"5\"", "0.5", "an object", "null". */
static void describe(struct json_object *value, char ret[static DESCRIBED_SIZE])
{
	enum json_type type = json_object_get_type(value);
	const char *text = NULL;
	size_t size, n;

	if (type == json_type_object || type == json_type_array) {
		(void)snprintf(ret, DESCRIBED_SIZE, "an %s", json_type_to_name(type));
		return;
	}
	text = value ? json_object_get_string(value) : "null";
	size = strlen(text);
	n = sbx_answer_cut(text, size, SHOWN_MAX);
	(void)snprintf(ret, DESCRIBED_SIZE,
		type == json_type_string ? "the string \"%.*s%s\"" : "%.*s%s", (int)n, text,
		n < size ? "..." : "");
}

static int refuse_type(const struct subject *subject, const struct sbx_arg *arg,
	struct json_object *value, struct sbx_err *err)
{
	const char *advice = hint(arg->type, json_object_get_type(value));
	char got[DESCRIBED_SIZE];

	describe(value, got);
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
		"argument \"%s%s\": expected %s, got %s%s%s", subject->where, arg->name,
		expected[arg->type], got, advice ? "; " : "", advice ? advice : "");
}

static int refuse_range(const struct subject *subject, const struct sbx_arg *arg,
	struct json_object *value, struct sbx_err *err)
{
	char got[DESCRIBED_SIZE];

	describe(value, got);
	return sbx_err_kind(err, SBX_KIND_INVALID, ERANGE,
		"argument \"%s%s\": expected an integer from %lld to %lld, got %s", subject->where,
		arg->name, (long long)arg->minimum, (long long)arg->maximum, got);
}

static int check_string(const struct subject *subject, const struct sbx_arg *arg,
	struct json_object *value, struct sbx_err *err)
{
	const char *text = json_object_get_string(value);
	size_t size = (size_t)json_object_get_string_len(value);
	size_t plain = strlen(text);

	if (plain == size || arg->flags & SBX_ARG_TEXT)
		return 0;
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
		"argument \"%s%s\" holds a NUL character after %zu bytes; only file contents and "
		"terminal input may",
		subject->where, arg->name, plain);
}

/* The integer that a JSON number stands for. -EINVAL: not whole; -ERANGE: beyond 64 bits. */
static int whole_number(struct json_object *value, int64_t *ret)
{
	double d;

	if (json_object_is_type(value, json_type_int)) {
		/* json-c keeps what is above INT64_MAX as unsigned and would clamp it silently */
		if (json_object_get_int64(value) == INT64_MAX &&
			json_object_get_uint64(value) > (uint64_t)INT64_MAX)
			return -ERANGE;
		*ret = json_object_get_int64(value);
		return 0;
	}
	d = json_object_get_double(value);
	if (d != trunc(d))
		return -EINVAL;
	if (!(d >= -0x1p63 && d < 0x1p63))
		return -ERANGE;
	*ret = (int64_t)d;
	return 0;
}

static int check_integer(const struct subject *subject, const struct sbx_arg *arg,
	struct json_object *args, struct json_object *value, struct sbx_err *err)
{
	int64_t n = 0;
	int r;

	if (!json_object_is_type(value, json_type_int) &&
		!json_object_is_type(value, json_type_double))
		return refuse_type(subject, arg, value, err);
	r = whole_number(value, &n);
	if (r == -EINVAL)
		return refuse_type(subject, arg, value, err);
	if (r < 0 || n < arg->minimum || n > arg->maximum)
		return refuse_range(subject, arg, value, err);
	if (json_object_is_type(value, json_type_double))
		sbx_json_add_int(args, arg->name, n);
	return 0;
}

static int check_object(
	const struct subject *subject, struct json_object *object, struct sbx_err *err);

static int check_edits(const struct sbx_arg *arg, struct json_object *edits, struct sbx_err *err)
{
	size_t n = json_object_array_length(edits);
	char where[SBX_WORD_MAX + 32];
	char got[DESCRIBED_SIZE];
	int r;

	for (size_t i = 0; i < n; i++) {
		struct json_object *edit = json_object_array_get_idx(edits, i);
		struct subject subject = {"an edit", where, edit_args};

		(void)snprintf(where, sizeof(where), "%s[%zu].", arg->name, i);
		if (!json_object_is_type(edit, json_type_object)) {
			describe(edit, got);
			return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
				"argument \"%s[%zu]\": expected {old_string, new_string, "
				"replace_all?}, got %s",
				arg->name, i, got);
		}
		r = check_object(&subject, edit, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_value(const struct subject *subject, const struct sbx_arg *arg,
	struct json_object *args, struct json_object *value, struct sbx_err *err)
{
	static const enum json_type plain[] = {
		[SBX_ARG_STRING] = json_type_string,
		[SBX_ARG_BOOLEAN] = json_type_boolean,
		[SBX_ARG_EDITS] = json_type_array,
	};

	if (arg->type == SBX_ARG_INTEGER)
		return check_integer(subject, arg, args, value, err);
	if (!json_object_is_type(value, plain[arg->type]))
		return refuse_type(subject, arg, value, err);
	if (arg->type == SBX_ARG_STRING)
		return check_string(subject, arg, value, err);
	return arg->type == SBX_ARG_EDITS ? check_edits(arg, value, err) : 0;
}

/* "sandbox_id, path": those with all of flags. */
static void list_names(const struct sbx_arg *args, enum sbx_arg_flags flags, struct sbx_buf *ret)
{
	for (const struct sbx_arg *arg = args; arg->name; arg++)
		if ((arg->flags & flags) == flags)
			(void)sbx_buf_printf(ret, "%s%s", ret->size ? ", " : "", arg->name);
}

static int refuse_missing(
	const struct subject *subject, const struct sbx_arg *arg, bool null, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf names = SBX_BUF_INIT;

	list_names(subject->args, SBX_ARG_REQUIRED, &names);
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "argument \"%s%s\" %s; %s needs %s",
		subject->where, arg->name, null ? "is null" : "is missing", subject->what,
		names.data ? names.data : arg->name);
}

static int check_arg(const struct subject *subject, const struct sbx_arg *arg,
	struct json_object *args, struct sbx_err *err)
{
	struct json_object *value = NULL;
	bool given = json_object_object_get_ex(args, arg->name, &value);

	if (value)
		return check_value(subject, arg, args, value, err);
	if (arg->flags & SBX_ARG_REQUIRED)
		return refuse_missing(subject, arg, given, err);
	json_object_object_del(args, arg->name);
	if (arg->flags & SBX_ARG_HAS_DEFAULT)
		sbx_json_add_int(args, arg->name, arg->default_value);
	return 0;
}

/* The argument that key was probably meant to be. NULL: none. */
static const struct sbx_arg *closest(const struct sbx_arg *args, const char *key)
{
	const struct sbx_arg *found = NULL;
	size_t best = sbx_word_distance_max(key) + 1;

	for (const struct sbx_arg *arg = args; arg->name; arg++) {
		size_t d = sbx_word_distance(key, arg->name);

		if (d < best) {
			best = d;
			found = arg;
		}
	}
	return found;
}

static int refuse_unknown(const struct subject *subject, const char *key, struct sbx_err *err)
{
	const struct sbx_arg *meant = closest(subject->args, key);
	int n = (int)sbx_answer_cut(key, strlen(key), SHOWN_MAX);
	SBX_BUF struct sbx_buf names = SBX_BUF_INIT;

	if (meant)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"unknown argument \"%s%.*s\"; did you mean \"%s\"?", subject->where, n, key,
			meant->name);
	list_names(subject->args, 0, &names);
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
		"unknown argument \"%s%.*s\"; %s takes %s", subject->where, n, key, subject->what,
		names.data ? names.data : "no arguments");
}

static bool takes(const struct sbx_arg *args, const char *key)
{
	for (const struct sbx_arg *arg = args; arg->name; arg++)
		if (!strcmp(arg->name, key))
			return true;
	return false;
}

static int check_object(
	const struct subject *subject, struct json_object *object, struct sbx_err *err)
{
	int r;

	json_object_object_foreach (object, key, value) {
		(void)value;
		if (!takes(subject->args, key))
			return refuse_unknown(subject, key, err);
	}
	for (const struct sbx_arg *arg = subject->args; arg->name; arg++) {
		r = check_arg(subject, arg, object, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int sbx_op_check(const struct sbx_op *op, struct json_object *args, struct sbx_err *err)
{
	struct subject subject = {op->name, "", op->args};

	if (!json_object_is_type(args, json_type_object))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"the arguments of %s must be an object", op->name);
	return check_object(&subject, args, err);
}
