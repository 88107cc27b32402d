/* SPDX-License-Identifier: MIT */
/*
 * Commands on disk: commands/<id>/command.json and the transcript. Written when the command starts
 * (so that a crash leaves its name), before its work is published (and how it exited) and when it
 * ends. Only the latest ended commands are kept in
 * memory; the others are read back when somebody asks for them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "sbx/fs.h"

#define COMMAND_JSON       "command.json"
#define COMMAND_JSON_MAX   (16u << 20) /* conflicts of a large reject */
#define COMMANDS_IN_MEMORY 64

int command_save(struct command *command)
{
	SBX_JSON struct json_object *o = json_object_new_object();
	const char *text;
	size_t size;

	if (!o)
		return -ENOMEM;
	sbx_json_add_int(o, "format", 1);
	sbx_json_add_string(o, "command_session_id", command->id);
	sbx_json_add_string(o, "workspace_session_id", command->session_id);
	sbx_json_add_bool(o, "ended", command->state == COMMAND_ENDED);
	sbx_json_add_string(o, "status", command->status); /* "running" until the shell's exit */
	sbx_json_add_int(o, "exit_code", command->exit_code);
	sbx_json_add_string(o, "command", command->summary);
	sbx_json_add_int(o, "started_ns", (int64_t)command->started_real_ns);
	sbx_json_add_int(o, "duration_ns",
		command->ended_ns ? (int64_t)(command->ended_ns - command->started_ns) : 0);
	sbx_json_add_int(o, "yielded_rows", (int64_t)command->yielded_rows);
	sbx_json_add_string(o, "note", command->note);
	sbx_json_add(o, "outcome", json_object_get(command->outcome));
	text = sbx_json_text(o, &size);
	return sbx_fs_write_at(command->dir_fd, COMMAND_JSON, 0600, text, size, 0);
}

static const char *status_word(const char *word)
{
	static const char *const words[] = {"ok", "error", "timed_out", "cancelled"};

	for (size_t i = 0; i < SBX_N_ELEMENTS(words); i++)
		if (!strcmp(word, words[i]))
			return words[i];
	return NULL; /* it was still running when its sandboxd ended */
}

/* How long it ran at least, when its end was not seen: until its transcript last grew. */
static uint64_t last_sign_of_life(const struct command *command)
{
	struct stat st;
	uint64_t at = 0;

	if (fstatat(command->dir_fd, "transcript", &st, AT_SYMLINK_NOFOLLOW) == 0)
		at = (uint64_t)st.st_mtim.tv_sec * SBX_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	return at > command->started_real_ns ? at - command->started_real_ns : 0;
}

static int fill(struct command *command, struct json_object *o)
{
	const char *note = sbx_json_string(o, "note", NULL);

	command->state = COMMAND_ENDED;
	(void)snprintf(command->session_id, sizeof(command->session_id), "%s",
		sbx_json_string(o, "workspace_session_id", "")); /* cut only if damaged */
	command->summary = strdup(sbx_json_string(o, "command", ""));
	command->started_real_ns = (uint64_t)sbx_json_int(o, "started_ns", 0);
	command->ended_ns = (uint64_t)sbx_json_int(o, "duration_ns", 0);
	command->yielded_rows = (uint64_t)sbx_json_int(o, "yielded_rows", 0);
	command->exit_code = (int)sbx_json_int(o, "exit_code", 0);
	command->outcome = json_object_get(sbx_json_member(o, "outcome"));
	command->status = status_word(sbx_json_string(o, "status", ""));
	command->crashed = !sbx_json_bool(o, "ended", false);
	if (!command->status) {
		command->status = "error";
		command->exit_code = 128 + SIGKILL;
		command->ended_ns = last_sign_of_life(command);
		note = "ended by the end of the sandboxd that ran it; its time counts to its last "
		       "output";
	}
	command->note = note ? strdup(note) : NULL;
	return command->summary && (!note || command->note) ? 0 : -ENOMEM;
}

static int load(struct command *command, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_JSON struct json_object *o = NULL;
	int r;

	command->dir_fd = openat(command->daemon->context.commands_fd, command->id,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (command->dir_fd < 0)
		return sbx_err_set(err, errno, "open command %s: %m", command->id);
	r = sbx_fs_read_at(command->dir_fd, COMMAND_JSON, COMMAND_JSON_MAX, &text);
	if (r < 0)
		return sbx_err_set(err, -r, "read command.json of %s: %m", command->id);
	r = sbx_json_parse(text.data ? text.data : "", text.size, &o, err);
	if (r == 0)
		r = fill(command, o);
	if (r < 0)
		return sbx_err_set(err, -r, "command.json of %s is damaged", command->id);
	return sbx_transcript_open(command->dir_fd, 0, 0, &command->transcript, err);
}

int command_load(struct daemon *daemon, const char *id, struct command **ret, struct sbx_err *err)
{
	struct command *command = command_alloc(daemon);
	int r;

	if (!command)
		return sbx_err_set(err, ENOMEM, "read command %s: no memory", id);
	(void)snprintf(command->id, sizeof(command->id), "%s", id); /* checked by the caller */
	command->state = COMMAND_ENDED;
	r = load(command, err);
	if (r < 0) {
		command_free(command);
		return r;
	}
	*ret = command;
	return 0;
}

static void remove_done(void *data SBX_UNUSED, const char *text SBX_UNUSED, size_t size SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	if (err)
		daemon_log("remove an old command: %s", err->message);
}

static void remove_from_disk(struct daemon *daemon, const char *id)
{
	struct job_request request = {.name = "remove",
		.args = json_object_new_object(),
		.fd = -EBADF,
		.done = remove_done};

	if (!request.args)
		return; /* the next start counts again */
	sbx_json_add_string(request.args, "command_dir", id);
	(void)pool_submit(daemon->pool, &request);
}

void command_forget(struct command *command)
{
	struct command_index *index = &command->daemon->command_index;
	size_t at = index->n;

	while (at > 0 && strcmp(index->entries[at - 1].id, command->id) != 0)
		at--;
	if (at > 0) {
		memmove(index->entries + at - 1, index->entries + at,
			(index->n - at) * sizeof(*index->entries));
		index->n--;
		remove_from_disk(command->daemon, command->id);
	}
	command_free(command);
}

/* The oldest first; beyond COMMANDS_KEPT those that ended a day ago go, beyond COMMANDS_KEPT_MAX
 * all that have ended. Stops at the first that is too young: those behind it wait with it. */
static void expire_on_disk(struct daemon *daemon)
{
	struct command_index *index = &daemon->command_index;
	uint64_t now = sbx_realtime_ns();
	size_t n_left = index->n, n_running = 0, at = 0;

	for (; n_left > COMMANDS_KEPT && at < index->n; at++) {
		struct command_index_entry *entry = &index->entries[at];

		if (!entry->ended_ns) {
			index->entries[n_running++] = *entry;
			continue;
		}
		if (n_left <= COMMANDS_KEPT_MAX && entry->ended_ns + COMMANDS_KEPT_NS >= now)
			break;
		remove_from_disk(daemon, entry->id);
		n_left--;
	}
	if (n_left == index->n)
		return;
	memmove(index->entries + n_running, index->entries + at,
		(index->n - at) * sizeof(*index->entries));
	index->n = n_left;
}

void commands_trim(struct daemon *daemon)
{
	struct command *command, *next;
	size_t n_ended = daemon->n_commands - daemon->n_live_commands;

	for (command = TAILQ_FIRST(&daemon->commands); command && n_ended > COMMANDS_IN_MEMORY;
		command = next) {
		next = TAILQ_NEXT(command, entry);
		if (command->state != COMMAND_ENDED || !TAILQ_EMPTY(&command->waiters) ||
			command->session || command->master_fd >= 0)
			continue; /* it may still change */
		command_free(command);
		n_ended--;
	}
}

void commands_expire(struct daemon *daemon)
{
	commands_trim(daemon);
	expire_on_disk(daemon);
}

int commands_index_add(struct daemon *daemon, const char *id, uint64_t ended_ns)
{
	struct command_index *index = &daemon->command_index;
	struct command_index_entry *entries;

	if (index->n == index->capacity) {
		size_t capacity = index->capacity ? 2 * index->capacity : 64;

		entries = reallocarray(index->entries, capacity, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		index->entries = entries;
		index->capacity = capacity;
	}
	(void)snprintf(index->entries[index->n].id, SBX_ID_SIZE, "%s", id); /* ids fit */
	index->entries[index->n++].ended_ns = ended_ns;
	return 0;
}

void commands_index_end(struct daemon *daemon, const char *id)
{
	struct command_index *index = &daemon->command_index;

	for (size_t i = index->n; i-- > 0;)
		if (!strcmp(index->entries[i].id, id)) {
			index->entries[i].ended_ns = sbx_realtime_ns();
			return;
		}
}

static int by_age(const void *a, const void *b)
{
	const struct command_index_entry *x = a, *y = b;

	return x->ended_ns < y->ended_ns ? -1 : x->ended_ns > y->ended_ns;
}

int commands_index_load(struct daemon *daemon)
{
	int fd = openat(daemon->context.commands_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	struct stat st;
	int r = 0;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		sbx_fd_close(&fd);
		return -ENOMEM;
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (!sbx_id_has_prefix(entry->d_name, SBX_ID_COMMAND) ||
			fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = commands_index_add(daemon, entry->d_name,
			(uint64_t)st.st_mtim.tv_sec * SBX_NSEC_PER_SEC +
				(uint64_t)st.st_mtim.tv_nsec);
	}
	(void)closedir(dir);         /* read-only */
	if (daemon->command_index.n) /* qsort(3) takes no NULL, not even for nothing */
		qsort(daemon->command_index.entries, daemon->command_index.n,
			sizeof(struct command_index_entry), by_age);
	return r;
}
