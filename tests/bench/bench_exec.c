/* SPDX-License-Identifier: MIT */
/*
 * How long one command takes: as a plain child process, through sandbox-mcp, and through other
 * sandboxes. In each round every subject runs once, one after the other, so that what disturbs the
 * machine disturbs all alike; what is compared are medians of the same rounds.
 *
 *   bench_exec ROUNDS SANDBOX_MCP SANDBOX_ID SESSION_ID STATE_DIR [NAME COMMAND]...
 *
 * COMMAND is split at blanks. SESSION_ID is a managed session. STATE_DIR is where the sandbox is
 * stored: the disk's own cost of one durable append is measured there.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "sbx/fs.h"
#include "sbx/json.h"
#include "sbx/loop.h"

#define ROUNDS_MAX   100000
#define SUBJECTS_MAX 32
#define WORDS_MAX    64
#define WARM_UP      10 /* rounds that do not count */

extern char **environ;

/* A client of sandbox-mcp with one call in flight. */
struct client {
	FILE *in, *out;
	char *line;
	size_t line_capacity;
	int64_t id;
	const char *sandbox_id, *session_id;
	uint64_t
		own_ns; /* what a run has measured itself, in place of its whole time; 0: nothing */
};

struct subject;
typedef int (*run_fn)(struct client *client, const struct subject *subject, struct sbx_err *err);

struct subject {
	const char *name;
	run_fn run;
	const char *explain; /* what is in it more than in the one before; NULL: not a step */
	const char *command; /* of run_program: split at blanks */
	char *text;          /* the words, in one piece; ours */
	char *words[WORDS_MAX + 1];
	int fd;
	uint64_t *samples; /* ns */
	size_t n;
	bool broken; /* does not run here: said once, then left out */
};

static int spawn_and_wait(char *const words[], struct sbx_err *err)
{
	posix_spawn_file_actions_t actions;
	int r, status;
	pid_t pid;

	r = posix_spawn_file_actions_init(&actions);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return sbx_err_set(err, r, "run %s: %m", words[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return sbx_err_set(err, errno, "wait for %s: %m", words[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return sbx_err_set(
			err, EIO, "%s failed with wait status %#x", words[0], (unsigned int)status);
	return 0;
}

static int run_program(struct client *client, const struct subject *subject, struct sbx_err *err)
{
	(void)client;
	return spawn_and_wait(subject->words, err);
}

static int run_durable_append(
	struct client *client, const struct subject *subject, struct sbx_err *err)
{
	static const char record[128] = {'x'};
	int r = sbx_fs_write_all(subject->fd, record, sizeof(record));

	(void)client;
	if (r < 0 || fdatasync(subject->fd) < 0)
		return sbx_err_set(err, r < 0 ? -r : errno, "append durably: %m");
	return 0;
}

/* Sends one request and reads lines until its answer is there. */
static int call(struct client *client, const char *method, struct json_object *params,
	struct json_object **ret_result, struct sbx_err *err)
{
	SBX_JSON struct json_object *request = json_object_new_object();
	SBX_JSON struct json_object *answer = NULL;
	size_t size;
	ssize_t n;
	int r;

	sbx_json_add_string(request, "jsonrpc", "2.0");
	sbx_json_add_int(request, "id", ++client->id);
	sbx_json_add_string(request, "method", method);
	sbx_json_add(request, "params", params);
	if (fprintf(client->in, "%s\n", sbx_json_text(request, &size)) < 0 || fflush(client->in))
		return sbx_err_set(err, errno, "write to sandbox-mcp: %m");
	do {
		sbx_json_put(&answer);
		n = getline(&client->line, &client->line_capacity, client->out);
		if (n < 0)
			return sbx_err_set(err, EPIPE, "sandbox-mcp ended during %s", method);
		r = sbx_json_parse(client->line, (size_t)n, &answer, err);
		if (r < 0)
			return r;
	} while (sbx_json_int(answer, "id", 0) != client->id);
	if (!sbx_json_member(answer, "result"))
		return sbx_err_set(err, EIO, "%s: %s", method, client->line);
	*ret_result = json_object_get(sbx_json_member(answer, "result"));
	return 0;
}

static int run_ping(struct client *client, const struct subject *subject, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = NULL;

	(void)subject;
	return call(client, "ping", json_object_new_object(), &result, err);
}

/* One call of a tool; its structured content. args is taken. */
static int call_tool(struct client *client, const char *tool, struct json_object *args,
	struct json_object **ret, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = NULL;
	struct json_object *params = json_object_new_object();
	int r;

	sbx_json_add_string(args, "sandbox_id", client->sandbox_id);
	sbx_json_add_string(params, "name", tool);
	sbx_json_add(params, "arguments", args);
	r = call(client, "tools/call", params, &result, err);
	if (r < 0)
		return r;
	if (sbx_json_bool(result, "isError", true))
		return sbx_err_set(err, EIO, "%s: %s", tool, client->line);
	*ret = json_object_get(sbx_json_member(result, "structuredContent"));
	return 0;
}

static int run_file_read(struct client *client, const struct subject *subject, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = NULL;
	struct json_object *args = json_object_new_object();

	(void)subject;
	sbx_json_add_string(args, "path", "bench.txt");
	return call_tool(client, "file_read", args, &result, err);
}

/* expect_publish: whether a layer has to come of it; anything else would be another measurement. */
static int exec_command(struct client *client, const char *command, const char *session,
	bool expect_publish, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = NULL;
	struct json_object *args = json_object_new_object();
	bool published;
	int r;

	sbx_json_add_string(args, "cmd", command);
	if (session)
		sbx_json_add_string(args, "workspace_session_id", session);
	r = call_tool(client, "exec_command", args, &result, err);
	if (r < 0)
		return r;
	published = sbx_json_string(sbx_json_member(result, "publish"), "layer_id", NULL);
	if (strcmp(sbx_json_string(result, "status", ""), "ok") != 0 || published != expect_publish)
		return sbx_err_set(err, EIO, "exec_command %s: %s", command, client->line);
	return 0;
}

static int run_automatic(struct client *client, const struct subject *subject, struct sbx_err *err)
{
	(void)subject;
	return exec_command(client, "true", NULL, false, err);
}

static int run_managed(struct client *client, const struct subject *subject, struct sbx_err *err)
{
	(void)subject;
	return exec_command(client, "true", client->session_id, false, err);
}

/* From the last instruction of a command's shell to the answer on stdout: its exit, the end of its
 * terminal and of its session, and all hand-overs. */
static int run_exit_to_answer(struct client *client, const char *session, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = NULL;
	struct json_object *args = json_object_new_object();
	uint64_t now_us, then_us;
	char *end;
	int r;

	sbx_json_add_string(args, "cmd", "printf %s ${EPOCHREALTIME/./}");
	if (session)
		sbx_json_add_string(args, "workspace_session_id", session);
	r = call_tool(client, "exec_command", args, &result, err);
	if (r < 0)
		return r;
	now_us = sbx_realtime_ns() / 1000;
	then_us = strtoull(sbx_json_string(result, "output", ""), &end, 10);
	if (*end || then_us == 0 || then_us > now_us)
		return sbx_err_set(err, EIO, "not a time: %s", client->line);
	client->own_ns = (now_us - then_us) * 1000;
	return 0;
}

static int run_managed_exit(
	struct client *client, const struct subject *subject, struct sbx_err *err)
{
	(void)subject;
	return run_exit_to_answer(client, client->session_id, err);
}

static int run_automatic_exit(
	struct client *client, const struct subject *subject, struct sbx_err *err)
{
	(void)subject;
	return run_exit_to_answer(client, NULL, err);
}

/* Bash writes the file by itself, so that no further program is in the time. */
static int run_changed_file(
	struct client *client, const struct subject *subject, struct sbx_err *err)
{
	char command[64];

	(void)subject;
	(void)snprintf(command, sizeof(command), "echo %jd >bench.txt", (intmax_t)client->id);
	return exec_command(client, command, NULL, true, err);
}

static const struct subject own_subjects[] = {
	{.name = "plain bash -c true",
		.run = run_program,
		.command = "/bin/bash --noprofile --norc -c true"},
	{.name = "ping", .run = run_ping, .explain = "JSON-RPC in and out of sandbox-mcp"},
	{.name = "file_read",
		.run = run_file_read,
		.explain = "+ the socket to sandboxd and a worker that reads a small file"},
	{.name = "true, managed session",
		.run = run_managed,
		.explain = "+ terminal, shell and its end, in a session that is there"},
	{.name = "true, automatic session",
		.run = run_automatic,
		.explain = "+ a session of its own, and the look for changes at its end"},
	{.name = "one changed file, published",
		.run = run_changed_file,
		.explain = "+ capture, ownership, seal, sync and commit of one layer"},
	{.name = "exit to answer, managed", .run = run_managed_exit},
	{.name = "exit to answer, automatic", .run = run_automatic_exit},
	{.name = "durable append of 128 bytes", .run = run_durable_append},
};

/* Reads to the end, so that sandbox-mcp can end in order. */
static void finish_client(struct client *client)
{
	if (client->in)
		(void)fclose(client->in);
	while (client->out && getline(&client->line, &client->line_capacity, client->out) >= 0)
		;
	if (client->out)
		(void)fclose(client->out);
	free(client->line);
}

static int start_client(const char *program, struct client *client, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = NULL;
	struct json_object *params = json_object_new_object(), *info = json_object_new_object();
	posix_spawn_file_actions_t actions;
	char name[] = "sandbox-mcp", set[] = "--set", runtime[] = "runtime";
	char *argv[] = {name, set, runtime, NULL};
	int to[2], from[2], r;
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		return sbx_err_set(err, errno, "make a pipe: %m");
	client->in = fdopen(to[1], "w");
	client->out = fdopen(from[0], "r");
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, to[0], 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, from[1], 1);
	if (r == 0)
		r = posix_spawn(&pid, program, &actions, NULL, argv, environ);
	if (r != 0 || !client->in || !client->out)
		return sbx_err_set(err, r ? r : ENOMEM, "run %s: %m", program);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(to[0]);
	(void)close(from[1]);
	sbx_json_add_string(params, "protocolVersion", "2025-06-18");
	sbx_json_add(params, "capabilities", json_object_new_object());
	sbx_json_add(params, "clientInfo", info);
	sbx_json_add_string(info, "name", "bench_exec");
	sbx_json_add_string(info, "version", PACKAGE_VERSION);
	r = call(client, "initialize", params, &result, err);
	if (r < 0)
		return r;
	if (fputs("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n", client->in) <
		0)
		return sbx_err_set(err, EPIPE, "write to sandbox-mcp: %m");
	return 0;
}

static void measure(struct client *client, struct subject *subject, bool counts)
{
	struct sbx_err err = SBX_ERR_INIT;
	uint64_t start = sbx_now_ns();

	if (subject->broken)
		return;
	client->own_ns = 0;
	if (subject->run(client, subject, &err) < 0) {
		(void)fprintf(stderr, "%s is left out: %s\n", subject->name, err.message);
		subject->broken = true;
		return;
	}
	if (counts)
		subject->samples[subject->n++] =
			client->own_ns ? client->own_ns : sbx_now_ns() - start;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of sorted samples. */
static double percentile_ms(const struct subject *subject, unsigned int percent)
{
	return (double)subject->samples[(subject->n - 1) * percent / 100] / 1e6;
}

static void report(struct subject *subjects, size_t n_subjects)
{
	double plain = percentile_ms(&subjects[0], 50), before = 0;

	(void)printf(
		"%-30s %9s %9s %9s %9s\n", "milliseconds", "median", "10 %", "90 %", "x plain");
	for (size_t i = 0; i < n_subjects; i++)
		if (!subjects[i].broken)
			(void)printf("%-30s %9.3f %9.3f %9.3f %9.2f\n", subjects[i].name,
				percentile_ms(&subjects[i], 50), percentile_ms(&subjects[i], 10),
				percentile_ms(&subjects[i], 90),
				percentile_ms(&subjects[i], 50) / plain);
	(void)printf("\n%-30s %9s\n", "step by step (median)", "adds");
	for (size_t i = 0; i < n_subjects; i++) {
		if (subjects[i].broken || !subjects[i].explain)
			continue;
		(void)printf("%-30s %9.3f  %s\n", subjects[i].name,
			percentile_ms(&subjects[i], 50) - before, subjects[i].explain);
		before = percentile_ms(&subjects[i], 50);
	}
}

static void split_command(struct subject *subject)
{
	char *save = NULL;
	size_t n = 0;

	subject->text = strdup(subject->command);
	if (!subject->text)
		abort();
	for (char *w = strtok_r(subject->text, " ", &save); w && n < WORDS_MAX;
		w = strtok_r(NULL, " ", &save))
		subject->words[n++] = w;
}

static size_t add_subjects(
	struct subject *subjects, int n_named, char *named[], size_t rounds, int fd)
{
	size_t n = SBX_N_ELEMENTS(own_subjects);

	memcpy(subjects, own_subjects, sizeof(own_subjects));
	for (int i = 0; i + 1 < n_named && n < SUBJECTS_MAX; i += 2)
		subjects[n++] = (struct subject){
			.name = named[i], .run = run_program, .command = named[i + 1]};
	for (size_t i = 0; i < n; i++) {
		if (subjects[i].command)
			split_command(&subjects[i]);
		subjects[i].fd = fd;
		subjects[i].samples = calloc(rounds, sizeof(uint64_t));
		if (!subjects[i].samples)
			abort();
	}
	return n;
}

static void free_subjects(struct subject *subjects, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(subjects[i].text);
		free(subjects[i].samples);
	}
}

/* A file without a name on the disk that holds the sandbox. */
static int open_scratch(const char *state_dir)
{
	return open(state_dir, O_TMPFILE | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
}

int main(int argc, char *argv[])
{
	SBX_CLEANUP(finish_client) struct client client = {0};
	SBX_CLOSE int scratch_fd = -EBADF;
	struct subject subjects[SUBJECTS_MAX];
	struct sbx_err err = SBX_ERR_INIT;
	size_t rounds, n;
	bool failed = false;

	if (argc < 6 || (rounds = strtoul(argv[1], NULL, 10)) == 0 || rounds > ROUNDS_MAX) {
		(void)fputs("usage: bench_exec ROUNDS SANDBOX_MCP SANDBOX_ID SESSION_ID STATE_DIR "
			    "[NAME COMMAND]...\n",
			stderr);
		return 2;
	}
	client.sandbox_id = argv[3];
	client.session_id = argv[4];
	scratch_fd = open_scratch(argv[5]);
	if (scratch_fd < 0 || start_client(argv[2], &client, &err) < 0) {
		(void)fprintf(
			stderr, "bench_exec: %s\n", scratch_fd < 0 ? strerror(errno) : err.message);
		return 1;
	}
	n = add_subjects(subjects, argc - 6, argv + 6, rounds, scratch_fd);
	for (size_t round = 0; round < rounds + WARM_UP; round++)
		for (size_t i = 0; i < n; i++)
			measure(&client, &subjects[i], round >= WARM_UP);
	for (size_t i = 0; i < n; i++) {
		qsort(subjects[i].samples, subjects[i].n, sizeof(uint64_t), compare);
		failed = failed || (subjects[i].broken && i < SBX_N_ELEMENTS(own_subjects));
	}
	if (!failed)
		report(subjects, n);
	free_subjects(subjects, n);
	return failed;
}
