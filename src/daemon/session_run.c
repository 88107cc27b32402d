/* SPDX-License-Identifier: MIT */
/*
 * A session's processes. Init is started when the first command waits; the commands' START
 * messages are written into the control socket at once and wait there until init reads them.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "sbx/init.h"
#include "sbx/sock.h"
#include "sbx/sys.h"
#include "session_internal.h"

void session_close_init(struct session *session)
{
	sbx_watch_free(sbx_take(&session->control_watch));
	sbx_watch_free(sbx_take(&session->pidfd_watch));
	sbx_fd_close(&session->control_fd);
	sbx_fd_close(&session->pidfd);
	sbx_buf_done(&session->unsent);
}

static struct command *find_command(struct session *session, uint32_t number)
{
	struct command *command;

	TAILQ_FOREACH(command, &session->commands, in_session)
	if (command->number == number)
		return command;
	return NULL;
}

/* READY with an error: init could not set the session up. Nothing ran. */
static void on_init_ready(struct session *session, const struct sbx_init_message *message)
{
	struct sbx_err err = SBX_ERR_INIT;

	if (message->code == 0)
		return;
	(void)sbx_err_set(
		&err, -message->code, "set up session %s: %s", session->id, message->detail);
	session_fail(session, &err);
}

/* Commands whose shells obeyed a SIGTERM wait for this. One that was started since init said so
 * makes it untrue: it will say it again. */
static void on_empty(struct session *session)
{
	struct command *command, *next;

	for (command = TAILQ_FIRST(&session->commands); command; command = next) {
		next = TAILQ_NEXT(command, in_session);
		command_tree_empty(command);
	}
	if (session->n_commands == 0)
		session_emptied(session);
}

static void on_message(struct session *session, const struct sbx_init_message *message, int *fd)
{
	struct command *command = find_command(session, message->command);

	switch (message->op) {
	case SBX_INIT_READY:
		on_init_ready(session, message);
		return;
	case SBX_INIT_STARTED:
		if (command)
			command_started(command, message, sbx_fd_take(fd));
		return;
	case SBX_INIT_EXITED:
		if (command)
			command_exited(command, message->code);
		return;
	case SBX_INIT_EMPTY:
		if (command)
			command_tree_empty(command);
		else if (!message->command)
			on_empty(session);
		return;
	default:
		return; /* init runs with the session's rights: what it makes up is ignored */
	}
}

static void watch_control(const struct session *session, bool full)
{
	if (session->control_watch)
		(void)sbx_watch_set(session->control_watch, EPOLLIN | (full ? EPOLLOUT : 0U));
}

/* Signals come first: an end that somebody waits for is not held up by commands to come. */
static bool send_unsent(struct session *session)
{
	while (session->unsent.size) {
		struct sbx_init_message message;

		memcpy(&message, session->unsent.data, sizeof(message));
		if (sbx_init_send(session->control_fd, &message, -EBADF) == -EAGAIN)
			return false;
		sbx_buf_consume(&session->unsent, sizeof(message)); /* or init is dead */
	}
	return true;
}

/* Until the socket is full; then the rest when init has read. */
static void send_waiting(struct session *session)
{
	bool full = !send_unsent(session);
	struct command *command;

	TAILQ_FOREACH(command, &session->commands, in_session)
	{
		if (full)
			break;
		if (command->state == COMMAND_WAITING)
			full = command_send_start(command, session->control_fd) == -EAGAIN;
	}
	watch_control(session, full);
}

static void on_control(void *data, uint32_t events)
{
	struct session *session = data;

	if (events & EPOLLOUT)
		send_waiting(session);
	while (session->control_fd >= 0) {
		struct sbx_init_message message;
		SBX_CLOSE int fd = -EBADF;
		int r = sbx_init_read(session->control_fd, &message, &fd);

		if (r == -EAGAIN)
			return;
		if (r <= 0) {
			/* init is dying, or cannot be understood: the pidfd tells when all is over,
			 * and an init that only closed its end must not make us wait for ever */
			sbx_watch_free(sbx_take(&session->control_watch));
			session_kill_init(session);
			return;
		}
		on_message(session, &message, &fd);
		if (session->state != SESSION_RUNNING)
			return;
	}
}

static void on_pidfd(void *data, uint32_t events SBX_UNUSED)
{
	struct session *session = data;

	session_close_init(session);
	if (session == session->daemon->standby) {
		session_give_up_standby(session); /* or the next exec would be given a dead one */
		session->end = SESSION_END_DISCARD;
	}
	if (!session->managed && session->end == SESSION_END_NONE)
		session->end = SESSION_END_PUBLISH; /* init died by itself: out of memory, say */
	session_stopped(session);
}

static void on_run(void *data, int fd, const struct sbx_err *err)
{
	struct session *session = data;
	int r;

	if (err) {
		session_close_init(session);
		session->state = SESSION_READY;
		session_fail(session, err);
		return;
	}
	session->pidfd = fd;
	r = sbx_watch_new(
		session->daemon->loop, fd, EPOLLIN, on_pidfd, session, &session->pidfd_watch);
	if (r < 0) {
		/* its end could not be seen; the next start waits for it and goes on from there */
		daemon_log("watch session %s: %s; sandboxd ends", session->id, strerror(-r));
		daemon_stop(session->daemon);
		return;
	}
	if (session->state == SESSION_STOPPING)
		(void)sbx_sys_pidfd_signal(session->pidfd, SIGKILL); /* asked for meanwhile */
}

int session_start_init(struct session *session, struct sbx_err *err)
{
	SBX_CLOSE int init_fd = -EBADF;
	int fds[2], r;

	r = sbx_sock_pair(fds);
	if (r == 0) {
		session->control_fd = fds[0];
		init_fd = fds[1];
		r = fcntl(session->control_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	}
	if (r == 0) {
		r = sbx_watch_new(session->daemon->loop, session->control_fd, EPOLLIN, on_control,
			session, &session->control_watch);
	}
	if (r == 0)
		r = slot_run(session->daemon->slots, session->slot, init_fd, on_run, session);
	if (r < 0) {
		session_close_init(session);
		return sbx_err_set(err, -r, "start session %s: %m", session->id);
	}
	session->state = SESSION_RUNNING;
	send_waiting(session);
	return 0;
}

int session_add_command(struct session *session, struct command *command, struct sbx_err *err)
{
	int r = session_check_usable(session, err);

	if (r < 0)
		return r;
	if (session->n_commands >= SESSION_COMMANDS_MAX)
		return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
			"session %s runs %d commands, its limit; wait for some to end", session->id,
			SESSION_COMMANDS_MAX);
	if (!session->first_command)
		session->first_command = strdup(command->summary);
	command->session = session;
	TAILQ_INSERT_TAIL(&session->commands, command, in_session);
	session->n_commands++;
	session->empty = false;
	disk_watch(session);
	if (session->timer)
		sbx_timer_unset(session->timer);
	if (session->state == SESSION_RUNNING)
		send_waiting(session);
	else if (session->state == SESSION_READY)
		r = session_start_init(session, err);
	if (r < 0) {
		TAILQ_REMOVE(&session->commands, command, in_session);
		session->n_commands--;
		command->session = NULL;
	}
	return r;
}

void session_signal(struct session *session, uint32_t command_number, int sig)
{
	struct sbx_init_message message = {
		.op = SBX_INIT_SIGNAL,
		.command = command_number,
		.code = sig,
	};

	if (session->control_fd < 0)
		return;
	if (sbx_buf_append(&session->unsent, &message, sizeof(message)) < 0)
		daemon_log("signal %d for session %s is lost: no memory", sig, session->id);
	else
		send_waiting(session); /* to an init that is dead: nothing is left to signal */
}
