/* SPDX-License-Identifier: MIT */
/*
 * The words of the tools, written for the agent that has to choose and use them: what it does,
 * what comes back, what to do next.
 */
#include "tools.h"

#define TEXT           "{\"type\":\"string\"}"
#define COUNT          "{\"type\":\"integer\",\"minimum\":0}"
#define SECONDS        "{\"type\":\"number\",\"minimum\":0}"
#define YES_NO         "{\"type\":\"boolean\"}"
#define TEXTS          "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define OBJECTS        "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
#define COUNT_OR_NULL  "{\"type\":[\"integer\",\"null\"],\"minimum\":0}"
#define TEXT_OR_NULL   "{\"type\":[\"string\",\"null\"]}"
#define OBJECT_OR_NULL "{\"type\":[\"object\",\"null\"]}"
#define STATUS                                                                                     \
	"{\"type\":\"string\",\"enum\":[\"running\",\"ok\",\"error\",\"timed_out\",\"cancelled\"]" \
	"}"
#define CREATE_UPDATE "{\"type\":\"string\",\"enum\":[\"create\",\"update\"]}"
#define EDIT          "{\"type\":\"string\",\"enum\":[\"edit\"]}"
#define RANGES                                                                                     \
	"{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"                      \
	"\"start_line\":{\"type\":\"integer\",\"minimum\":1},"                                     \
	"\"line_count\":{\"type\":\"integer\",\"minimum\":1},\"owner\":{\"type\":\"string\"}},"    \
	"\"required\":[\"start_line\",\"line_count\",\"owner\"]}}"

static const struct mcp_field command_fields[] = {
	{"status", STATUS, false},
	{"exit_code", COUNT_OR_NULL, false},
	{"wall_time_seconds", SECONDS, false},
	{"command_total_time_seconds", SECONDS, false},
	{"start_offset", COUNT, false},
	{"end_offset", COUNT, false},
	{"total_lines", COUNT, false},
	{"original_token_count", COUNT, false},
	{"output", TEXT, false},
	{"command_session_id", TEXT, false},
	{"workspace_session_id", TEXT, false},
	{"stdin_bytes_written", COUNT, true},
	{"stdin_bytes_refused", COUNT, true},
	{"publish", OBJECT_OR_NULL, true},
	{"publish_rejected", YES_NO, true},
	{"publish_reject_class", TEXT, true},
	{"publish_error", TEXT, true},
	{"conflicts", OBJECTS, true},
	{"n_conflicts", COUNT, true},
	{"reject_id", TEXT_OR_NULL, true},
	{"next_step", TEXT, true},
	{"notes", TEXTS, true},
	{NULL, NULL, false},
};

static const struct mcp_field read_fields[] = {
	{"path", TEXT, false},
	{"content", TEXT, false},
	{"start_line", COUNT, false},
	{"num_lines", COUNT, false},
	{"total_lines", COUNT, false},
	{"bytes_read", COUNT, false},
	{"total_bytes", COUNT, false},
	{"next_offset", COUNT_OR_NULL, false},
	{"truncated", YES_NO, false},
	{NULL, NULL, false},
};

static const struct mcp_field write_fields[] = {
	{"type", CREATE_UPDATE, false},
	{"path", TEXT, false},
	{"bytes_written", COUNT, false},
	{NULL, NULL, false},
};

static const struct mcp_field edit_fields[] = {
	{"type", EDIT, false},
	{"path", TEXT, false},
	{"edits_applied", COUNT, false},
	{"replacements", COUNT, false},
	{"bytes_written", COUNT, false},
	{NULL, NULL, false},
};

static const struct mcp_field blame_fields[] = {
	{"path", TEXT, false},
	{"ranges", RANGES, false},
	{NULL, NULL, false},
};

/* What a tool does to the world, for clients that ask a person first. Nothing here leaves the
 * sandbox but a command, which may use the network that the sandbox allows. */
#define COMMAND_HINTS ",\"destructiveHint\":true,\"idempotentHint\":false,\"openWorldHint\":true"
#define READ_HINTS    ",\"destructiveHint\":false,\"idempotentHint\":true,\"openWorldHint\":false"
#define WRITE_HINTS   ",\"destructiveHint\":true,\"idempotentHint\":true,\"openWorldHint\":false"
#define EDIT_HINTS    ",\"destructiveHint\":true,\"idempotentHint\":false,\"openWorldHint\":false"

const struct mcp_tool_words mcp_tool_words[] = {
	{"exec_command", "Run a shell command",
		"Runs cmd with bash in the sandbox, at the workspace root, on a terminal. Without "
		"workspace_session_id it works in a private copy of the project that is published, "
		"merged with what others published meanwhile, when the command ends; with it, the "
		"command joins that session. Waits up to yield_time_ms (default 10000, at most "
		"50000; 0 returns at once) and gives the output so far. If status is \"running\", "
		"go on with write_command_stdin (stdin \"\" only waits) and the "
		"command_session_id; the command runs on by itself. timeout_ms ends the command. "
		"If publish_rejected is true nothing was published: conflicts names the paths, and "
		"the work is kept under reject_id; read the files again and redo the change.",
		COMMAND_HINTS, command_fields},
	{"write_command_stdin", "Type into a running command",
		"Sends stdin, exactly as given, to the terminal of a running command, waits up to "
		"yield_time_ms (default 10000, at most 50000) and gives the output that is new. "
		"An empty stdin only waits. End a line with \\n; \\u0003 interrupts, \\u0004 ends "
		"the input, as on a terminal. A command that has finished is operation_conflict: "
		"read_command_lines still shows its output.",
		COMMAND_HINTS, command_fields},
	{"read_command_lines", "Read a command's output",
		"Reads rows of the output of a running or finished command, without waiting and "
		"without changing anything: from row start_offset (the first is 0), at most limit "
		"(up to 1000). Go on at end_offset until it equals total_lines. Use it for the "
		"rows that another result left out.",
		READ_HINTS, command_fields},
	{"file_read", "Read a file",
		"Reads lines of a text file as it is published or, with workspace_session_id, as "
		"that session sees it. offset is the first line, counted from 1; limit at most "
		"2000 lines, and no more than 256 KiB. If next_offset is not null, go on there. "
		"path is relative to the workspace root, or absolute below it.",
		READ_HINTS, read_fields},
	{"file_write", "Write a file",
		"Makes the file hold exactly content, creating it and missing parent directories; "
		"mode and owner of an existing file stay. It is published at once unless "
		"workspace_session_id names the session to write in. Prefer file_edit for a small "
		"change of a file that others may be changing.",
		WRITE_HINTS, write_fields},
	{"file_edit", "Edit a file",
		"Replaces literal text. edits is an array of {old_string, new_string, "
		"replace_all?}, applied in order, all or none. Each old_string must occur exactly "
		"once unless replace_all is true: give enough of the lines around it. On failure "
		"the message shows the closest line, or the numbers of the lines that match. It "
		"is published at once unless workspace_session_id is given.",
		EDIT_HINTS, edit_fields},
	{"file_blame", "Show who wrote each line",
		"Tells for each line of a published file whose change it is: "
		"workspace_session:<id> (a command's session), operation:<id> (a file tool's "
		"call), original or unknown. not_found means that nothing has changed the file "
		"since the project was imported, or that there is no such file.",
		READ_HINTS, blame_fields},
	{NULL, NULL, NULL, NULL, NULL},
};

const char mcp_instructions[] =
	"Tools for one project in a sandbox that other agents may use at the same time. Each "
	"exec_command works in a private copy and publishes its changes when it ends; changes of "
	"different lines are merged, changes of the same lines are refused as a whole and kept as "
	"a reject. So read a file again before changing it, and keep one command's work small. "
	"Failures say what to do next.";
