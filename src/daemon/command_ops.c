/* SPDX-License-Identifier: MIT */
/* The three command tools, from checked arguments to a waiting request. */
#include <string.h>

#include "command.h"
#include "sbx/aside.h"

#define YIELD_DEFAULT_MS 10000
#define YIELD_MAX_MS     50000 /* MCP clients give up at 60 s */
#define LINES_MAX        1000

static uint64_t yield_deadline(const struct request *request)
{
	int64_t ms = sbx_json_int(request->args, "yield_time_ms", YIELD_DEFAULT_MS);

	return request->since_ns + (uint64_t)SBX_MIN(ms, YIELD_MAX_MS) * SBX_NSEC_PER_MSEC;
}

static int check_text(const char *text, size_t size, struct sbx_err *err)
{
	if (memchr(text, '\0', size))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"cmd contains U+0000, which no shell command can");
	if (strspn(text, " \t\r\n\v\f") == size)
		return sbx_err_kind(
			err, SBX_KIND_INVALID, EINVAL, "cmd is empty; give a shell command");
	if (size > SBX_COMMAND_TEXT_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, E2BIG,
			"cmd has %zu bytes, more than the limit of %u; write the data with "
			"file_write first",
			size, SBX_COMMAND_TEXT_MAX);
	return 0;
}

/* Milliseconds to ns; beyond what a clock counts is no timeout at all. */
static int parse_timeout(struct json_object *args, uint64_t *ret_ns, struct sbx_err *err)
{
	int64_t ms = sbx_json_int(args, "timeout_ms", -1);

	if (ms == 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"timeout_ms is 0; omit it for no timeout, or give 1 or more milliseconds");
	if (ms < 0 || (uint64_t)ms > UINT64_MAX / 4 / SBX_NSEC_PER_MSEC)
		*ret_ns = 0;
	else
		*ret_ns = (uint64_t)ms * SBX_NSEC_PER_MSEC;
	return 0;
}

static int pick_session(struct request *request, struct session **ret, struct sbx_err *err)
{
	const char *id = sbx_json_string(request->args, "workspace_session_id", NULL);

	if (!id)
		return session_take_automatic(request->daemon, ret, err);
	*ret = session_find(request->daemon, id, err);
	return *ret ? session_check_usable(*ret, err) : -ENOENT;
}

static int start(struct request *request, struct command **ret, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct command *command = NULL;
	struct session *session = NULL;
	uint64_t timeout_ns = 0;
	int r;

	r = sbx_aside_text(sbx_json_member(request->args, "cmd"), request->aside_fd, &text, err);
	if (r == 0)
		r = check_text(text.data, text.size, err);
	if (r == 0)
		r = parse_timeout(request->args, &timeout_ns, err);
	if (r == 0)
		r = pick_session(request, &session, err);
	if (r == 0)
		r = command_new(request->daemon, text.data, text.size, timeout_ns, &command, err);
	if (r == 0) {
		r = session_add_command(session, command, err);
		if (r < 0)
			command_forget(command);
	}
	if (r < 0 && session && !sbx_json_member(request->args, "workspace_session_id"))
		session_stop(session, SESSION_END_DISCARD); /* made for this command alone */
	if (r == 0)
		*ret = command;
	return r;
}

void op_exec_command(struct request *request)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct command *command = NULL;

	if (start(request, &command, &err) < 0)
		request_fail(request, &err, NULL);
	else
		command_wait(command, request, yield_deadline(request));
}

static int refuse_ended(const struct command *command, struct sbx_err *err)
{
	return sbx_err_kind(err, SBX_KIND_CONFLICT, EPIPE,
		"command %s has finished (status %s, exit code %d) and takes no stdin; its output "
		"is "
		"in read_command_lines",
		command->id, command->status, command->exit_code);
}

void op_write_command_stdin(struct request *request)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	const char *id = sbx_json_string(request->args, "command_session_id", "");
	struct sbx_err err = SBX_ERR_INIT;
	struct command *command = command_find(request->daemon, id, &err);
	int r = command ? sbx_aside_text(sbx_json_member(request->args, "stdin"), request->aside_fd,
				  &text, &err)
			: -ENOENT;
	size_t size = text.size;

	if (r == 0 && size && command->state < COMMAND_RUNNING) {
		command_hold(command, request); /* there is no terminal yet */
		return;
	}
	if (r == 0 && command->state >= COMMAND_EXITED)
		r = refuse_ended(command, &err);
	else if (r == 0 && size)
		r = command_write(command, text.data, size, &err);
	if (r < 0) {
		request_fail(request, &err, NULL);
		return;
	}
	request->stdin_size = size;
	request->stdin_end = command->n_queued;
	command_wait(command, request, yield_deadline(request));
}

void op_read_command_lines(struct request *request)
{
	const char *id = sbx_json_string(request->args, "command_session_id", "");
	SBX_JSON struct json_object *body = json_object_new_object();
	int64_t limit = sbx_json_int(request->args, "limit", 200);
	int64_t start_row = sbx_json_int(request->args, "start_offset", 0);
	struct sbx_err err = SBX_ERR_INIT;
	struct command *command = command_find(request->daemon, id, &err);
	int r = command ? 0 : -ENOENT;

	if (!body)
		abort();
	if (command) {
		command_add_state(body, command);
		r = command_add_output(body, command, (uint64_t)start_row,
			(uint64_t)SBX_MIN(SBX_MAX(limit, 1), LINES_MAX), &err);
		command_add_outcome(body, command);
	}
	if (r < 0) {
		request_fail(request, &err, NULL);
		return;
	}
	sbx_json_add_double(body, "wall_time_seconds",
		(double)(sbx_now_ns() - request->since_ns) / (double)SBX_NSEC_PER_SEC);
	request_result(request, sbx_take(&body));
}
