/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dispatch.h"
#include "history.h"
#include "session_internal.h"

static const char *const state_names[] = {
	[SESSION_PREPARING] = "preparing",
	[SESSION_READY] = "idle",
	[SESSION_RUNNING] = "running",
	[SESSION_STOPPING] = "stopping",
	[SESSION_DROPPING] = "stopping",
	[SESSION_PUBLISHING] = "publishing",
	[SESSION_ENDED] = "ended",
};

const char *session_state_name(const struct session *session)
{
	if (session->state <= SESSION_RUNNING && session->end != SESSION_END_NONE)
		return state_names[SESSION_STOPPING];
	if (session->state == SESSION_RUNNING && session->empty)
		return state_names[SESSION_READY];
	if (session->state == SESSION_STOPPING && session->end == SESSION_END_NONE)
		return state_names[SESSION_READY];
	return state_names[session->state];
}

int session_alloc(struct daemon *daemon, const char *id, bool managed, struct session **ret)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return -ENOMEM;
	*session = (struct session){
		.daemon = daemon,
		.managed = managed,
		.state = SESSION_PREPARING,
		.created_ns = sbx_realtime_ns(),
		.slot = SLOT_NONE,
		.root_fd = -EBADF,
		.control_fd = -EBADF,
		.pidfd = -EBADF,
	};
	(void)snprintf(session->id, sizeof(session->id), "%s", id); /* ids fit */
	TAILQ_INIT(&session->commands);
	TAILQ_INIT(&session->finished);
	TAILQ_INIT(&session->waiters);
	TAILQ_INIT(&session->held);
	*ret = session;
	return 0;
}

void session_free(struct session *session)
{
	struct daemon *daemon;

	if (!session)
		return;
	daemon = session->daemon;
	session_close_init(session);
	sbx_timer_free(session->timer);
	if (session == daemon->standby) {
		daemon->standby = NULL;
	} else if (session->entry.tqe_prev) {
		TAILQ_REMOVE(&daemon->sessions, session, entry);
		daemon->n_sessions--;
	}
	daemon->n_stale -= session->stale;
	sbx_fd_close(&session->root_fd);
	sbx_head_done(&session->base);
	sbx_json_put(&session->refusal);
	free(session->first_command);
	free(session);
	history_unpinned(daemon);
}

static void session_list(struct session *session)
{
	TAILQ_INSERT_TAIL(&session->daemon->sessions, session, entry);
	session->daemon->n_sessions++;
}

void session_give_up_standby(struct session *session)
{
	session->daemon->standby = NULL;
	session->daemon->standby_failed = true;
	session_list(session);
}

int session_pinned_layers(const struct daemon *daemon, struct sbx_stack *ret)
{
	const struct session *session;
	int r = daemon->standby ? sbx_stack_include_all(ret, &daemon->standby->base.stack) : 0;

	TAILQ_FOREACH(session, &daemon->sessions, entry)
	if (r == 0)
		r = sbx_stack_include_all(ret, &session->base.stack);
	return r;
}

static int copy_head(const struct sbx_head *from, struct sbx_head *ret)
{
	ret->version = from->version;
	return sbx_stack_copy(&from->stack, &ret->stack);
}

/* A new session over the present head: directory made, slot asked for. */
static int session_new(
	struct daemon *daemon, bool managed, struct session **ret, struct sbx_err *err)
{
	struct session *session;
	char id[SBX_ID_SIZE];
	int r;

	r = sbx_id_new(SBX_ID_SESSION, id);
	if (r == 0)
		r = session_alloc(daemon, id, managed, &session);
	if (r < 0)
		return sbx_err_set(err, -r, "make a session: %m");
	r = copy_head(daemon_head(daemon), &session->base);
	if (r < 0)
		(void)sbx_err_set(err, -r, "make a session: %m");
	if (r == 0)
		r = session_dir_make(daemon->context.sessions_fd, daemon->context.layers_fd, id,
			managed, &session->base, err);
	if (r == 0 && daemon_has_rootfs(daemon))
		r = session_dir_make_root(daemon->context.sessions_fd, id, err);
	if (r == 0)
		r = session_prepare_slot(session, err);
	if (r < 0) {
		session_bury_dir(session);
		session_free(session);
		return r;
	}
	*ret = session;
	return 0;
}

static void stop_holding(struct request *request)
{
	struct session *session = request->waiting_on;

	TAILQ_REMOVE(&session->held, request, wait);
	request->cancel = NULL;
}

void session_hold_request(struct session *session, struct request *request)
{
	request->waiting_on = session;
	request->cancel = stop_holding;
	TAILQ_INSERT_TAIL(&session->held, request, wait);
}

static void release_held(struct session *session)
{
	struct request *request;

	while ((request = TAILQ_FIRST(&session->held))) {
		stop_holding(request);
		dispatch(request);
	}
}

static void on_prepared(void *data, int fd, const struct sbx_err *err)
{
	struct session *session = data;
	bool empty;

	if (err) {
		sbx_fd_close(&fd);
		session_fail(session, err);
		return;
	}
	sbx_fd_close(&session->root_fd);
	session->root_fd = fd;
	session->state = SESSION_READY;
	slot_count(session->daemon->slots, session->slot, &session->counts);
	/* of what cannot be read now nothing is known: then it never counts as untouched */
	if (session_dir_upper(session->daemon->context.sessions_fd, session->id,
		    &session->upper_stat, &empty) < 0)
		session->upper_stat = (struct stat){0};
	if (daemon_has_rootfs(session->daemon) &&
		session_dir_root_upper(session->daemon->context.sessions_fd, session->id,
			&session->root_stat, &empty) < 0)
		session->root_stat = (struct stat){0};
	release_held(session);
	session_advance(session);
}

int session_prepare_slot(struct session *session, struct sbx_err *err)
{
	int r = slot_prepare(session->daemon->slots, session->id, &session->base.stack, on_prepared,
		session, &session->slot);

	session->state = SESSION_PREPARING;
	if (r == -EMFILE)
		return sbx_err_kind(err, SBX_KIND_BUSY, EMFILE,
			"all %d session slots of sandbox '%s' are in use; end some sessions",
			SBX_SPAWN_SLOTS_MAX, session->daemon->sandbox.id);
	return r < 0 ? sbx_err_set(err, -r, "prepare session %s: %m", session->id) : 0;
}

static bool fits_head(const struct session *session)
{
	return session->base.version == daemon_head(session->daemon)->version;
}

/* The head moved on: the standby would show old files. */
static void drop_standby(struct daemon *daemon)
{
	struct session *standby = sbx_take(&daemon->standby);

	standby->stale = true;
	daemon->n_stale++;
	session_list(standby);
	session_stop(standby, SESSION_END_DISCARD);
}

void session_prepare_standby(struct daemon *daemon)
{
	struct sbx_err err = SBX_ERR_INIT;

	if (daemon->stopping || daemon->standby_failed)
		return;
	if (daemon->standby && fits_head(daemon->standby))
		return;
	if (daemon->standby)
		drop_standby(daemon);
	/* while publications follow each other, each would make one in vain */
	if (daemon->n_stale)
		return;
	if (session_new(daemon, false, &daemon->standby, &err) < 0)
		daemon_log("prepare the next session: %s", err.message); /* exec tries again */
}

static int check_room(struct daemon *daemon, struct sbx_err *err)
{
	if (daemon->n_sessions < SESSIONS_MAX)
		return 0;
	return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
		"sandbox '%s' has %d live sessions, its limit; wait for commands to end or discard "
		"managed sessions",
		daemon->sandbox.id, SESSIONS_MAX);
}

int session_take_automatic(struct daemon *daemon, struct session **ret, struct sbx_err *err)
{
	struct session *session;
	int r = check_room(daemon, err);

	if (r < 0)
		return r;
	daemon->standby_failed = false;
	if (daemon->standby && !fits_head(daemon->standby))
		drop_standby(daemon);
	session = sbx_take(&daemon->standby);
	if (!session)
		r = session_new(daemon, false, &session, err);
	if (r < 0)
		return r;
	session_list(session);
	*ret = session;
	return 0;
}

int session_new_managed(struct daemon *daemon, struct session **ret, struct sbx_err *err)
{
	struct session *session;
	int r = check_room(daemon, err);

	if (r == 0)
		r = session_new(daemon, true, &session, err);
	if (r < 0)
		return r;
	session_list(session);
	*ret = session;
	return 0;
}

int session_adopt(struct daemon *daemon, const char *id, struct sbx_head *base,
	struct session **ret, struct sbx_err *err)
{
	struct session *session;
	int r = session_dir_renew_work(daemon->context.sessions_fd, id);

	if (r == 0)
		r = session_alloc(daemon, id, true, &session);
	if (r < 0)
		return sbx_err_set(err, -r, "bring back session %s: %m", id);
	session->base = *base;
	*base = (struct sbx_head){0};
	session->created_ns = session_dir_made_ns(daemon->context.sessions_fd, id);
	session_list(session);
	disk_unknown(session);
	r = session_prepare_slot(session, err);
	if (r < 0) {
		session_free(session);
		return r;
	}
	*ret = session;
	return 0;
}

struct session *session_find(struct daemon *daemon, const char *id, struct sbx_err *err)
{
	struct session *session;

	TAILQ_FOREACH(session, &daemon->sessions, entry)
	if (!strcmp(session->id, id) && session->end != SESSION_END_DISCARD)
		return session;
	(void)sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
		"no workspace session '%.64s' in sandbox '%s'; it may have ended", id,
		daemon->sandbox.id);
	return NULL;
}

int session_check_usable(const struct session *session, struct sbx_err *err)
{
	/* stopping without an end: it goes to rest, and wakes up for the next command */
	if (session->state <= SESSION_STOPPING && session->end == SESSION_END_NONE)
		return 0;
	return sbx_err_kind(err, SBX_KIND_CONFLICT, ESHUTDOWN,
		"workspace session %s is %s; start a new one (omit workspace_session_id)",
		session->id, session_state_name(session));
}

static bool same_ctime(const struct stat *a, const struct stat *b)
{
	return a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Untouched: not even the root's change time moved since the overlay was mounted. */
static bool is_untouched(const struct session *session)
{
	int sessions_fd = session->daemon->context.sessions_fd;
	struct stat st;
	bool empty;

	if (session_dir_upper(sessions_fd, session->id, &st, &empty) < 0 || !empty ||
		!same_ctime(&st, &session->upper_stat))
		return false;
	if (!daemon_has_rootfs(session->daemon))
		return true;
	return session_dir_root_upper(sessions_fd, session->id, &st, &empty) == 0 && empty &&
	       same_ctime(&st, &session->root_stat);
}

static void on_renewed(void *data, int fd, const struct sbx_err *err)
{
	struct session *session = data;

	sbx_fd_close(&fd);
	session->state = SESSION_READY;
	if (err) {
		session_fail(session, err);
		return;
	}
	release_held(session);
	session_advance(session);
}

bool session_become_standby(struct session *session)
{
	struct daemon *daemon = session->daemon;
	struct session *standby;
	char id[SBX_ID_SIZE];
	int fd = daemon->context.sessions_fd;

	if (daemon->stopping || daemon->standby || session->managed || session->n_file_jobs ||
		!fits_head(session) || !is_untouched(session))
		return false;
	if (sbx_id_new(SBX_ID_SESSION, id) < 0 || session_alloc(daemon, id, false, &standby) < 0)
		return false;
	if (renameat(fd, session->id, fd, id) < 0) {
		session_free(standby);
		return false;
	}
	standby->base = session->base;
	standby->upper_stat = session->upper_stat;
	standby->root_stat = session->root_stat;
	standby->slot = session->slot;
	slot_count(daemon->slots, standby->slot, &standby->counts);
	standby->root_fd = sbx_fd_take(&session->root_fd);
	session->base = (struct sbx_head){0};
	session->slot = SLOT_NONE;
	if (slot_renew(daemon->slots, standby->slot, on_renewed, standby) < 0) {
		struct sbx_err err = SBX_ERR_INIT;

		(void)sbx_err_set(&err, EIO, "renew a session slot");
		session_list(standby);
		standby->state = SESSION_READY;
		session_fail(standby, &err);
		return true;
	}
	daemon->standby = standby;
	return true;
}
