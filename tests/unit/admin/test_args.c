/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../../src/admin/verb.h"

#define WORDS_MAX 16

/* Splits at blanks: the cases below have none inside their words; "~" stands for an empty one. The
 * words live until the next call, as those of main() do. */
static int parse(const char *line, struct call *ret, struct sbx_err *err)
{
	static char copy[512];
	char *argv[WORDS_MAX + 1], *save = NULL;
	int argc = 0;

	cr_assert_lt(snprintf(copy, sizeof(copy), "sbx-admin %s", line), (int)sizeof(copy));
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		cr_assert_lt(argc, WORDS_MAX);
		argv[argc++] = strcmp(word, "~") ? word : strchr(word, '\0');
	}
	argv[argc] = NULL;
	return sbx_admin_parse(argc, argv, "/home/user", ret, err);
}

Test(args, command_lines_become_the_arguments_of_operations)
{
	static const struct {
		const char *line, *verb, *args;
	} cases[] = {
		{"create --workspace /src", "create", "{\"workspace\":\"/src\"}"},
		{"create --workspace src", "create", "{\"workspace\":\"/home/user/src\"}"},
		{"create --workspace=. --id p --root-at /w --rootfs host --network host", "create",
			"{\"workspace\":\"/home/user/.\",\"id\":\"p\",\"root_at\":\"/w\","
			"\"rootfs\":\"host\",\"network\":\"host\"}"},
		{"create --workspace /s --allow 10.0.0.1:80 --allow=10.1.0.0/16", "create",
			"{\"workspace\":\"/s\",\"allow\":[\"10.0.0.1:80\",\"10.1.0.0/16\"]}"},
		{"create --rootfs img --workspace /s", "create",
			"{\"rootfs\":\"/home/user/img\",\"workspace\":\"/s\"}"},
		{"create --workspace /s --memory-max 512M --pids-max 100 --cpu-max 1.5", "create",
			"{\"workspace\":\"/s\",\"memory_max\":536870912,\"pids_max\":100,"
			"\"cpu_max\":150}"},
		{"create --workspace /s --memory-max 2GiB --cpu-max 0.25", "create",
			"{\"workspace\":\"/s\",\"memory_max\":2147483648,\"cpu_max\":25}"},
		{"create --workspace /s --memory-max 1024 --cpu-max 2", "create",
			"{\"workspace\":\"/s\",\"memory_max\":1024,\"cpu_max\":200}"},
		{"list", "list", "{}"},
		{"destroy p --force", "destroy", "{\"sandbox_id\":\"p\",\"force\":true}"},
		{"destroy --force p", "destroy", "{\"force\":true,\"sandbox_id\":\"p\"}"},
		{"diff p", "diff", "{\"sandbox_id\":\"p\"}"},
		{"diff p 3", "diff", "{\"sandbox_id\":\"p\",\"from\":3}"},
		{"diff p 3..", "diff", "{\"sandbox_id\":\"p\",\"from\":3}"},
		{"diff p 3..5", "diff", "{\"sandbox_id\":\"p\",\"from\":3,\"to\":5}"},
		{"diff p 3..5 a/b", "diff",
			"{\"sandbox_id\":\"p\",\"from\":3,\"to\":5,\"path\":\"a/b\"}"},
		{"diff p a/b", "diff", "{\"sandbox_id\":\"p\",\"path\":\"a/b\"}"},
		{"diff p 3x", "diff", "{\"sandbox_id\":\"p\",\"path\":\"3x\"}"},
		{"diff p 1 3", "diff", "{\"sandbox_id\":\"p\",\"from\":1,\"path\":\"3\"}"},
		{"blame p f --at 2", "blame", "{\"sandbox_id\":\"p\",\"path\":\"f\",\"at\":2}"},
		{"blame p --at=2 -- -f", "blame",
			"{\"sandbox_id\":\"p\",\"at\":2,\"path\":\"-f\"}"},
		{"cat p -", "cat", "{\"sandbox_id\":\"p\",\"path\":\"-\"}"},
		{"ls p", "ls", "{\"sandbox_id\":\"p\"}"},
		{"session create p", "session create", "{\"sandbox_id\":\"p\"}"},
		{"session publish p ws_1", "session publish",
			"{\"sandbox_id\":\"p\",\"workspace_session_id\":\"ws_1\"}"},
		{"command tail p cmd_1 -f", "command tail",
			"{\"sandbox_id\":\"p\",\"command_session_id\":\"cmd_1\",\"follow\":true}"},
		{"command tail p cmd_1 --follow", "command tail",
			"{\"sandbox_id\":\"p\",\"command_session_id\":\"cmd_1\",\"follow\":true}"},
		{"reject export p rej_1 out", "reject export",
			"{\"sandbox_id\":\"p\",\"reject_id\":\"rej_1\",\"dest\":\"/home/user/"
			"out\"}"},
		{"export p /o --format tar", "export",
			"{\"sandbox_id\":\"p\",\"dest\":\"/o\",\"format\":\"tar\"}"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
		struct sbx_err err = SBX_ERR_INIT;
		size_t size;

		cr_assert_eq(
			parse(cases[i].line, &call, &err), 0, "%s: %s", cases[i].line, err.message);
		cr_expect_str_eq(call.verb->name, cases[i].verb, "%s", cases[i].line);
		cr_expect_str_eq(
			sbx_json_text(call.args, &size), cases[i].args, "%s", cases[i].line);
		cr_expect_not(call.json);
		cr_expect_not(call.help);
	}
}

Test(args, refusals_name_what_is_wrong)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{"", "a verb is missing"},
		{"--json", "a verb is missing"},
		{"inspct p", "did you mean 'inspect'?"},
		{"lyaers p", "did you mean 'layers'?"},
		{"sesion list p", "did you mean 'session list'?"},
		{"session lst p", "did you mean 'session list'?"},
		{"frobnicate", "unknown verb 'frobnicate'"},
		{"session", "'session' needs a second word"},
		{"inspect", "ID is missing"},
		{"inspect p q", "too many arguments at 'q'"},
		{"inspect ~", "ID is empty"},
		{"blame p", "PATH is missing"},
		{"create", "--workspace is missing"},
		{"create --workspace", "--workspace needs DIR"},
		{"create --workspace ~", "--workspace is empty"},
		{"create --workspace /a --workspace /b", "--workspace is given twice"},
		{"create --worspace /a", "did you mean '--workspace'?"},
		{"create --zzzzzz", "unknown option '--zzzzzz'"},
		{"create --network wifi", "takes none|host|bridge, not 'wifi'"},
		{"create --network hos", "takes none|host|bridge, not 'hos'"},
		{"create --allow 10.0.0.300", "--allow '10.0.0.300' is no IPv4 address"},
		{"create --allow 10.0.0.1:0", "a port from 1 to 65535"},
		{"create --memory-max 5Q", "a size such as"},
		{"create --memory-max -5", "a size such as"},
		{"create --memory-max 0", "a size such as"},
		{"create --memory-max 99999999T", "a size such as"},
		{"create --memory-max 5Mx", "a size such as"},
		{"create --pids-max 0", "a number from 1"},
		{"create --pids-max 1.5", "a number from 1"},
		{"create --pids-max 99999999999999999999", "a number from 1"},
		{"create --cpu-max 0", "a number of cores"},
		{"create --cpu-max 1.234", "a number of cores"},
		{"create --cpu-max .5", "a number of cores"},
		{"blame p f --at 0", "a number from 1"},
		{"blame p f --at x", "a number from 1"},
		{"destroy p --force=yes", "--force takes no value"},
		{"destroy p -f", "unknown option '-f'"},
		{"export p /o --format zip", "takes dir|tar|oci, not 'zip'"},
		{"cat p \xff\xfe", "PATH is not valid UTF-8"},
		{"inspect p --version", "unknown option '--version'"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
		struct sbx_err err = SBX_ERR_INIT;

		cr_expect_lt(parse(cases[i].line, &call, &err), 0, "%s", cases[i].line);
		cr_expect_eq(err.kind, SBX_KIND_INVALID, "%s", cases[i].line);
		cr_expect(strstr(err.message, cases[i].message), "%s: '%s' has no '%s'",
			cases[i].line, err.message, cases[i].message);
	}
}

Test(args, refusal_of_a_known_verb_shows_its_synopsis)
{
	SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	cr_expect_lt(parse("blame p", &call, &err), 0);
	cr_expect(strstr(err.message, "usage: sbx-admin blame ID PATH [--at VERSION]"), "%s",
		err.message);
}

Test(args, json_and_help_stand_anywhere)
{
	static const struct {
		const char *line;
		bool json, help;
		const char *verb, *group;
	} cases[] = {
		{"--json list", true, false, "list", NULL},
		{"list --json", true, false, "list", NULL},
		{"inspect --json p", true, false, "inspect", NULL},
		{"--help", false, true, NULL, NULL},
		{"-h", false, true, NULL, NULL},
		{"help", false, true, NULL, NULL},
		{"create --help", false, true, "create", NULL},
		{"help create", false, true, "create", NULL},
		{"help session list", false, true, "session list", NULL},
		{"session --help", false, true, NULL, "session"},
		{"help session", false, true, NULL, "session"},
		{"session list -h", false, true, "session list", NULL},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
		struct sbx_err err = SBX_ERR_INIT;

		cr_assert_eq(
			parse(cases[i].line, &call, &err), 0, "%s: %s", cases[i].line, err.message);
		cr_expect_eq(call.json, cases[i].json, "%s", cases[i].line);
		cr_expect_eq(call.help, cases[i].help, "%s", cases[i].line);
		cr_expect_str_eq(call.verb ? call.verb->name : "",
			cases[i].verb ? cases[i].verb : "", "%s", cases[i].line);
		cr_expect_str_eq(call.group ? call.group : "", cases[i].group ? cases[i].group : "",
			"%s", cases[i].line);
	}
}

Test(args, after_two_dashes_nothing_is_an_option)
{
	SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(parse("cat p -- --json", &call, &err), 0, "%s", err.message);
	cr_expect_not(call.json);
	cr_expect_str_eq(sbx_json_string(call.args, "path", ""), "--json");
}

Test(args, version_is_asked_for_alone)
{
	SBX_CLEANUP(sbx_admin_call_done) struct call call = CALL_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(parse("--version", &call, &err), 0);
	cr_expect(call.version);
}
