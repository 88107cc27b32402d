/* SPDX-License-Identifier: MIT */
/*
 * A command session: one shell command with its terminal and transcript.
 *
 *   WAITING   until its workspace session has a slot
 *   STARTING  START was sent to init
 *   RUNNING   the shell runs; the terminal is ours to read and write
 *   EXITED    the shell is gone; the terminal is drained and the session published
 *   ENDED     the result stands, also on disk
 */
#ifndef SBX_DAEMON_COMMAND_H
#define SBX_DAEMON_COMMAND_H

#include "client.h"
#include "sbx/cgroup.h"
#include "sbx/init.h"
#include "sbx/transcript.h"
#include "session.h"

#define COMMANDS_KEPT       512 /* commands that stay readable, at least */
#define COMMANDS_KEPT_NS    (24 * 3600 * SBX_NSEC_PER_SEC) /* from their end, at least */
#define COMMANDS_KEPT_MAX   4096       /* ended commands of any age; older ones are removed */
#define COMMAND_SUMMARY_MAX 4096       /* bytes of the text that layer.json and lists show */
#define COMMAND_STDIN_MAX   (1u << 20) /* bytes of one write_command_stdin */
#define COMMAND_ROWS        40
#define COMMAND_COLUMNS     120
#define COMMAND_GRACE_NS    (2 * SBX_NSEC_PER_SEC) /* between SIGTERM and SIGKILL */

enum command_state {
	COMMAND_WAITING,
	COMMAND_STARTING,
	COMMAND_RUNNING,
	COMMAND_EXITED,
	COMMAND_ENDED, /* what it left in a live session may still print: see command_linger() */
};

/* Ending by force: everything gets SIGTERM and a moment to clean up, then SIGKILL. */
enum command_kill_phase {
	COMMAND_KILL_NONE,
	COMMAND_KILL_TERM,
	COMMAND_KILL_KILL,
};

/* An input line without its end, as the terminal has it in canonical mode. */
struct stdin_line {
	size_t length; /* bytes */
	bool quoted;   /* the next byte is taken literally (VLNEXT) */
};

struct command {
	TAILQ_ENTRY(command) entry;
	TAILQ_ENTRY(command) in_session;
	struct daemon *daemon;
	struct session *session; /* NULL when it has none any more; ENDED with one: its work is
				  * published with the session's last command */
	char id[SBX_ID_SIZE];
	char session_id[SBX_ID_SIZE];
	uint32_t number; /* for init */
	enum command_state state;
	char *summary; /* the text, cut to COMMAND_SUMMARY_MAX */
	int text_fd;   /* sealed memfd, until START */
	uint32_t text_size;

	int dir_fd; /* commands/<id> */
	struct sbx_transcript *transcript;
	uint64_t yielded_rows; /* exec and stdin results go on from here */

	int master_fd;
	int slave_fd; /* held so that the terminal does not hang up while the shell has closed it */
	struct sbx_watch *master_watch;
	struct sbx_buf unwritten;     /* stdin that the terminal has not taken: of one request */
	uint64_t n_queued, n_written; /* of all stdin, ever */
	struct stdin_line line;       /* what the terminal holds of an unfinished line */

	uint64_t started_ns, ended_ns; /* CLOCK_MONOTONIC */
	uint64_t started_real_ns;
	uint64_t timeout_ns;     /* 0: none */
	struct sbx_timer *timer; /* timeout, then grace */
	enum command_kill_phase kill_phase;
	bool timed_out, killed, interrupted;
	bool limited; /* its session was ended for a limit, which is noted */

	const char *status; /* the contract's word; "running" until ENDED */
	int exit_code;
	struct json_object *outcome;     /* publish, publish_rejected, ...: members of the result */
	bool crashed;                    /* read back as running: its sandboxd is gone */
	struct sbx_cgroup_counts counts; /* of its session's group, when it started */
	char *note; /* plain words, a line each: what limit or accident it met; or NULL */

	struct request_list waiters;
	struct request_list held; /* stdin that came before there was a terminal */
};

/* command.c */
struct command *command_alloc(struct daemon *daemon);
int command_new(struct daemon *daemon, const char *text, size_t size, uint64_t timeout_ns,
	struct command **ret, struct sbx_err *err);
void command_free(struct command *command);
/* The same for one that nobody was told of: nothing of it stays on the disk. */
void command_forget(struct command *command);
void commands_free(struct daemon *daemon);
/* NULL and SBX_KIND_NOT_FOUND when there is none, live or on disk. May free other ended commands.
 */
struct command *command_find(struct daemon *daemon, const char *id, struct sbx_err *err);
/* -EAGAIN: the socket is full, and the command goes on waiting. */
int command_send_start(struct command *command, int control_fd);
void command_started(
	struct command *command, const struct sbx_init_message *message, int master_fd);
void command_exited(struct command *command, int wait_status);
void command_killed_with_session(struct command *command);
/* It could not be started: its requests get err, and it is forgotten. */
void command_fail(struct command *command, const struct sbx_err *err);
/* The result stands. result: of the publication (borrowed; NULL: none), err: it failed. */
void command_end(struct command *command, struct json_object *result, const struct sbx_err *err);
/* Ends while other commands of its automatic session run: see command_publish(). */
void command_end_early(struct command *command);
/* What publishing came to, for one that ended early. */
void command_publish(
	struct command *command, struct json_object *result, const struct sbx_err *err);
/* Ends it on somebody's wish: SIGTERM, a grace, SIGKILL. */
void command_kill(struct command *command);
/* None of its processes is left: the grace need not be waited for. */
void command_tree_empty(struct command *command);

/* command_note.c */
/* text: one or more lines. */
void command_add_note(struct command *command, const char *text);
/* Before it starts, and when it has ended: what happened between is noted. */
void command_count_limits(struct command *command);
void command_note_limits(struct command *command);
/* When its end looks like that of a program which the system call filter killed. */
void command_note_filter(struct command *command, int wait_status);
/* The same of one that a file too large ended. */
void command_note_file_size(struct command *command, int wait_status);
/* A new array, one string for each line. */
struct json_object *command_notes(const struct command *command);

/* command_io.c */
int command_open_terminal(struct command *command, int master_fd);
void command_close_terminal(struct command *command);
/* Reads what the terminal still holds. */
void command_drain(struct command *command);
/* The shell has exited and its session lives on: what it printed is read; the terminal stays as
 * long as a process that it left in the background has it, whose output the transcript takes. */
void command_linger(struct command *command);

/* command_stdin.c */
/*
 * Gives bytes to the terminal; those that it does not take wait (see command_drop_unwritten()).
 * -EAGAIN while bytes of another request wait, -EINVAL for a line that the terminal would cut.
 * A character that sends a signal does so even when the terminal is full of unread input, which is
 * then discarded, as a terminal does (termios(3), NOFLSH).
 */
int command_write(struct command *command, const char *bytes, size_t size, struct sbx_err *err);
/* Gives the terminal what waits, as far as it takes it. */
void command_flush_stdin(struct command *command);
/* Forgets what waits: its request is answered, and told how much was not taken. */
void command_drop_unwritten(struct command *command);

/* command_answer.c */
/* Answers when the command has ended, or at deadline_ns (CLOCK_MONOTONIC). Keeps the request. */
void command_wait(struct command *command, struct request *request, uint64_t deadline_ns);
/* Keeps a request until the command has started, or will not any more; then it is dispatched again.
 */
void command_hold(struct command *command, struct request *request);
void command_release_held(struct command *command);
/* Answers the waiters that need not wait any longer. */
void command_wake(struct command *command);
void command_add_outcome(struct json_object *answer, const struct command *command);
/* Ids, status, exit code and time. */
void command_add_state(struct json_object *answer, const struct command *command);
/* Rows [start, start + limit), contiguous. */
int command_add_output(struct json_object *answer, struct command *command, uint64_t start,
	uint64_t limit, struct sbx_err *err);
/* What publishing came to, in the words of the contract. The caller puts it. */
struct json_object *publish_answer(const char *session_id, struct json_object *result);

/* command_store.c */
int command_save(struct command *command);
int command_load(struct daemon *daemon, const char *id, struct command **ret, struct sbx_err *err);
/* Frees ended commands beyond those kept in memory. */
void commands_trim(struct daemon *daemon);
/* And old ones from the disk. */
void commands_expire(struct daemon *daemon);
/* One that runs has no end yet: 0. */
int commands_index_add(struct daemon *daemon, const char *id, uint64_t ended_ns);
/* It has ended now: from here on its age counts. */
void commands_index_end(struct daemon *daemon, const char *id);
/* Reads the names and ages of commands on disk, at start. */
int commands_index_load(struct daemon *daemon);

/* command_ops.c */
void op_exec_command(struct request *request);
void op_write_command_stdin(struct request *request);
void op_read_command_lines(struct request *request);

#endif
