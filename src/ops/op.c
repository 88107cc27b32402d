/* SPDX-License-Identifier: MIT */
/*
 * The table of operations. Adding one is a list of arguments and a row here; its schema, its check
 * and its place in tools/list follow.
 */
#include "sbx/op.h"

#include <string.h>

#define STRING(n)  .name = n, .type = SBX_ARG_STRING
#define BOOLEAN(n) .name = n, .type = SBX_ARG_BOOLEAN
#define EDITS(n)   .name = n, .type = SBX_ARG_EDITS
#define COUNT(n)   .name = n, .type = SBX_ARG_INTEGER, .minimum = 0, .maximum = INT64_MAX
#define VERSION(n) .name = n, .type = SBX_ARG_INTEGER, .minimum = 1, .maximum = INT64_MAX
#define REQUIRED   .flags = SBX_ARG_REQUIRED
#define CONTENT    .flags = SBX_ARG_REQUIRED | SBX_ARG_TEXT
#define DEFAULT(d) .flags = SBX_ARG_HAS_DEFAULT, .default_value = d
#define SANDBOX    STRING("sandbox_id"), REQUIRED
#define END        .name = NULL

/* The order of the arguments is the order of the properties in the contract's schemas. */
static const struct sbx_arg exec_command_args[] = {
	{SANDBOX},
	{STRING("workspace_session_id")},
	{STRING("cmd"), REQUIRED},
	{COUNT("timeout_ms")},
	{COUNT("yield_time_ms")},
	{END},
};

static const struct sbx_arg write_command_stdin_args[] = {
	{SANDBOX},
	{STRING("command_session_id"), REQUIRED},
	{STRING("stdin"), CONTENT},
	{COUNT("yield_time_ms")},
	{END},
};

static const struct sbx_arg read_command_lines_args[] = {
	{SANDBOX},
	{STRING("command_session_id"), REQUIRED},
	{COUNT("start_offset"), DEFAULT(0)},
	{COUNT("limit"), DEFAULT(200)},
	{END},
};

static const struct sbx_arg file_read_args[] = {
	{SANDBOX},
	{STRING("path"), REQUIRED},
	{COUNT("offset"), DEFAULT(1)},
	{COUNT("limit"), DEFAULT(2000)},
	{STRING("workspace_session_id")},
	{END},
};

static const struct sbx_arg file_write_args[] = {
	{SANDBOX},
	{STRING("path"), REQUIRED},
	{STRING("content"), CONTENT},
	{STRING("workspace_session_id")},
	{END},
};

static const struct sbx_arg file_edit_args[] = {
	{SANDBOX},
	{STRING("path"), REQUIRED},
	{EDITS("edits"), REQUIRED},
	{STRING("workspace_session_id")},
	{END},
};

static const struct sbx_arg path_args[] = {{SANDBOX}, {STRING("path"), REQUIRED}, {END}};

static const struct sbx_arg sandbox_args[] = {{SANDBOX}, {END}};
static const struct sbx_arg layer_args[] = {{SANDBOX}, {STRING("layer_id"), REQUIRED}, {END}};
static const struct sbx_arg diff_args[] = {
	{SANDBOX},
	{VERSION("from")},
	{VERSION("to")},
	{STRING("path")},
	{END},
};
static const struct sbx_arg path_at_args[] = {
	{SANDBOX},
	{STRING("path"), REQUIRED},
	{VERSION("at")},
	{END},
};
static const struct sbx_arg ls_args[] = {{SANDBOX}, {STRING("path")}, {VERSION("at")}, {END}};
static const struct sbx_arg session_args[] = {
	{SANDBOX},
	{STRING("workspace_session_id"), REQUIRED},
	{END},
};
static const struct sbx_arg session_end_args[] = {
	{SANDBOX},
	{STRING("workspace_session_id"), REQUIRED},
	{BOOLEAN("force")},
	{END},
};
static const struct sbx_arg command_args[] = {
	{SANDBOX},
	{STRING("command_session_id"), REQUIRED},
	{END},
};
static const struct sbx_arg command_tail_args[] = {
	{SANDBOX},
	{STRING("command_session_id"), REQUIRED},
	{BOOLEAN("follow")},
	{END},
};
static const struct sbx_arg reject_args[] = {{SANDBOX}, {STRING("reject_id"), REQUIRED}, {END}};
static const struct sbx_arg reject_export_args[] = {
	{SANDBOX},
	{STRING("reject_id"), REQUIRED},
	{STRING("dest"), REQUIRED},
	{END},
};
static const struct sbx_arg export_args[] = {
	{SANDBOX},
	{STRING("dest"), REQUIRED},
	{STRING("format")},
	{END},
};
static const struct sbx_arg stop_args[] = {{SANDBOX}, {BOOLEAN("force")}, {END}};

#define TOOL       SBX_OP_TOOL
#define TOOL_READ  (SBX_OP_TOOL | SBX_OP_READ_ONLY)
#define ADMIN      SBX_OP_ADMIN
#define ADMIN_READ (SBX_OP_ADMIN | SBX_OP_READ_ONLY)

/* The tools come first, in the order of the contract: it is the order of tools/list. */
const struct sbx_op sbx_ops[] = {
	{"exec_command", TOOL, exec_command_args},
	{"write_command_stdin", TOOL, write_command_stdin_args},
	{"read_command_lines", TOOL_READ, read_command_lines_args},
	{"file_read", TOOL_READ, file_read_args},
	{"file_write", TOOL, file_write_args},
	{"file_edit", TOOL, file_edit_args},
	{"file_blame", TOOL_READ, path_args},

	{"inspect", ADMIN_READ, sandbox_args},
	{"layers", ADMIN_READ, sandbox_args},
	{"layer", ADMIN_READ, layer_args},
	{"diff", ADMIN_READ, diff_args},
	{"log", ADMIN_READ, path_args},
	{"cat", ADMIN_READ, path_at_args},
	{"ls", ADMIN_READ, ls_args},
	{"blame", ADMIN_READ, path_at_args},
	{"session_create", ADMIN, sandbox_args},
	{"session_list", ADMIN_READ, sandbox_args},
	{"session_show", ADMIN_READ, session_args},
	{"session_diff", ADMIN_READ, session_args},
	{"session_publish", ADMIN, session_end_args},
	{"session_discard", ADMIN, session_end_args},
	{"command_list", ADMIN_READ, sandbox_args},
	{"command_show", ADMIN_READ, command_args},
	{"command_kill", ADMIN, command_args},
	{"command_tail", ADMIN_READ, command_tail_args},
	{"reject_list", ADMIN_READ, sandbox_args},
	{"reject_show", ADMIN_READ, reject_args},
	{"reject_diff", ADMIN_READ, reject_args},
	{"reject_drop", ADMIN, reject_args},
	{"reject_export", ADMIN, reject_export_args},
	{"reject_retry", ADMIN, reject_args},
	{"squash", ADMIN, sandbox_args},
	{"gc", ADMIN, sandbox_args},
	{"verify", ADMIN_READ, sandbox_args},
	{"stat", ADMIN_READ, sandbox_args},
	{"export", ADMIN, export_args},
	{"stop", ADMIN, stop_args},
	{NULL, 0, NULL},
};

const struct sbx_op *sbx_op_find(const char *name)
{
	for (const struct sbx_op *op = sbx_ops; op->name; op++)
		if (!strcmp(op->name, name))
			return op;
	return NULL;
}
