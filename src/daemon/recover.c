/* SPDX-License-Identifier: MIT */
#include "recover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "sbx/fs.h"
#include "sbx/publish.h"
#include "session_internal.h"

typedef int (*entry_fn)(struct daemon *daemon, const char *name, struct sbx_err *err);

/* Calls fn for each name in a directory of ours. The names are read first: fn changes it. */
static int for_each_name(struct daemon *daemon, int parent_fd, entry_fn fn, struct sbx_err *err)
{
	int fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SBX_BUF struct sbx_buf names = SBX_BUF_INIT;
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	if (fd < 0)
		return sbx_err_set(err, errno, "list a directory: %m");
	dir = fdopendir(fd);
	if (!dir) {
		sbx_fd_close(&fd);
		return sbx_err_set(err, ENOMEM, "list a directory: %m");
	}
	while (r == 0 && (entry = readdir(dir)))
		if (sbx_id_valid(entry->d_name))
			r = sbx_buf_append(&names, entry->d_name, strlen(entry->d_name) + 1);
	(void)closedir(dir); /* read-only */
	if (r < 0)
		return sbx_err_set(err, -r, "list a directory: %m");
	for (size_t at = 0; r == 0 && at < names.size; at += strlen(names.data + at) + 1)
		r = fn(daemon, names.data + at, err);
	return r;
}

/* Its processes are gone; what it left is for its session to publish. */
static void revive_command(struct daemon *daemon, struct command *command)
{
	struct session *session;

	command->state = COMMAND_EXITED;
	daemon->n_live_commands++;
	TAILQ_FOREACH(session, &daemon->sessions, entry)
	if (!strcmp(session->id, command->session_id) && session->end == SESSION_END_PUBLISH) {
		TAILQ_INSERT_TAIL(&session->finished, command, in_session);
		return;
	}
	command_end(command, NULL, NULL);
}

/* Without command.json it never started: its sandboxd died while it made the directory. */
static bool never_started(struct daemon *daemon, const char *name)
{
	char path[SBX_ID_SIZE + sizeof("/command.json")];

	(void)snprintf(path, sizeof(path), "%s/command.json", name); /* ids fit */
	return faccessat(daemon->context.commands_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

static int recover_command(struct daemon *daemon, const char *name, struct sbx_err *err SBX_UNUSED)
{
	struct sbx_err why = SBX_ERR_INIT;
	struct command *command;

	if (!sbx_id_has_prefix(name, SBX_ID_COMMAND))
		return 0;
	if (never_started(daemon, name)) {
		(void)sbx_fs_remove_tree(daemon->context.commands_fd, name); /* again next time */
		return 0;
	}
	if (command_load(daemon, name, &command, &why) < 0) {
		daemon_log("%s: it cannot be shown", why.message);
		return 0;
	}
	if (command->crashed)
		revive_command(daemon, command);
	else
		command_free(command);
	return 0;
}

static void remove_done(void *data SBX_UNUSED, const char *text SBX_UNUSED, size_t size SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	if (err)
		daemon_log("remove what is left of a session: %s", err->message);
}

/* It may hold any number of files, and clients wait for us: a worker does it meanwhile. */
static void remove_dead(struct daemon *daemon, const char *name)
{
	struct job_request request = {.name = "remove",
		.args = json_object_new_object(),
		.fd = -EBADF,
		.done = remove_done};

	if (!request.args)
		return; /* the next start sees it again */
	sbx_json_add_string(request.args, "session_dir", name);
	(void)pool_submit(daemon->pool, &request);
}

static void remove_dir(struct daemon *daemon, const char *name)
{
	int r = sbx_fs_remove_tree(daemon->context.sessions_fd, name);

	if (r < 0)
		daemon_log("remove what is left of %s: %s", name, strerror(-r));
}

static int recover_automatic(
	struct daemon *daemon, const char *name, struct sbx_head *base, struct sbx_err *err)
{
	struct session *session;
	int r = session_alloc(daemon, name, false, &session);

	if (r < 0)
		return sbx_err_set(err, -r, "recover session %s: %m", name);
	session->base = *base;
	*base = (struct sbx_head){0};
	session->end = SESSION_END_PUBLISH;
	TAILQ_INSERT_TAIL(&daemon->sessions, session, entry);
	daemon->n_sessions++;
	return 0;
}

/* No upper: its work is in the head or in a reject. An empty one: it was the standby, was never
 * finished, or changed nothing (a managed session stays all the same). */
static bool has_no_work(struct daemon *daemon, const char *name, bool managed)
{
	struct stat st;
	bool empty;
	int r = session_dir_upper(daemon->context.sessions_fd, name, &st, &empty);

	return r == -ENOENT || (r == 0 && empty && !managed);
}

static int recover_session(struct daemon *daemon, const char *name, struct sbx_err *err)
{
	struct sbx_err why = SBX_ERR_INIT;
	struct sbx_head base = {0};
	struct session *session;
	bool managed = false;
	int r;

	if (!strncmp(name, SESSION_DEAD_PREFIX, strlen(SESSION_DEAD_PREFIX))) {
		remove_dead(daemon, name);
		return 0;
	}
	r = sbx_publish_recover(&daemon->context, name, &why);
	if (r == 0)
		r = session_dir_load(daemon->context.sessions_fd, name, &managed, &base, &why);
	if (has_no_work(daemon, name, managed)) {
		sbx_head_done(&base);
		remove_dir(daemon, name);
		return 0;
	}
	if (r < 0) {
		/* kept as it is: a person can still look into it */
		daemon_log("session %s is left alone: %s", name, why.message);
		return 0;
	}
	if (!managed)
		r = recover_automatic(daemon, name, &base, err);
	else if (session_adopt(daemon, name, &base, &session, &why) < 0)
		daemon_log("session %s stays on disk: %s", name, why.message);
	sbx_head_done(&base);
	return r;
}

static int sweep(struct daemon *daemon, struct sbx_err *err)
{
	struct sbx_stack keep = {0};
	struct sbx_err why = SBX_ERR_INIT;
	uint64_t n_removed;
	int r = session_pinned_layers(daemon, &keep);

	if (r < 0)
		(void)sbx_err_set(err, -r, "sweep the store: %m");
	else if (sbx_reject_bases(&daemon->context, &keep, &why) < 0)
		/* it may need any layer; all else is served */
		daemon_log("%s; nothing is swept until it is mended or dropped", why.message);
	else
		r = sbx_store_sweep(daemon->context.store_fd, daemon->log, &keep, &n_removed, err);
	sbx_stack_done(&keep);
	return r;
}

static void publish_automatic(struct daemon *daemon)
{
	struct session *session, *next;

	for (session = TAILQ_FIRST(&daemon->sessions); session; session = next) {
		next = TAILQ_NEXT(session, entry);
		if (session->end == SESSION_END_PUBLISH)
			session_publish_now(session);
	}
}

int recover(struct daemon *daemon, struct sbx_err *err)
{
	int r = for_each_name(daemon, daemon->context.sessions_fd, recover_session, err);

	if (r == 0)
		r = for_each_name(daemon, daemon->context.commands_fd, recover_command, err);
	if (r == 0)
		r = sweep(daemon, err); /* before anything new is prepared */
	if (r == 0)
		publish_automatic(daemon);
	return r;
}
