/* SPDX-License-Identifier: MIT */
/*
 * The command line. Verbs are one word or two; options stand anywhere after them, as "--at 3",
 * "--at=3" or a letter; "--" ends the options. Values end up as members of the object that the
 * operation takes, so that nothing translates them again.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sbx/network.h"
#include "sbx/word.h"

#include "verb.h"

struct parser {
	int argc;
	char *const *argv;
	int at; /* the next word */
	const char *cwd;
	struct call *call;
	const struct param *position; /* the next parameter that is not an option */
	bool options_ended;
};

void sbx_admin_call_done(struct call *call)
{
	sbx_json_put(&call->args);
}

static int usage(struct sbx_err *err, const struct call *call, const char *what)
{
	SBX_BUF struct sbx_buf synopsis = SBX_BUF_INIT;

	if (!call->verb || sbx_admin_synopsis(call->verb, &synopsis) < 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"%s; 'sbx-admin --help' lists the verbs", what);
	return sbx_err_kind(
		err, SBX_KIND_INVALID, EINVAL, "%s; usage: sbx-admin %s", what, synopsis.data);
}

static int refuse(struct sbx_err *err, const struct call *call, const char *fmt, ...)
	SBX_PRINTF(3, 4);
static int refuse(struct sbx_err *err, const struct call *call, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap); /* cut when a word is that long */
	va_end(ap);
	return usage(err, call, what);
}

/* Digits only: no sign, no blank, no overflow. Moves *text behind them. */
static bool parse_digits(const char **text, uint64_t *ret)
{
	uint64_t n = 0;
	const char *p = *text;

	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(n, 10u, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*p - '0'), &n) || n > INT64_MAX)
			return false;
	if (p == *text)
		return false;
	*text = p;
	*ret = n;
	return true;
}

static bool parse_count(const char *text, uint64_t *ret)
{
	return parse_digits(&text, ret) && !*text && *ret > 0;
}

static bool parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t n;

	if (!parse_digits(&text, &n))
		return false;
	if (*text) {
		unit = strchr(units, toupper((unsigned char)*text));
		if (!unit ||
			__builtin_mul_overflow(n, UINT64_C(1) << (10 * (unit - units + 1)), &n))
			return false;
		text += 1;
		if (!strcmp(text, "iB"))
			text += 2;
	}
	*ret = n;
	return !*text && n > 0 && n <= INT64_MAX;
}

/* "2", "0.5", "1.25": hundredths. */
static bool parse_cores(const char *text, uint64_t *ret)
{
	uint64_t whole, part = 0;

	if (!parse_digits(&text, &whole) || whole > 100000)
		return false;
	if (*text == '.') {
		const char *start = ++text;

		if (!parse_digits(&text, &part) || text - start > 2)
			return false;
		if (text - start == 1)
			part *= 10;
	}
	*ret = whole * 100 + part;
	return !*text && *ret > 0;
}

static bool is_choice(const char *choices, const char *text)
{
	size_t size = strlen(text);

	for (; choices; choices = strchr(choices, '|') ? strchr(choices, '|') + 1 : NULL)
		if (size && strcspn(choices, "|") == size && !strncmp(choices, text, size))
			return true;
	return false;
}

/* "3", "3..7", "3..": false when it is nothing like it, so that it may be a path. */
static bool parse_versions(const char *text, uint64_t *ret_from, uint64_t *ret_to)
{
	*ret_to = 0;
	if (!parse_digits(&text, ret_from) || *ret_from == 0)
		return false;
	if (!*text)
		return true;
	if (strncmp(text, "..", 2) != 0)
		return false;
	text += 2;
	return !*text || (parse_digits(&text, ret_to) && !*text && *ret_to > 0);
}

static int add_path(const struct parser *parser, const struct param *param, const char *text)
{
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	int r = 0;

	if (text[0] != '/')
		r = sbx_buf_printf(&path, "%s/", strcmp(parser->cwd, "/") ? parser->cwd : "");
	if (r == 0)
		r = sbx_buf_append_string(&path, text);
	if (r == 0)
		sbx_json_add_string(parser->call->args, param->key, path.data);
	return r;
}

static int add_number(const struct parser *parser, const struct param *param, const char *text,
	bool (*parse)(const char *text, uint64_t *ret), const char *expected, struct sbx_err *err)
{
	uint64_t n;

	if (!parse(text, &n))
		return refuse(
			err, parser->call, "%s takes %s, not '%s'", param->name, expected, text);
	sbx_json_add_int(parser->call->args, param->key, (int64_t)n);
	return 0;
}

static int add_versions(const struct parser *parser, const char *text)
{
	uint64_t from, to;

	if (!parse_versions(text, &from, &to))
		return -EINVAL;
	sbx_json_add_int(parser->call->args, "from", (int64_t)from);
	if (to)
		sbx_json_add_int(parser->call->args, "to", (int64_t)to);
	return 0;
}

/* As it was written, once it is known to be right: so it is shown again. */
static int add_allow(const struct parser *parser, const struct param *param, const char *text,
	struct sbx_err *err)
{
	struct json_object *list = sbx_json_member(parser->call->args, param->key);
	struct sbx_allow allow;

	if (sbx_allow_parse(text, &allow, err) < 0)
		return refuse(err, parser->call, "%s %s", param->name, err->message);
	if (!list) {
		list = json_object_new_array();
		sbx_json_add(parser->call->args, param->key, list);
	}
	if (json_object_array_length(list) == SBX_ALLOW_MAX)
		return refuse(err, parser->call, "%s is given more than %d times", param->name,
			SBX_ALLOW_MAX);
	return json_object_array_add(list, json_object_new_string(text)) < 0 ? -ENOMEM : 0;
}

static int add_value(const struct parser *parser, const struct param *param, const char *text,
	struct sbx_err *err)
{
	if (!*text && param->type != PARAM_FLAG)
		return refuse(err, parser->call, "%s is empty", param->name);
	if (!sbx_utf8_valid(text, strlen(text)))
		return refuse(err, parser->call, "%s is not valid UTF-8", param->name);
	switch (param->type) {
	case PARAM_STRING:
		sbx_json_add_string(parser->call->args, param->key, text);
		return 0;
	case PARAM_PATH:
		return add_path(parser, param, text);
	case PARAM_ROOTFS:
		if (strcmp(text, "host") != 0)
			return add_path(parser, param, text);
		sbx_json_add_string(parser->call->args, param->key, text);
		return 0;
	case PARAM_COUNT:
		return add_number(parser, param, text, parse_count, "a number from 1", err);
	case PARAM_SIZE:
		return add_number(
			parser, param, text, parse_size, "a size such as 512M or 2G", err);
	case PARAM_CORES:
		return add_number(
			parser, param, text, parse_cores, "a number of cores such as 1.5", err);
	case PARAM_CHOICE:
		if (!is_choice(param->metavar, text))
			return refuse(err, parser->call, "%s takes %s, not '%s'", param->name,
				param->metavar, text);
		sbx_json_add_string(parser->call->args, param->key, text);
		return 0;
	case PARAM_FLAG:
		sbx_json_add_bool(parser->call->args, param->key, true);
		return 0;
	case PARAM_ALLOW:
		return add_allow(parser, param, text, err);
	case PARAM_VERSIONS:
		return add_versions(parser, text);
	}
	return -EINVAL;
}

static bool is_option(const struct param *param)
{
	return param->name[0] == '-';
}

static const struct param *find_option(const struct verb *verb, const char *name, size_t size)
{
	for (const struct param *p = verb->params; p->name; p++) {
		if (!is_option(p))
			continue;
		if (strlen(p->name) == size && !strncmp(p->name, name, size))
			return p;
		if (p->letter && size == 2 && name[0] == '-' && name[1] == p->letter)
			return p;
	}
	return NULL;
}

static int unknown_option(const struct parser *parser, const char *word, struct sbx_err *err)
{
	size_t size = strcspn(word, "="), best = sbx_word_distance_max(word) + 1;
	const struct param *meant = NULL;

	for (const struct param *p = parser->call->verb->params; p->name; p++) {
		size_t distance = is_option(p) ? sbx_word_distance(word, p->name) : SIZE_MAX;

		if (distance < best) {
			best = distance;
			meant = p;
		}
	}
	if (meant)
		return refuse(err, parser->call, "unknown option '%.*s', did you mean '%s'?",
			(int)size, word, meant->name);
	return refuse(err, parser->call, "unknown option '%.*s'", (int)size, word);
}

/* Options that every verb has. */
static bool take_common_option(struct parser *parser, const char *word)
{
	if (!strcmp(word, "--json"))
		parser->call->json = true;
	else if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		parser->call->help = true;
	else
		return false;
	return true;
}

static int take_option(struct parser *parser, const char *word, struct sbx_err *err)
{
	const char *value = strchr(word, '=');
	const struct param *param = find_option(
		parser->call->verb, word, value ? (size_t)(value - word) : strlen(word));

	if (!param)
		return unknown_option(parser, word, err);
	if (!param->metavar) {
		if (value)
			return refuse(err, parser->call, "%s takes no value", param->name);
		return add_value(parser, param, "", err);
	}
	if (param->type != PARAM_ALLOW && sbx_json_member(parser->call->args, param->key))
		return refuse(err, parser->call, "%s is given twice", param->name);
	if (value)
		return add_value(parser, param, value + 1, err);
	if (parser->at >= parser->argc)
		return refuse(err, parser->call, "%s needs %s", param->name, param->metavar);
	return add_value(parser, param, parser->argv[parser->at++], err);
}

/* Moves to the next parameter that is not an option. */
static void skip_options(struct parser *parser)
{
	while (parser->position->name && is_option(parser->position))
		parser->position++;
}

static int take_position(struct parser *parser, const char *word, struct sbx_err *err)
{
	skip_options(parser);
	while (parser->position->type == PARAM_VERSIONS && parser->position->name &&
		add_versions(parser, word) < 0) {
		parser->position++;
		skip_options(parser);
	}
	if (!parser->position->name)
		return refuse(err, parser->call, "too many arguments at '%s'", word);
	/* Versions have been added by looking at them. */
	if (parser->position->type == PARAM_VERSIONS) {
		parser->position++;
		return 0;
	}
	return add_value(parser, parser->position++, word, err);
}

static int check_required(const struct parser *parser, struct sbx_err *err)
{
	for (const struct param *p = parser->call->verb->params; p->name; p++)
		if ((p->flags & PARAM_REQUIRED) && !sbx_json_member(parser->call->args, p->key))
			return refuse(err, parser->call, "%s is missing", p->name);
	return 0;
}

static int parse_params(struct parser *parser, struct sbx_err *err)
{
	int r = 0;

	parser->position = parser->call->verb->params;
	while (r == 0 && parser->at < parser->argc) {
		const char *word = parser->argv[parser->at++];

		if (parser->options_ended || word[0] != '-' || !word[1])
			r = take_position(parser, word, err);
		else if (!strcmp(word, "--"))
			parser->options_ended = true;
		else if (!take_common_option(parser, word))
			r = take_option(parser, word, err);
	}
	if (r < 0 || parser->call->help)
		return parser->call->help ? 0 : r;
	return check_required(parser, err);
}

static const struct verb *find_verb(const char *first, const char *second)
{
	for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++) {
		size_t n = strcspn(verb->name, " ");

		if (strlen(first) != n || strncmp(verb->name, first, n) != 0)
			continue;
		if (!verb->name[n] || (second && !strcmp(verb->name + n + 1, second)))
			return verb;
	}
	return NULL;
}

static bool is_group(const char *word)
{
	for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++) {
		size_t n = strcspn(verb->name, " ");

		if (verb->name[n] && strlen(word) == n && !strncmp(verb->name, word, n))
			return true;
	}
	return false;
}

/* The verb that was probably meant: one word is compared with one word, two with two. */
static const struct verb *closest_verb(const char *first, const char *second)
{
	const struct verb *found = NULL;
	char both[2 * SBX_WORD_MAX + 2];
	size_t best = SIZE_MAX;

	(void)snprintf(both, sizeof(both), "%s %s", first, second ? second : ""); /* cut if long */
	for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++) {
		const char *given = strchr(verb->name, ' ') ? both : first;
		size_t distance = sbx_word_distance(given, verb->name);

		if (distance < best && distance <= sbx_word_distance_max(given)) {
			best = distance;
			found = verb;
		}
	}
	return found;
}

static int unknown_verb(const char *first, const char *second, struct sbx_err *err)
{
	const struct verb *meant = closest_verb(first, second);
	bool two = is_group(first) && second;

	if (meant)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"unknown verb '%s%s%s', did you mean '%s'?", first, two ? " " : "",
			two ? second : "", meant->name);
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
		"unknown verb '%s%s%s'; 'sbx-admin --help' lists the verbs", first, two ? " " : "",
		two ? second : "");
}

/* Finds the verb and moves behind its words; or notes what help is asked for. */
static int parse_verb(struct parser *parser, struct sbx_err *err)
{
	const char *first, *second;

	while (parser->at < parser->argc && take_common_option(parser, parser->argv[parser->at]))
		parser->at++;
	if (parser->at >= parser->argc)
		return parser->call->help ? 0 : usage(err, parser->call, "a verb is missing");
	first = parser->argv[parser->at++];
	if (!strcmp(first, "help")) {
		parser->call->help = true;
		if (parser->at >= parser->argc)
			return 0;
		first = parser->argv[parser->at++];
	}
	second = parser->at < parser->argc ? parser->argv[parser->at] : NULL;
	parser->call->verb = find_verb(first, second);
	if (parser->call->verb) {
		parser->at += strchr(parser->call->verb->name, ' ') != NULL;
		return 0;
	}
	if (is_group(first) && (!second || take_common_option(parser, second))) {
		parser->call->group = first;
		if (parser->call->help)
			return 0;
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"'%s' needs a second word; 'sbx-admin %s --help' lists them", first, first);
	}
	return unknown_verb(first, second, err);
}

int sbx_admin_parse(
	int argc, char *const argv[], const char *cwd, struct call *ret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
	struct parser parser = {.argc = argc, .argv = argv, .at = 1, .cwd = cwd, .call = &call};
	int r;

	call.args = json_object_new_object();
	if (!call.args)
		return sbx_err_set(err, ENOMEM, "parse the arguments: %m");
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		call.version = true;
		r = 0;
	} else {
		r = parse_verb(&parser, err);
	}
	if (r == 0 && call.verb)
		r = parse_params(&parser, err);
	if (r < 0) {
		ret->json = call.json; /* so that the refusal is in the form asked for */
		return r;
	}
	*ret = call;
	call.args = NULL;
	return 0;
}
