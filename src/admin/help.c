/* SPDX-License-Identifier: MIT */
/* Help is made from the table of verbs, so that it says what the parser does. */
#include <string.h>

#include "table.h"
#include "verb.h"

#define USAGE        "usage: sbx-admin "
#define USAGE_INDENT "       "
#define USAGE_WIDTH  80

static bool is_option(const struct param *param)
{
	return param->name[0] == '-';
}

static int param_synopsis(const struct param *param, struct sbx_buf *out)
{
	bool optional = !(param->flags & PARAM_REQUIRED);

	return sbx_buf_printf(out, " %s%s%s%s%s", optional ? "[" : "", param->name,
		param->metavar ? " " : "", param->metavar ? param->metavar : "",
		optional ? "]" : "");
}

/* What is given by its place comes before the options. */
int sbx_admin_synopsis(const struct verb *verb, struct sbx_buf *out)
{
	int r = sbx_buf_append_string(out, verb->name);

	for (int options = 0; options < 2; options++)
		for (const struct param *p = verb->params; r == 0 && p->name; p++)
			if (is_option(p) == (options == 1))
				r = param_synopsis(p, out);
	return r;
}

static int add_param(struct table *table, const struct param *param)
{
	SBX_BUF struct sbx_buf name = SBX_BUF_INIT;
	int r = sbx_buf_append_string(&name, "  ");

	if (r == 0 && param->letter)
		r = sbx_buf_printf(&name, "-%c, ", param->letter);
	if (r == 0)
		r = sbx_buf_printf(&name, "%s%s%s", param->name, param->metavar ? " " : "",
			param->metavar ? param->metavar : "");
	if (r == 0)
		r = sbx_table_add(table, &name);
	return r < 0 ? r : sbx_table_add_string(table, param->help);
}

static int help_params(const struct verb *verb, struct sbx_buf *out)
{
	static const struct param common[] = {
		{.name = "--json", .help = "print the result as one JSON object"},
		{.name = "--help", .help = "show this text", .letter = 'h'},
		{.name = NULL},
	};
	TABLE struct table table;
	int r = 0;

	sbx_table_init(&table, 2);
	for (const struct param *p = verb->params; r == 0 && p->name; p++)
		r = add_param(&table, p);
	for (const struct param *p = common; r == 0 && p->name; p++)
		r = add_param(&table, p);
	return r < 0 ? r : sbx_table_print(&table, out);
}

/* The size of what begins text and stays on one line: up to the next option. */
static size_t piece_size(const char *text)
{
	size_t n = 1;

	while (text[n] && (text[n] != ' ' || (text[n + 1] != '[' && text[n + 1] != '-')))
		n++;
	return n;
}

static int add_usage(const struct verb *verb, struct sbx_buf *out)
{
	SBX_BUF struct sbx_buf synopsis = SBX_BUF_INIT;
	size_t column = strlen(USAGE);
	int r = sbx_buf_append_string(out, USAGE);

	if (r == 0)
		r = sbx_admin_synopsis(verb, &synopsis);
	for (const char *at = synopsis.data; r == 0 && at && *at;) {
		size_t size = piece_size(at);

		if (column + size > USAGE_WIDTH) {
			r = sbx_buf_append_string(out, "\n" USAGE_INDENT);
			column = strlen(USAGE_INDENT);
		}
		if (r == 0)
			r = sbx_buf_append(out, at, size);
		column += size;
		at += size;
	}
	return r;
}

static int help_verb(const struct verb *verb, struct sbx_buf *out)
{
	int r = add_usage(verb, out);

	if (r == 0)
		r = sbx_buf_printf(out, "\n\n%s\n\n", verb->summary);
	if (r == 0)
		r = help_params(verb, out);
	if (r == 0 && verb->notes)
		r = sbx_buf_printf(out, "\n%s\n", verb->notes);
	if (r == 0)
		r = sbx_buf_printf(out, "\nexample: sbx-admin %s\n", verb->example);
	return r;
}

static int help_list(const char *group, struct sbx_buf *out)
{
	TABLE struct table table;
	size_t n = group ? strlen(group) : 0;
	int r = 0;

	sbx_table_init(&table, 2);
	for (const struct verb *verb = sbx_admin_verbs; r == 0 && verb->name; verb++) {
		SBX_BUF struct sbx_buf synopsis = SBX_BUF_INIT;

		if (group && (strncmp(verb->name, group, n) != 0 || verb->name[n] != ' '))
			continue;
		r = sbx_buf_printf(&synopsis, "  %s", verb->name);
		if (r == 0)
			r = sbx_table_add(&table, &synopsis);
		if (r == 0)
			r = sbx_table_add_string(&table, verb->summary);
	}
	return r < 0 ? r : sbx_table_print(&table, out);
}

int sbx_admin_help(const struct verb *verb, const char *group, struct sbx_buf *out)
{
	int r;

	if (verb)
		return help_verb(verb, out);
	r = sbx_buf_printf(out, "usage: sbx-admin %s%s...\n\n", group ? group : "VERB",
		group ? " VERB " : " ");
	if (r == 0)
		r = help_list(group, out);
	if (r == 0)
		r = sbx_buf_append_string(out,
			"\n'sbx-admin VERB --help' explains one verb. Every verb takes --json.\n"
			"SBX_STATE_DIR names the state directory (default: /var/lib/sbx for "
			"root).\n");
	return r;
}
