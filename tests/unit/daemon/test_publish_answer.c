/* SPDX-License-Identifier: MIT */
/* What a caller is told of a publication. */
#include <string.h>

#include "../../../src/daemon/command.h"
#include "fixture.h"

#define NO_COUNTS "\"added\":0,\"modified\":0,\"deleted\":0,\"merged\":0,\"ignored\":0"

Test(publish_answer, every_outcome_has_its_members)
{
	static const struct {
		const char *session, *result, *answer; /* without next_step */
		const char *next_step;                 /* a word of it */
	} cases[] = {
		{"ws_1",
			"{\"outcome\":\"published\",\"version\":7,\"layer_id\":\"layer_1\","
			"\"added\":1,"
			"\"merged\":2,\"dropped\":[\"s\"]}",
			"{\"workspace_session_id\":\"ws_1\",\"publish\":{\"version\":7,\"layer_"
			"id\":"
			"\"layer_1\",\"no_op\":false,\"added\":1,\"modified\":0,\"deleted\":0,"
			"\"merged\":2,\"ignored\":0,\"dropped\":[\"s\"]}}",
			NULL},
		{NULL, "{\"outcome\":\"no_op\",\"version\":3}",
			"{\"workspace_session_id\":null,\"publish\":{\"version\":3,\"layer_id\":"
			"null,"
			"\"no_op\":true," NO_COUNTS ",\"dropped\":[]}}",
			NULL},
		{"ws_1",
			"{\"outcome\":\"rejected\",\"class\":\"source_conflict\",\"reject_id\":"
			"\"rej_1\","
			"\"n_conflicts\":1,\"conflicts\":[{\"path\":\"f\"}]}",
			"{\"workspace_session_id\":\"ws_1\",\"publish\":null,\"publish_rejected\":"
			"true,"
			"\"publish_reject_class\":\"source_conflict\",\"conflicts\":[{\"path\":"
			"\"f\"}],"
			"\"n_conflicts\":1,\"reject_id\":\"rej_1\"}",
			"sbx-admin reject"},
		{"ws_1", "{\"outcome\":\"rejected\",\"class\":\"publish_error\"}",
			"{\"workspace_session_id\":\"ws_1\",\"publish\":null,\"publish_rejected\":"
			"true,"
			"\"publish_reject_class\":\"publish_error\",\"conflicts\":[],\"reject_id\":"
			"null}",
			"the session goes on"},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_JSON struct json_object *result = NULL;
		SBX_JSON struct json_object *answer = NULL;
		struct sbx_err err = SBX_ERR_INIT;
		const char *next_step;

		cr_assert_eq(
			sbx_json_parse(cases[i].result, strlen(cases[i].result), &result, &err), 0,
			"%s", err.message);
		answer = publish_answer(cases[i].session, result);
		next_step = sbx_json_string(answer, "next_step", NULL);
		cr_expect_eq(next_step != NULL, cases[i].next_step != NULL, "case %zu", i);
		if (next_step)
			cr_expect_not_null(strstr(next_step, cases[i].next_step), "%s", next_step);
		json_object_object_del(answer, "next_step");
		cr_expect_str_eq(sbx_json_text(answer, NULL), cases[i].answer, "case %zu: %s", i,
			sbx_json_text(answer, NULL));
	}
}
