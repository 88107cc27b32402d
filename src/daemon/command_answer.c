/* SPDX-License-Identifier: MIT */
/* Waiting for a command, and what its callers are told (CONTRACT: exec_command). */
#include <string.h>

#include "command.h"
#include "dispatch.h"

/* Fields of a job's result that a publication's answer shows, with what stands for absent ones. */
static const char *const publish_counts[] = {"added", "modified", "deleted", "merged", "ignored"};

static void add_copy(struct json_object *to, const char *key, struct json_object *value)
{
	sbx_json_add(to, key, json_object_get(value));
}

static void add_or_empty_array(struct json_object *to, const char *key, struct json_object *from)
{
	struct json_object *value = sbx_json_member(from, key);

	sbx_json_add(to, key, value ? json_object_get(value) : json_object_new_array());
}

static struct json_object *published(struct json_object *result)
{
	struct json_object *publish = json_object_new_object();
	const char *layer_id = sbx_json_string(result, "layer_id", NULL);

	if (!publish)
		abort();
	sbx_json_add_int(publish, "version", sbx_json_int(result, "version", 0));
	sbx_json_add_string(publish, "layer_id", layer_id);
	sbx_json_add_bool(publish, "no_op", !layer_id);
	for (size_t i = 0; i < SBX_N_ELEMENTS(publish_counts); i++)
		sbx_json_add_int(
			publish, publish_counts[i], sbx_json_int(result, publish_counts[i], 0));
	add_or_empty_array(publish, "dropped", result);
	return publish;
}

/* Without a reject: the work stays in its managed session. */
static void add_rejection(struct json_object *answer, struct json_object *result)
{
	const char *reject_id = sbx_json_string(result, "reject_id", NULL);

	sbx_json_add(answer, "publish", NULL);
	sbx_json_add_bool(answer, "publish_rejected", true);
	sbx_json_add_string(answer, "publish_reject_class",
		sbx_json_string(result, "class", "source_conflict"));
	add_or_empty_array(answer, "conflicts", result);
	if (sbx_json_member(result, "n_conflicts"))
		add_copy(answer, "n_conflicts", sbx_json_member(result, "n_conflicts"));
	sbx_json_add_string(answer, "reject_id", reject_id);
	sbx_json_add_string(answer, "next_step",
		reject_id
			? "nothing was published and nothing is lost: the changes are kept as a "
			  "reject; do the work again on the new head, or see 'sbx-admin reject "
			  "show'"
			: "nothing was published and nothing is lost: the session goes on with all "
			  "its work; take back what conflicts and publish again, or discard it");
}

struct json_object *publish_answer(const char *session_id, struct json_object *result)
{
	struct json_object *answer = json_object_new_object();

	if (!answer)
		abort();
	sbx_json_add_string(answer, "workspace_session_id", session_id);
	if (!strcmp(sbx_json_string(result, "outcome", "no_op"), "rejected"))
		add_rejection(answer, result);
	else
		sbx_json_add(answer, "publish", published(result));
	return answer;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)SBX_NSEC_PER_SEC;
}

void command_add_state(struct json_object *answer, const struct command *command)
{
	bool ended = command->state == COMMAND_ENDED;
	uint64_t until = ended ? command->ended_ns : sbx_now_ns();

	sbx_json_add_string(answer, "command_session_id", command->id);
	sbx_json_add_string(answer, "workspace_session_id", command->session_id);
	sbx_json_add_string(answer, "status", ended ? command->status : "running");
	if (ended)
		sbx_json_add_int(answer, "exit_code", command->exit_code);
	else
		sbx_json_add(answer, "exit_code", NULL);
	sbx_json_add_double(
		answer, "command_total_time_seconds", seconds(until - command->started_ns));
}

void command_add_outcome(struct json_object *answer, const struct command *command)
{
	if (command->state != COMMAND_ENDED)
		return;
	if (command->outcome) {
		json_object_object_foreach (command->outcome, key, value)
			if (strcmp(key, "workspace_session_id"))
				add_copy(answer, key, value);
	}
	if (command->note)
		sbx_json_add(answer, "notes", command_notes(command));
}

static enum sbx_transcript_window_flags window_flags(const struct command *command)
{
	return command->state == COMMAND_ENDED && command->master_fd < 0 ? SBX_TRANSCRIPT_CLOSED
									 : 0;
}

static void add_window(struct json_object *answer, const struct sbx_transcript_window *window,
	const struct sbx_buf *output)
{
	sbx_json_add_int(answer, "start_offset", (int64_t)window->start);
	sbx_json_add_int(answer, "end_offset", (int64_t)window->end);
	sbx_json_add_int(answer, "total_lines", (int64_t)window->n_rows);
	sbx_json_add_int(answer, "original_token_count", (int64_t)sbx_transcript_tokens(window));
	sbx_json_add_bytes(answer, "output", output->data ? output->data : "", output->size);
}

int command_add_output(struct json_object *answer, struct command *command, uint64_t start,
	uint64_t limit, struct sbx_err *err)
{
	struct sbx_transcript_window window;
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	int r = sbx_transcript_window(command->transcript, start, limit, SBX_TRANSCRIPT_READ_MAX,
		window_flags(command), &output, &window, err);

	if (r == 0)
		add_window(answer, &window, &output);
	return r;
}

static int add_yield(struct json_object *answer, struct command *command, struct sbx_err *err)
{
	struct sbx_transcript_window window;
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	int r = sbx_transcript_yield(command->transcript, command->yielded_rows,
		window_flags(command), &output, &window, err);

	if (r < 0)
		return r;
	add_window(answer, &window, &output);
	/* a partial last row is shown again once it is longer */
	command->yielded_rows = window.end - (window.partial && window.end > window.start);
	return 0;
}

static void add_stdin(struct json_object *answer, struct command *command, struct request *request)
{
	uint64_t first = request->stdin_end - request->stdin_size;
	uint64_t taken = command->n_written > first ? command->n_written - first : 0;

	if (!request->stdin_size)
		return;
	taken = SBX_MIN(taken, request->stdin_size);
	sbx_json_add_int(answer, "stdin_bytes_written", (int64_t)taken);
	if (taken < request->stdin_size) {
		sbx_json_add_int(
			answer, "stdin_bytes_refused", (int64_t)(request->stdin_size - taken));
		command_drop_unwritten(command);
	}
}

static void answer(struct command *command, struct request *request)
{
	SBX_JSON struct json_object *body = json_object_new_object();
	struct sbx_err err = SBX_ERR_INIT;

	if (!body)
		abort();
	command_add_state(body, command);
	sbx_json_add_double(body, "wall_time_seconds", seconds(sbx_now_ns() - request->since_ns));
	add_stdin(body, command, request);
	if (add_yield(body, command, &err) < 0) {
		request_fail(request, &err, NULL);
		return;
	}
	command_add_outcome(body, command);
	request_result(request, sbx_take(&body));
}

static void stop_waiting(struct request *request)
{
	struct command *command = request->waiting_on;

	TAILQ_REMOVE(&command->waiters, request, wait);
	if (request->stdin_size && command->n_written < request->stdin_end)
		command_drop_unwritten(command); /* or it would bar the stdin of all others */
}

/* Before the terminal is the command's nothing is answered, however short the wait. */
static bool may_answer(const struct command *command)
{
	return command->state >= COMMAND_RUNNING;
}

static void on_deadline(void *data)
{
	struct request *request = data;
	struct command *command = request->waiting_on;

	request->due = true;
	if (!may_answer(command))
		return;
	stop_waiting(request);
	answer(command, request);
}

void command_wait(struct command *command, struct request *request, uint64_t deadline_ns)
{
	struct sbx_err err = SBX_ERR_INIT;
	int r = sbx_timer_new(request->daemon->loop, on_deadline, request, &request->timer);

	if (r == 0)
		r = sbx_timer_set(request->timer, deadline_ns);
	if (r < 0) {
		(void)sbx_err_set(&err, -r, "wait for %s: %m", command->id);
		request_fail(request, &err, NULL);
		return;
	}
	request->waiting_on = command;
	request->cancel = stop_waiting;
	request->due = deadline_ns <= sbx_now_ns();
	TAILQ_INSERT_TAIL(&command->waiters, request, wait);
	command_wake(command);
}

void command_wake(struct command *command)
{
	struct request *request, *next;

	if (!may_answer(command))
		return;
	for (request = TAILQ_FIRST(&command->waiters); request; request = next) {
		next = TAILQ_NEXT(request, wait);
		if (request->progress) {
			request->progress(request);
			continue;
		}
		if (command->state != COMMAND_ENDED && !request->due)
			continue;
		TAILQ_REMOVE(&command->waiters, request, wait);
		answer(command, request);
	}
}

static void stop_holding(struct request *request)
{
	struct command *command = request->waiting_on;

	TAILQ_REMOVE(&command->held, request, wait);
	request->cancel = NULL;
}

void command_hold(struct command *command, struct request *request)
{
	request->waiting_on = command;
	request->cancel = stop_holding;
	TAILQ_INSERT_TAIL(&command->held, request, wait);
}

void command_release_held(struct command *command)
{
	struct request *request;

	while ((request = TAILQ_FIRST(&command->held))) {
		stop_holding(request);
		dispatch(request);
	}
}
