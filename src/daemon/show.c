/* SPDX-License-Identifier: MIT */
#include "show.h"

#include <string.h>
#include <unistd.h>

#include "command.h"
#include "commit.h"
#include "session.h"
#include "slots.h"

static struct json_object *new_object(void)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		abort();
	return o;
}

static struct json_object *new_array(struct json_object *parent, const char *key)
{
	struct json_object *array = json_object_new_array();

	if (!array)
		abort();
	sbx_json_add(parent, key, array);
	return array;
}

static void array_add(struct json_object *array, struct json_object *value)
{
	if (json_object_array_add(array, value) < 0)
		abort();
}

void op_inspect(struct request *request)
{
	struct daemon *daemon = request->daemon;
	struct json_object *o = new_object();

	sbx_sandbox_to_json(&daemon->sandbox, o);
	sbx_json_add_int(o, "version", (int64_t)daemon_head(daemon)->version);
	sbx_json_add_int(o, "oldest_version", (int64_t)sbx_head_log_oldest(daemon->log));
	sbx_json_add_int(o, "layer_count", (int64_t)daemon_head(daemon)->stack.n);
	sbx_json_add_int(o, "session_count", (int64_t)daemon->n_sessions);
	sbx_json_add_int(o, "running_command_count", (int64_t)daemon->n_live_commands);
	sbx_json_add_int(o, "client_count", (int64_t)daemon->n_clients);
	sbx_json_add_int(o, "publications_pending", (int64_t)commits_pending(daemon->commits));
	sbx_json_add_int(o, "daemon_pid", getpid());
	sbx_json_add_double(o, "daemon_uptime_seconds",
		(double)(sbx_now_ns() - daemon->started_ns) / (double)SBX_NSEC_PER_SEC);
	request_result(request, o);
}

/* --- sessions --- */

static struct json_object *describe_session(const struct session *session)
{
	struct json_object *o = new_object();
	struct json_object *commands;
	const struct command *command;

	sbx_json_add_string(o, "workspace_session_id", session->id);
	sbx_json_add_string(o, "kind", session->managed ? "managed" : "automatic");
	sbx_json_add_string(o, "state", session_state_name(session));
	sbx_json_add_int(o, "version", (int64_t)session->base.version);
	sbx_json_add_int(o, "created_ns", (int64_t)session->created_ns);
	commands = new_array(o, "command_session_ids");
	TAILQ_FOREACH(command, &session->commands, in_session)
	array_add(commands, json_object_new_string(command->id));
	return o;
}

void op_session_create(struct request *request)
{
	struct json_object *o;
	struct sbx_err err = SBX_ERR_INIT;
	struct session *session;

	if (session_new_managed(request->daemon, &session, &err) < 0) {
		request_fail(request, &err, NULL);
		return;
	}
	o = new_object();
	sbx_json_add_string(o, "workspace_session_id", session->id);
	sbx_json_add_int(o, "version", (int64_t)session->base.version);
	request_result(request, o);
}

void op_session_list(struct request *request)
{
	struct json_object *o = new_object();
	struct json_object *sessions = new_array(o, "sessions");
	const struct session *session;

	TAILQ_FOREACH(session, &request->daemon->sessions, entry)
	if (session->managed || session->first_command) /* else it stood ready for nobody */
		array_add(sessions, describe_session(session));
	request_result(request, o);
}

static struct session *asked_session(struct request *request)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct session *session = session_find(
		request->daemon, sbx_json_string(request->args, "workspace_session_id", ""), &err);

	if (!session)
		request_fail(request, &err, NULL);
	return session;
}

static void add_usage(struct json_object *o, const struct session *session)
{
	const struct slots *slots = session->daemon->slots;
	struct sbx_cgroup_counts counts;
	struct sbx_cgroup_usage usage;

	slot_use(slots, session->slot, &usage);
	slot_count(slots, session->slot, &counts);
	sbx_json_add_int(o, "memory_bytes", (int64_t)usage.memory_bytes);
	sbx_json_add_int(o, "process_count", (int64_t)usage.n_processes);
	sbx_json_add_double(o, "cpu_throttled_seconds",
		(double)(counts.cpu_throttled_ns - session->counts.cpu_throttled_ns) /
			(double)SBX_NSEC_PER_SEC);
}

void op_session_show(struct request *request)
{
	struct session *session = asked_session(request);
	struct json_object *o;

	if (!session)
		return;
	o = describe_session(session);
	add_usage(o, session);
	request_result(request, o);
}

static void on_preview(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	struct request *request = data;

	if (err)
		request_fail(request, err, details);
	else
		request_result_text(request, text, size);
}

void op_session_diff(struct request *request)
{
	struct session *session = asked_session(request);
	struct job_request job = {
		.name = "preview", .fd = -EBADF, .done = on_preview, .data = request};
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	if (!session)
		return;
	job.args = new_object();
	sbx_json_add_string(job.args, "session_dir", session->id);
	sbx_json_add_string(job.args, "root_at", request->daemon->sandbox.root_at);
	sbx_json_add(job.args, "base", stack_to_json(&session->base.stack));
	r = pool_submit(request->daemon->pool, &job);
	if (r < 0) {
		(void)pool_refused(&err, r, "look at a session");
		request_fail(request, &err, NULL);
	}
}

#define COMMANDS_NAMED_MAX 8 /* in the message; the details have all */

static int refuse_running(
	const struct session *session, struct json_object **ret_details, struct sbx_err *err)
{
	char ids[COMMANDS_NAMED_MAX * (SBX_ID_SIZE + 1)] = "";
	const struct command *command;
	size_t n = 0;

	TAILQ_FOREACH(command, &session->commands, in_session)
	if (n++ < COMMANDS_NAMED_MAX) {
		(void)strcat(ids, " ");
		(void)strcat(ids, command->id); /* there is room for each */
	}
	*ret_details = describe_session(session);
	return sbx_err_kind(err, SBX_KIND_CONFLICT, EBUSY,
		"workspace session %s still runs %zu command(s):%s%s; wait for them, or give "
		"--force to end them",
		session->id, n, ids, n > COMMANDS_NAMED_MAX ? " ..." : "");
}

static void end_session(struct request *request, enum session_end end)
{
	SBX_JSON struct json_object *details = NULL;
	struct session *session = asked_session(request);
	struct sbx_err err = SBX_ERR_INIT;
	int r = 0;

	if (!session)
		return;
	if (session->end != SESSION_END_NONE)
		r = session_check_usable(session, &err);
	else if (session->n_commands && !sbx_json_bool(request->args, "force", false))
		r = refuse_running(session, &details, &err);
	if (r < 0) {
		request_fail(request, &err, details);
		return;
	}
	TAILQ_INSERT_TAIL(&session->waiters, request, wait);
	session_stop_gently(session, end);
}

void op_session_publish(struct request *request)
{
	end_session(request, SESSION_END_PUBLISH);
}

void op_session_discard(struct request *request)
{
	end_session(request, SESSION_END_DISCARD);
}

/* --- commands --- */

static struct json_object *describe_command(const struct command *command)
{
	struct json_object *o = new_object();
	struct sbx_transcript_stat stat;
	struct sbx_err err = SBX_ERR_INIT;

	command_add_state(o, command);
	sbx_json_add_string(o, "command", command->summary);
	sbx_json_add_int(o, "started_ns", (int64_t)command->started_real_ns);
	if (sbx_transcript_stat(command->transcript, &stat, &err) == 0) {
		sbx_json_add_int(o, "total_lines", (int64_t)stat.n_rows);
		sbx_json_add_int(o, "transcript_bytes", (int64_t)stat.n_bytes);
	}
	command_add_outcome(o, command);
	return o;
}

/* All that are known, oldest first: those not in memory are read back one at a time. */
void op_command_list(struct request *request)
{
	struct daemon *daemon = request->daemon;
	struct json_object *o = new_object();
	struct json_object *commands = new_array(o, "commands");
	size_t first = daemon->command_index.n > COMMANDS_KEPT
			       ? daemon->command_index.n - COMMANDS_KEPT
			       : 0;

	for (size_t i = first; i < daemon->command_index.n; i++) {
		struct sbx_err err = SBX_ERR_INIT;
		struct command *command =
			command_find(daemon, daemon->command_index.entries[i].id, &err);

		if (command)
			array_add(commands, describe_command(command));
	}
	request_result(request, o);
}

static struct command *asked_command(struct request *request)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct command *command = command_find(
		request->daemon, sbx_json_string(request->args, "command_session_id", ""), &err);

	if (!command)
		request_fail(request, &err, NULL);
	return command;
}

void op_command_show(struct request *request)
{
	struct command *command = asked_command(request);

	if (command)
		request_result(request, describe_command(command));
}

static void stop_watching(struct request *request)
{
	struct command *command = request->waiting_on;

	TAILQ_REMOVE(&command->waiters, request, wait);
}

/* Sends the rows from next_row on; a partial one only when nothing more will come. */
static int send_rows(struct request *request, const struct command *command, bool last)
{
	struct sbx_transcript_window window;
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	do {
		SBX_BUF struct sbx_buf rows = SBX_BUF_INIT;

		r = sbx_transcript_window(command->transcript, request->next_row,
			SBX_TRANSCRIPT_ROWS_MAX, SBX_TRANSCRIPT_READ_MAX,
			last ? SBX_TRANSCRIPT_CLOSED : 0, &rows, &window, &err);
		if (r < 0)
			return r;
		while (window.partial && !last && rows.size && rows.data[rows.size - 1] != '\n')
			rows.size--;
		request->next_row = window.end - (window.partial && !last);
		r = rows.size ? request_chunk(request, rows.data, rows.size) : -ENODATA;
	} while (r == 0 && window.end < window.n_rows && !request_is_behind(request));
	return r;
}

static void on_output(struct request *request)
{
	struct command *command = request->waiting_on;
	bool ended = command->state == COMMAND_ENDED;

	if (request_is_behind(request))
		return;                           /* called again when it has caught up */
	(void)send_rows(request, command, ended); /* a client that has gone is noticed elsewhere */
	if (!ended || request_is_behind(request))
		return;
	stop_watching(request);
	request_result(request, describe_command(command));
}

#define TAIL_ROWS 20 /* shown of what was there before */

void op_command_tail(struct request *request)
{
	struct command *command = asked_command(request);
	struct sbx_transcript_stat stat;
	struct sbx_err err = SBX_ERR_INIT;

	if (!command)
		return;
	if (sbx_transcript_stat(command->transcript, &stat, &err) < 0) {
		request_fail(request, &err, NULL);
		return;
	}
	request->next_row = stat.n_rows > TAIL_ROWS ? stat.n_rows - TAIL_ROWS : 0;
	if (!sbx_json_bool(request->args, "follow", false)) {
		(void)send_rows(request, command, true); /* see on_output() */
		request_result(request, describe_command(command));
		return;
	}
	request->waiting_on = command;
	request->cancel = stop_watching;
	request->progress = on_output;
	TAILQ_INSERT_TAIL(&command->waiters, request, wait);
	on_output(request);
}

/* Its rows are for those who read them: the end alone is told here. */
static void on_killed(struct request *request)
{
	const struct command *command = request->waiting_on;

	if (command->state != COMMAND_ENDED)
		return;
	stop_watching(request);
	request_result(request, describe_command(command));
}

void op_command_kill(struct request *request)
{
	struct command *command = asked_command(request);
	struct sbx_err err = SBX_ERR_INIT;

	if (!command)
		return;
	if (command->state >= COMMAND_EXITED) {
		(void)sbx_err_kind(&err, SBX_KIND_CONFLICT, ESRCH,
			"command %s has finished already (status %s, exit code %d)", command->id,
			command->status, command->exit_code);
		request_fail(request, &err, NULL);
		return;
	}
	command_kill(command);
	request->waiting_on = command;
	request->cancel = stop_watching;
	request->progress = on_killed;
	TAILQ_INSERT_TAIL(&command->waiters, request, wait);
}

void op_stop(struct request *request)
{
	struct daemon *daemon = request->daemon;
	struct json_object *o = new_object();
	struct sbx_err err = SBX_ERR_INIT;
	bool busy =
		daemon->n_live_commands || daemon->n_sessions || commits_pending(daemon->commits);

	if (busy && !sbx_json_bool(request->args, "force", false)) {
		(void)sbx_err_kind(&err, SBX_KIND_CONFLICT, EBUSY,
			"sandbox '%s' has %zu running command(s) and %zu session(s); end them "
			"first, "
			"or give --force",
			daemon->sandbox.id, daemon->n_live_commands, daemon->n_sessions);
		json_object_put(o);
		request_fail(request, &err, NULL);
		return;
	}
	sbx_json_add_bool(o, "stopped", true);
	sbx_json_add_int(o, "daemon_pid", getpid());
	request_result(request, o); /* sent before the loop ends: the socket takes it at once */
	daemon_stop(daemon);
}
