/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sbx/fs.h"
#include "sbx/init.h"

struct command *command_alloc(struct daemon *daemon)
{
	struct command *command = calloc(1, sizeof(*command));

	if (!command)
		return NULL;
	*command = (struct command){
		.daemon = daemon,
		.text_fd = -EBADF,
		.dir_fd = -EBADF,
		.master_fd = -EBADF,
		.slave_fd = -EBADF,
		.status = "running",
	};
	TAILQ_INIT(&command->waiters);
	TAILQ_INIT(&command->held);
	TAILQ_INSERT_TAIL(&daemon->commands, command, entry);
	daemon->n_commands++;
	return command;
}

void command_free(struct command *command)
{
	if (!command)
		return;
	command_close_terminal(command);
	sbx_timer_free(command->timer);
	sbx_transcript_close(command->transcript);
	TAILQ_REMOVE(&command->daemon->commands, command, entry);
	command->daemon->n_commands--;
	if (command->state != COMMAND_ENDED)
		command->daemon->n_live_commands--;
	sbx_fd_close(&command->text_fd);
	sbx_fd_close(&command->dir_fd);
	sbx_json_put(&command->outcome);
	free(command->summary);
	free(command->note);
	free(command);
}

/* The text goes to init as a sealed memfd: nobody can change it on the way (memfd_create(2)). */
static int seal_text(struct command *command, const char *text, size_t size)
{
	int r;

	command->text_fd = memfd_create("command", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (command->text_fd < 0)
		return -errno;
	r = sbx_fs_write_all(command->text_fd, text, size);
	if (r < 0)
		return r;
	if (fcntl(command->text_fd, F_ADD_SEALS,
		    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	command->text_size = (uint32_t)size;
	return 0;
}

static char *summarize(const char *text, size_t size)
{
	size_t n = SBX_MIN(size, (size_t)COMMAND_SUMMARY_MAX);

	while (n < size && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--; /* not inside a character */
	return strndup(text, n);
}

static bool is_alone(const struct command *command)
{
	return !command->session->managed && command->session->n_commands == 1;
}

/* Alone in an automatic session: then whatever is left in it belongs to this command. */
static void leave_session(struct command *command)
{
	sbx_timer_unset(command->timer);
	session_command_exited(command->session, command);
}

static void send_term(struct command *command)
{
	command->kill_phase = COMMAND_KILL_TERM;
	session_signal(command->session, is_alone(command) ? 0 : command->number, SIGTERM);
	(void)sbx_timer_set(command->timer, sbx_now_ns() + COMMAND_GRACE_NS);
}

/* Both before and after the end of its shell: what ignored SIGTERM may have outlived that. */
static void send_kill(struct command *command)
{
	command->kill_phase = COMMAND_KILL_KILL;
	if (is_alone(command))
		session_stop(command->session, SESSION_END_PUBLISH); /* the kernel misses nobody */
	else
		session_signal(command->session, command->number, SIGKILL);
}

static void on_timer(void *data)
{
	struct command *command = data;

	if (command->state == COMMAND_EXITED) {
		if (!is_alone(command))
			send_kill(command);
		leave_session(command); /* the shell obeyed; what it left had its grace */
	} else if (command->state == COMMAND_RUNNING && command->kill_phase == COMMAND_KILL_NONE) {
		command->timed_out = true;
		send_term(command);
	} else if (command->state == COMMAND_RUNNING) {
		send_kill(command);
	}
}

static int open_files(struct command *command, struct sbx_err *err)
{
	int r = sbx_fs_ensure_dir(
		command->daemon->context.commands_fd, command->id, 0700, &command->dir_fd);

	if (r < 0)
		return sbx_err_set(err, -r, "make the directory of command %s: %m", command->id);
	return sbx_transcript_open(
		command->dir_fd, SBX_TRANSCRIPT_WRITE, 0, &command->transcript, err);
}

int command_new(struct daemon *daemon, const char *text, size_t size, uint64_t timeout_ns,
	struct command **ret, struct sbx_err *err)
{
	struct command *command = command_alloc(daemon);
	int r;

	if (!command)
		return sbx_err_set(err, ENOMEM, "start a command: no memory");
	daemon->n_live_commands++;
	command->number = ++daemon->next_command_number;
	command->timeout_ns = timeout_ns;
	command->started_ns = sbx_now_ns();
	command->started_real_ns = sbx_realtime_ns();
	command->summary = summarize(text, size);
	r = sbx_id_new(SBX_ID_COMMAND, command->id);
	if (r == 0)
		r = commands_index_add(daemon, command->id, 0);
	if (r == 0)
		r = command->summary ? seal_text(command, text, size) : -ENOMEM;
	if (r == 0)
		r = sbx_timer_new(daemon->loop, on_timer, command, &command->timer);
	if (r < 0)
		(void)sbx_err_set(err, -r, "start a command: %m");
	else
		r = open_files(command, err);
	if (r < 0) {
		command_forget(command);
		return r;
	}
	*ret = command;
	return 0;
}

void commands_free(struct daemon *daemon)
{
	struct command *command;

	while ((command = TAILQ_FIRST(&daemon->commands)))
		command_free(command);
}

struct command *command_find(struct daemon *daemon, const char *id, struct sbx_err *err)
{
	struct command *command;

	TAILQ_FOREACH_REVERSE(command, &daemon->commands, command_list, entry)
	if (!strcmp(command->id, id))
		return command;
	commands_trim(daemon); /* those that were read back for others: each holds descriptors */
	if (sbx_id_has_prefix(id, SBX_ID_COMMAND) && command_load(daemon, id, &command, err) == 0)
		return command;
	(void)sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
		"no command '%.64s' in sandbox '%s'; ended commands stay readable for a day and as "
		"long as they are among the newest %d",
		id, daemon->sandbox.id, COMMANDS_KEPT);
	return NULL;
}

int command_send_start(struct command *command, int control_fd)
{
	struct sbx_init_message message = {
		.op = SBX_INIT_START,
		.command = command->number,
		.rows = COMMAND_ROWS,
		.columns = COMMAND_COLUMNS,
		.text_size = command->text_size,
	};
	int r;

	command->state = COMMAND_STARTING;
	if (!*command->session_id) { /* the first try */
		command_count_limits(command);
		(void)snprintf(command->session_id, sizeof(command->session_id), "%s",
			command->session->id); /* ids fit */
		(void)command_save(command);   /* for a crash; the command itself needs no file */
	}
	r = sbx_init_send(control_fd, &message, command->text_fd);
	if (r == -EAGAIN) {
		command->state = COMMAND_WAITING;
		return r;
	}
	sbx_fd_close(&command->text_fd);
	if (r < 0)
		daemon_log(
			"start %s: %s", command->id, strerror(-r)); /* init died: its pidfd tells */
	return 0;
}

void command_started(struct command *command, const struct sbx_init_message *message, int master_fd)
{
	struct session *session = command->session;
	struct sbx_err err = SBX_ERR_INIT;
	int r = message->code;

	if (command->state != COMMAND_STARTING) {
		sbx_fd_close(&master_fd);
		return;
	}
	if (r < 0)
		(void)sbx_err_set(&err, -r, "start the command: %s", message->detail);
	else if ((r = command_open_terminal(command, master_fd)) < 0)
		(void)sbx_err_set(&err, -r, "open the terminal of %s: %m", command->id);
	if (r < 0) {
		command_add_note(command, err.message);
		command_exited(command, 126 << 8);
		return;
	}
	command->state = COMMAND_RUNNING;
	if (command->killed)
		send_term(command);
	else if (command->timeout_ns)
		(void)sbx_timer_set(command->timer,
			sbx_now_ns() + SBX_MIN(command->timeout_ns, UINT64_MAX / 4));
	command_release_held(command);
	command_wake(command);
	daemon_touch(session->daemon);
}

static void set_status(struct command *command, int wait_status)
{
	int code =
		WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);

	command->exit_code = code;
	if (command->timed_out) {
		command->status = "timed_out";
		command->exit_code = 124;
	} else if (command->killed || (command->interrupted && code == 130)) {
		command->status = "cancelled";
	} else {
		command->status = code == 0 ? "ok" : "error";
	}
	command_note_limits(command);
	command_note_filter(command, wait_status);
	command_note_file_size(command, wait_status);
}

void command_exited(struct command *command, int wait_status)
{
	if (command->state >= COMMAND_EXITED)
		return;
	command->state = COMMAND_EXITED;
	set_status(command, wait_status);
	command->ended_ns = sbx_now_ns();
	/* after SIGTERM the shell is often gone before a child has removed its lock file: init
	 * tells when that is over */
	if (command->kill_phase != COMMAND_KILL_TERM)
		leave_session(command);
}

void command_tree_empty(struct command *command)
{
	if (command->state == COMMAND_EXITED)
		leave_session(command);
}

void command_killed_with_session(struct command *command)
{
	bool expected = command->timed_out || command->killed || command->limited;

	sbx_timer_unset(command->timer);
	if (command->state == COMMAND_EXITED)
		return;
	command->state = COMMAND_EXITED;
	set_status(command, SIGKILL);
	command->ended_ns = sbx_now_ns();
	if (!expected)
		command_add_note(command, "killed together with its workspace session");
}

void command_kill(struct command *command)
{
	if (command->state > COMMAND_RUNNING || command->kill_phase != COMMAND_KILL_NONE)
		return;
	command->killed = true;
	if (command->state == COMMAND_RUNNING)
		send_term(command); /* else as soon as it runs */
}

/* Takes the members of a publication's answer into the command's result. */
static void take_outcome(struct command *command, struct json_object *result)
{
	SBX_JSON struct json_object *answer = publish_answer(command->session_id, result);

	sbx_json_put(&command->outcome);
	command->outcome = sbx_take(&answer);
}

static void take_failure(struct command *command, const struct sbx_err *err)
{
	command->outcome = json_object_new_object();
	if (!command->outcome)
		abort();
	sbx_json_add(command->outcome, "publish", NULL);
	sbx_json_add_bool(command->outcome, "publish_rejected", true);
	sbx_json_add_string(command->outcome, "publish_reject_class", "publish_error");
	sbx_json_add_string(command->outcome, "publish_error", err->message);
}

/* May free the command, unless it has a session. */
static void end(struct command *command, struct json_object *result, const struct sbx_err *err)
{
	struct daemon *daemon = command->daemon;

	command->state = COMMAND_ENDED;
	daemon->n_live_commands--;
	commands_index_end(daemon, command->id);
	if (result)
		take_outcome(command, result);
	else if (err)
		take_failure(command, err);
	if (command_save(command) < 0)
		daemon_log(
			"write the result of %s: the next sandboxd will not know it", command->id);
	command_release_held(command);
	command_wake(command);
	commands_expire(daemon);
	daemon_touch(daemon);
}

void command_end(struct command *command, struct json_object *result, const struct sbx_err *err)
{
	command->session = NULL;
	end(command, result, err);
}

void command_end_early(struct command *command)
{
	command->outcome = json_object_new_object();
	if (!command->outcome)
		abort();
	sbx_json_add(command->outcome, "publish", NULL);
	sbx_json_add_string(command->outcome, "next_step",
		"other commands run in this workspace session: its work is published when the last "
		"of them ends");
	end(command, NULL, NULL); /* it keeps its session, which still has something to tell it */
}

void command_publish(struct command *command, struct json_object *result, const struct sbx_err *err)
{
	command->session = NULL;
	if (result || err)
		sbx_json_put(&command->outcome);
	if (result)
		take_outcome(command, result);
	else if (err)
		take_failure(command, err);
	if (command_save(command) < 0)
		daemon_log("write the publication of %s: it is only told while this sandboxd lives",
			command->id);
}

static void fail_all(struct request_list *list, const struct sbx_err *err)
{
	struct request *request;

	while ((request = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, request, wait);
		request_fail(request, err, NULL);
	}
}

void command_fail(struct command *command, const struct sbx_err *err)
{
	command->session = NULL;
	fail_all(&command->waiters, err);
	fail_all(&command->held, err);
	command_free(command);
}
