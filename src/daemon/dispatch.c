/* SPDX-License-Identifier: MIT */
#include "dispatch.h"

#include <string.h>

#include "command.h"
#include "fileop.h"
#include "reject_ops.h"
#include "show.h"
#include "stack_ops.h"

static const struct {
	const char *op;
	void (*run)(struct request *request);
} handlers[] = {
	/* the runtime tools */
	{"exec_command", op_exec_command},
	{"write_command_stdin", op_write_command_stdin},
	{"read_command_lines", op_read_command_lines},
	{"file_read", op_file_read},
	{"file_write", op_file_change},
	{"file_edit", op_file_change},
	{"file_blame", op_read_job},

	/* what sandboxd knows by itself */
	{"inspect", op_inspect},
	{"session_create", op_session_create},
	{"session_list", op_session_list},
	{"session_show", op_session_show},
	{"session_publish", op_session_publish},
	{"session_discard", op_session_discard},
	{"command_list", op_command_list},
	{"command_show", op_command_show},
	{"command_tail", op_command_tail},
	{"command_kill", op_command_kill},
	{"stop", op_stop},

	/* what changes the stack */
	{"reject_retry", op_reject_retry},
	{"squash", op_squash},
	{"gc", op_gc},

	/* what a version other than the head may be asked for */
	{"diff", op_diff},
	{"cat", op_at_version},
	{"ls", op_at_version},
	{"blame", op_at_version},
	{"session_diff", op_session_diff},

	/* what a worker answers from the store */
	{"layers", op_read_job},
	{"layer", op_read_job},
	{"log", op_read_job},
	{"reject_list", op_read_job},
	{"reject_show", op_read_job},
	{"reject_diff", op_read_job},
	{"reject_export", op_read_job},
	{"reject_drop", op_reject_drop},
	{"verify", op_read_job},
	{"stat", op_read_job},
	{"export", op_read_job},
};

void dispatch(struct request *request)
{
	struct sbx_err err = SBX_ERR_INIT;

	for (size_t i = 0; i < SBX_N_ELEMENTS(handlers); i++)
		if (!strcmp(handlers[i].op, request->op->name)) {
			handlers[i].run(request);
			return;
		}
	(void)sbx_err_kind(&err, SBX_KIND_INTERNAL, ENOSYS,
		"operation '%s' has no handler in this sandboxd", request->op->name);
	request_fail(request, &err, NULL);
}
