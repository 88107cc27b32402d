/* SPDX-License-Identifier: MIT */
/*
 * The end of a session, in this order, each step only after the one before is known to be done:
 * kill init (the kernel kills all processes in its pid namespace) → init's pidfd reports its death
 * → the terminals' last bytes are read → the slot is dropped (the overlay is released) → the upper
 * is published or discarded → the commands that ran in it end, and who waits for them is told.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sbx/sys.h"
#include "session_internal.h"

#define KILL_WAIT_NS (5 * SBX_NSEC_PER_SEC) /* for the kernel to end all processes */

static void remove_dir_done(void *data SBX_UNUSED, const char *text SBX_UNUSED,
	size_t size SBX_UNUSED, const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	if (err)
		daemon_log(
			"remove a session directory: %s; the next start tries again", err->message);
}

/* The directory's work is done: out of the way now, removed by a worker some time. */
void session_bury_dir(struct session *session)
{
	struct daemon *daemon = session->daemon;
	char name[SBX_ID_SIZE + 8];
	struct job_request request = {.name = "remove", .fd = -EBADF, .done = remove_dir_done};

	if (session_dir_bury(daemon->context.sessions_fd, session->id, name) < 0)
		return;
	request.args = json_object_new_object();
	if (!request.args)
		return;
	sbx_json_add_string(request.args, "session_dir", name);
	(void)pool_submit(daemon->pool, &request); /* else the next start removes it */
}

static struct json_object *discard_answer(const struct session *session)
{
	struct json_object *answer = json_object_new_object();

	if (!answer)
		abort();
	sbx_json_add_string(answer, "workspace_session_id", session->id);
	sbx_json_add_bool(answer, "discarded", true);
	return answer;
}

/* Ends the commands of the session and answers who waited for it. */
static void tell(struct session *session, struct json_object *result, const struct sbx_err *err)
{
	struct command *command;
	struct request *request;

	while ((command = TAILQ_FIRST(&session->finished))) {
		TAILQ_REMOVE(&session->finished, command, in_session);
		if (command->state == COMMAND_ENDED)
			command_publish(command, result, err);
		else
			command_end(command, result, err);
	}
	while ((request = TAILQ_FIRST(&session->waiters))) {
		TAILQ_REMOVE(&session->waiters, request, wait);
		if (err)
			request_fail(request, err, NULL);
		else if (result)
			request_result(request, publish_answer(session->id, result));
		else
			request_result(request, discard_answer(session));
	}
}

static void finish(struct session *session, struct json_object *result)
{
	struct daemon *daemon = session->daemon;

	session->state = SESSION_ENDED;
	tell(session, result, NULL);
	session_free(session);
	session_prepare_standby(daemon);
	daemon_touch(daemon);
}

/* The session goes on to live as a managed one: its work could not be published now. */
static void keep_alive(
	struct session *session, struct json_object *result, const struct sbx_err *err)
{
	struct sbx_err prepare_err = SBX_ERR_INIT;

	session->managed = true;
	session->end = SESSION_END_NONE;
	disk_unknown(session);
	tell(session, result, err);
	if (session_dir_renew_work(session->daemon->context.sessions_fd, session->id) < 0 ||
		session_prepare_slot(session, &prepare_err) < 0) {
		daemon_log("session %s is kept on disk and comes back at the next start: %s",
			session->id, prepare_err.message);
		session_free(session);
	}
}

static void on_brought_back(void *data, const char *text SBX_UNUSED, size_t size SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	struct session *session = data;

	struct json_object *refusal = sbx_take(&session->refusal);

	if (err)
		daemon_log("bring the work of session %s back: %s", session->id, err->message);
	keep_alive(session, refusal, refusal ? NULL : &session->failure);
	sbx_json_put(&refusal);
}

/* The tree stands in a layer or a reject that is none: back with it into the session. */
static void bring_back(struct session *session)
{
	struct daemon *daemon = session->daemon;
	struct job_request job = {
		.name = "recover", .fd = -EBADF, .done = on_brought_back, .data = session};
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	job.args = json_object_new_object();
	if (!job.args)
		abort();
	sbx_json_add_string(job.args, "session_dir", session->id);
	sbx_json_add(job.args, "head", stack_to_json(&daemon_head(daemon)->stack));
	r = pool_submit(daemon->pool, &job);
	if (r < 0) {
		(void)sbx_err_set(&err, -r, "ask a worker: %m");
		on_brought_back(session, NULL, 0, &err, NULL); /* the next start brings it back */
	}
}

static void keep_after_failure(struct session *session, const struct sbx_err *err)
{
	(void)sbx_err_kind(&session->failure, err->kind, EIO,
		"%s; nothing is lost: the work is kept in workspace session %s, publish it again "
		"with 'sbx-admin session publish %s %s' when this is mended",
		err->message, session->id, session->daemon->sandbox.id, session->id);
	bring_back(session);
}

/*
 * A managed session goes on with its work, so the reject is undone: without its reject.json it is
 * one that was not finished, whose tree belongs to the session (also for the next start).
 */
static void keep_after_refusal(struct session *session, struct json_object *result)
{
	struct daemon *daemon = session->daemon;
	const char *reject_id = sbx_json_string(result, "reject_id", "");
	char path[SBX_ID_SIZE + sizeof("/reject.json")];

	(void)snprintf(path, sizeof(path), "%s/reject.json", reject_id); /* ids fit */
	if (unlinkat(daemon->context.rejects_fd, path, 0) < 0) {
		daemon_log("session %s stays a reject: %s: %s", session->id, path, strerror(errno));
		session_bury_dir(session);
		finish(session, result);
		return;
	}
	json_object_object_del(result, "reject_id");
	session->refusal = json_object_get(result);
	bring_back(session);
}

static void on_published(void *data, struct json_object *result, const struct sbx_err *err,
	struct json_object *details SBX_UNUSED)
{
	struct session *session = data;
	const char *outcome = sbx_json_string(result, "outcome", "");

	if (err) {
		keep_after_failure(session, err);
	} else if (!strcmp(outcome, "rejected") && session->managed) {
		keep_after_refusal(session, result);
	} else {
		session_bury_dir(session);
		finish(session, result);
	}
}

void session_publish_now(struct session *session)
{
	char owner[SBX_ID_SIZE + sizeof("workspace_session:")];
	struct sbx_err err = SBX_ERR_INIT;
	struct command *command;
	int r;

	(void)snprintf(owner, sizeof(owner), "workspace_session:%s", session->id); /* fits */
	session->state = SESSION_PUBLISHING;
	TAILQ_FOREACH(command, &session->finished, in_session)
	if (command->state == COMMAND_EXITED)
		(void)command_save(command); /* a crash while it is published keeps its status */
	r = commit_session(session->daemon->commits, session->id, &session->base, owner,
		session->first_command, on_published, session);
	if (r < 0) {
		(void)sbx_err_set(&err, -r, "publish session %s: %m", session->id);
		on_published(session, NULL, &err, NULL);
	}
}

static void on_dropped(void *data, int fd, const struct sbx_err *err)
{
	struct session *session = data;

	sbx_fd_close(&fd);
	session->slot = SLOT_NONE;
	if (err)
		daemon_log("release session %s: %s", session->id, err->message);
	if (session->end == SESSION_END_PUBLISH && !err) {
		session_publish_now(session);
	} else if (session->end == SESSION_END_PUBLISH) {
		on_published(session, NULL, err, NULL); /* unknown who still writes: not read now */
	} else {
		session_bury_dir(session);
		finish(session, NULL);
	}
}

static void drop(struct session *session)
{
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	session->state = SESSION_DROPPING;
	if (session->n_file_jobs)
		return; /* session_release_root() comes back here */
	sbx_fd_close(&session->root_fd);
	r = slot_drop(session->daemon->slots, session->slot, on_dropped, session);
	if (r < 0) {
		(void)sbx_err_set(&err, -r, "release session %s: %m", session->id);
		on_dropped(session, -EBADF, &err);
	}
}

void session_release_root(struct session *session)
{
	session->n_file_jobs--;
	if (session->state == SESSION_DROPPING && session->n_file_jobs == 0)
		drop(session);
}

/* Commands whose shell did not report its end were killed with the session. Those that came while
 * it went to rest wait for its next init. */
static void finish_commands(struct session *session)
{
	struct command *command, *next;

	for (command = TAILQ_FIRST(&session->commands); command; command = next) {
		next = TAILQ_NEXT(command, in_session);
		if (command->state == COMMAND_WAITING && session->end == SESSION_END_NONE)
			continue;
		TAILQ_REMOVE(&session->commands, command, in_session);
		session->n_commands--;
		TAILQ_INSERT_TAIL(&session->finished, command, in_session);
		command_killed_with_session(command);
	}
	TAILQ_FOREACH(command, &session->finished, in_session)
	command_drain(command);
}

/* What a discarded or untouched session answers: nothing to publish. */
static struct json_object *no_op_result(const struct session *session)
{
	struct json_object *result = json_object_new_object();

	if (!result)
		abort();
	sbx_json_add_string(result, "outcome", "no_op");
	sbx_json_add_int(result, "version", (int64_t)daemon_head(session->daemon)->version);
	return result;
}

void session_stopped(struct session *session)
{
	session->empty = false;
	if (session->timer)
		sbx_timer_unset(session->timer);
	finish_commands(session);
	if (session->end == SESSION_END_NONE) {
		struct command *command;

		/* managed, and all its processes ended by themselves or were killed */
		while ((command = TAILQ_FIRST(&session->finished))) {
			TAILQ_REMOVE(&session->finished, command, in_session);
			command_end(command, NULL, NULL);
		}
		session->state = SESSION_READY;
		disk_settle(session);
		session_advance(session);
		return;
	}
	if (session->end == SESSION_END_PUBLISH && session_become_standby(session)) {
		SBX_JSON struct json_object *result = no_op_result(session);

		finish(session, result);
		return;
	}
	drop(session);
}

/* The kernel kills everything with init, and misses nobody. */
void session_kill_init(struct session *session)
{
	session->state = SESSION_STOPPING;
	if (session->pidfd >= 0)
		(void)sbx_sys_pidfd_signal(session->pidfd, SIGKILL); /* dead: pidfd says so */
}

void session_stop(struct session *session, enum session_end end)
{
	if (session->end == SESSION_END_NONE)
		session->end = end;
	if (session->state == SESSION_READY)
		session_advance(session);
	else if (session->state == SESSION_RUNNING)
		session_kill_init(session);
	/* PREPARING: session_advance() goes on when the slot is there; else on its way already */
}

static void wait_for_end(const struct session *session, uint64_t until_ns)
{
	uint64_t now = sbx_now_ns();
	struct pollfd dead = {.fd = session->pidfd, .events = POLLIN};

	if (session->pidfd >= 0 && now < until_ns) /* one that is interrupted is swept later */
		(void)poll(&dead, 1, (int)((until_ns - now) / SBX_NSEC_PER_MSEC) + 1);
}

void sessions_kill(struct daemon *daemon)
{
	uint64_t until_ns = sbx_now_ns() + KILL_WAIT_NS;
	struct session *session;

	if (daemon->standby && daemon->standby->pidfd >= 0)
		(void)sbx_sys_pidfd_signal(daemon->standby->pidfd, SIGKILL); /* dead: as well */
	TAILQ_FOREACH(session, &daemon->sessions, entry)
	if (session->pidfd >= 0)
		(void)sbx_sys_pidfd_signal(session->pidfd, SIGKILL);
	if (daemon->standby)
		wait_for_end(daemon->standby, until_ns);
	TAILQ_FOREACH(session, &daemon->sessions, entry)
	wait_for_end(session, until_ns);
}

/* The end of a grace, or of the time in which a managed session without processes keeps its init.
 */
static void on_timer(void *data)
{
	struct session *session = data;

	if (session->state == SESSION_RUNNING)
		session_kill_init(session);
}

static void set_timer(struct session *session, uint64_t at_ns)
{
	int r = session->timer
			? 0
			: sbx_timer_new(session->daemon->loop, on_timer, session, &session->timer);

	if (r == 0)
		r = sbx_timer_set(session->timer, at_ns);
	if (r < 0)
		on_timer(session); /* at once, then */
}

void session_stop_gently(struct session *session, enum session_end end)
{
	struct command *command;

	if (session->state != SESSION_RUNNING || session->empty) {
		session_stop(session, end);
		return;
	}
	session->end = end;
	TAILQ_FOREACH(command, &session->commands, in_session)
	command->killed = true;
	session_signal(session, 0, SIGTERM);
	set_timer(session, sbx_now_ns() + COMMAND_GRACE_NS);
}

void session_emptied(struct session *session)
{
	if (session->state != SESSION_RUNNING)
		return;
	session->empty = true;
	if (session->end != SESSION_END_NONE)
		session_kill_init(session);
	else if (session->managed)
		set_timer(session, sbx_now_ns() + SESSION_REST_NS);
}

void session_advance(struct session *session)
{
	struct sbx_err err = SBX_ERR_INIT;

	if (session->state != SESSION_READY)
		return;
	if (session->end != SESSION_END_NONE)
		session_stopped(session);
	/* the standby's init is what an exec need not wait for */
	else if ((session->n_commands || session == session->daemon->standby) &&
		 session_start_init(session, &err) < 0)
		session_fail(session, &err);
}

/* The last command of an automatic session ends it; all others end alone. */
void session_command_exited(struct session *session, struct command *command)
{
	TAILQ_REMOVE(&session->commands, command, in_session);
	session->n_commands--;
	if (!session->managed && session->n_commands == 0) {
		TAILQ_INSERT_TAIL(&session->finished, command, in_session);
		session_stop(session, SESSION_END_PUBLISH);
		return;
	}
	command_linger(command);
	if (session->managed) {
		command_end(command, NULL, NULL);
		return;
	}
	TAILQ_INSERT_TAIL(&session->finished, command, in_session);
	command_end_early(command);
}

static void fail_requests(struct request_list *list, const struct sbx_err *err)
{
	struct request *request;

	while ((request = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, request, wait);
		request_fail(request, err, NULL);
	}
}

static void fail_commands(struct session *session, const struct sbx_err *err)
{
	struct command *command;

	while ((command = TAILQ_FIRST(&session->commands))) {
		TAILQ_REMOVE(&session->commands, command, in_session);
		session->n_commands--;
		command_fail(command, err);
	}
	fail_requests(&session->held, err);
}

void session_fail(struct session *session, const struct sbx_err *err)
{
	struct daemon *daemon = session->daemon;

	daemon_log("session %s: %s", session->id, err->message);
	fail_commands(session, err);
	if (session == daemon->standby)
		session_give_up_standby(session);
	if (session->state == SESSION_PREPARING) {
		fail_requests(&session->waiters, err);
		/* a managed one's directory stays: it comes back with the next start */
		if (!session->managed)
			session_bury_dir(session);
		session_free(session);
		daemon_touch(daemon);
	} else if (!session->managed) {
		session_stop(session, SESSION_END_DISCARD); /* nothing ran in it */
	} else if (session->state == SESSION_RUNNING) {
		session_kill_init(session);
	} else {
		session_advance(session); /* to the end that somebody has asked for meanwhile */
	}
}
