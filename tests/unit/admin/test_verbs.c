/* SPDX-License-Identifier: MIT */
/* The table of verbs against the table of operations and the contract. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sbx/op.h"

#include "../../../src/admin/verb.h"

static const struct verb *find(const char *name)
{
	for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++)
		if (!strcmp(verb->name, name))
			return verb;
	return NULL;
}

Test(verbs, every_verb_of_the_contract_is_there)
{
	static const char *const names[] = {"create", "list", "inspect", "destroy", "layers",
		"layer", "diff", "log", "blame", "cat", "ls", "session create", "session list",
		"session show", "session diff", "session publish", "session discard",
		"command list", "command show", "command tail", "command kill", "reject list",
		"reject show", "reject diff", "reject export", "reject retry", "reject drop",
		"squash", "gc", "verify", "stat", "export", "doctor"};
	size_t n = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		cr_expect(find(names[i]), "%s", names[i]);
	while (sbx_admin_verbs[n].name)
		n++;
	cr_expect_eq(n, SBX_N_ELEMENTS(names));
}

static const struct sbx_arg *find_arg(const struct sbx_op *op, const char *name)
{
	for (const struct sbx_arg *arg = op->args; arg->name; arg++)
		if (!strcmp(arg->name, name))
			return arg;
	return NULL;
}

static const struct param *find_param(const struct verb *verb, const char *key)
{
	for (const struct param *param = verb->params; param->name; param++)
		if (!strcmp(param->key, key))
			return param;
	return NULL;
}

Test(verbs, parameters_are_arguments_of_their_operation)
{
	for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++) {
		const struct sbx_op *op = verb->op ? sbx_op_find(verb->op) : NULL;

		if (!verb->op) {
			cr_expect(verb->run, "%s does nothing", verb->name);
			continue;
		}
		cr_assert(op, "%s: no operation %s", verb->name, verb->op);
		for (const struct param *param = verb->params; param->name; param++)
			cr_expect(find_arg(op, param->key), "%s: %s takes no %s", verb->name,
				verb->op, param->key);
		for (const struct sbx_arg *arg = op->args; arg->name; arg++) {
			const struct param *param = find_param(verb, arg->name);

			if (arg->flags & SBX_ARG_REQUIRED)
				cr_expect(param && (param->flags & PARAM_REQUIRED),
					"%s: %s is required", verb->name, arg->name);
		}
	}
}

Test(verbs, every_operation_for_people_has_a_verb)
{
	for (const struct sbx_op *op = sbx_ops; op->name; op++) {
		bool found = !(op->flags & SBX_OP_ADMIN) || !strcmp(op->name, "stop");

		for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++)
			found = found || (verb->op && !strcmp(verb->op, op->name));
		cr_expect(found, "%s", op->name); /* stop is what destroy asks for */
	}
}

/* Whether text has words in it, which may be broken into lines at their blanks. */
static bool holds_in_lines(const char *text, const char *words)
{
	for (; *text; text++) {
		const char *t = text, *w = words;

		while (*w && (*t == *w || (*t == '\n' && *w == ' '))) {
			t += *w == ' ' ? strspn(t, " \n") : 1;
			w++;
		}
		if (!*w)
			return true;
	}
	return false;
}

Test(verbs, help_shows_synopsis_options_and_an_example_that_parses)
{
	for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++) {
		SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
		SBX_BUF struct sbx_buf help = SBX_BUF_INIT, synopsis = SBX_BUF_INIT;
		struct sbx_err err = SBX_ERR_INIT;
		char example[256], *argv[16] = {example}, *save = NULL;
		int argc = 1;

		cr_assert_eq(sbx_admin_help(verb, NULL, &help), 0);
		cr_assert_eq(sbx_admin_synopsis(verb, &synopsis), 0);
		cr_expect(holds_in_lines(help.data, synopsis.data), "%s", verb->name);
		cr_expect(strstr(help.data, verb->summary), "%s", verb->name);
		for (const struct param *param = verb->params; param->name; param++)
			cr_expect(strstr(help.data, param->help), "%s %s", verb->name, param->name);
		cr_expect(strstr(help.data, verb->example), "%s", verb->name);

		(void)snprintf(example, sizeof(example), "%s", verb->example);
		for (char *w = strtok_r(example, " ", &save); w && argc < 15;
			w = strtok_r(NULL, " ", &save))
			argv[argc++] = w;
		cr_expect_eq(sbx_admin_parse(argc, argv, "/", &call, &err), 0, "%s: %s",
			verb->example, err.message);
		cr_expect_eq(call.verb, verb, "%s", verb->example);
	}
}

Test(verbs, help_of_a_group_lists_only_its_verbs)
{
	SBX_BUF struct sbx_buf help = SBX_BUF_INIT;

	cr_assert_eq(sbx_admin_help(NULL, "session", &help), 0);
	cr_expect(strstr(help.data, "session publish"));
	cr_expect_not(strstr(help.data, "reject"));
}

Test(verbs, lines_of_help_fit_a_terminal)
{
	for (const struct verb *verb = sbx_admin_verbs; verb->name; verb++) {
		SBX_BUF struct sbx_buf help = SBX_BUF_INIT;
		char *save = NULL;

		cr_assert_eq(sbx_admin_help(verb, NULL, &help), 0);
		for (char *line = strtok_r(help.data, "\n", &save); line;
			line = strtok_r(NULL, "\n", &save))
			cr_expect_leq(strlen(line), 100u, "%s: %s", verb->name, line);
	}
}
