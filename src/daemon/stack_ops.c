/* SPDX-License-Identifier: MIT */
#include "stack_ops.h"

#include <string.h>

#include "command.h"
#include "commit.h"
#include "history.h"
#include "session.h"

static struct json_object *new_object(void)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		abort();
	return o;
}

static void on_job_done(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	struct request *request = data;

	if (err)
		request_fail(request, err, details);
	else
		request_result_text(request, text, size);
}

static bool on_job_chunk(void *data, const void *bytes, size_t size)
{
	(void)request_chunk(data, bytes, size); /* its client may be gone */
	return !request_is_behind(data);
}

static void submit(struct request *request, struct json_object *args)
{
	struct job_request job = {
		.name = request->op->name,
		.args = args,
		.fd = -EBADF,
		.done = on_job_done,
		.chunk = on_job_chunk,
		.data = request,
	};
	struct sbx_err err = SBX_ERR_INIT;
	int r = pool_submit(request->daemon->pool, &job);

	if (r < 0) {
		(void)pool_refused(&err, r, request->op->name);
		request_fail(request, &err, NULL);
	}
}

/* The stack that key names (absent: fallback, or the head), under key in args. */
static int add_version(struct request *request, struct json_object *args, const char *key,
	uint64_t fallback, const char *stack_key, const char *version_key, struct sbx_err *err)
{
	struct daemon *daemon = request->daemon;
	uint64_t head = daemon_head(daemon)->version;
	uint64_t version =
		(uint64_t)sbx_json_int(request->args, key, (int64_t)(fallback ? fallback : head));
	struct sbx_head at = {0};

	if (sbx_head_log_at(daemon->log, version, &at) < 0)
		return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
			"sandbox '%s' has no version %llu any more or yet; the head is %llu, and "
			"'sbx-admin layers' shows what is left",
			daemon->sandbox.id, (unsigned long long)version, (unsigned long long)head);
	sbx_json_add(args, stack_key, stack_to_json(&at.stack));
	sbx_json_add_int(args, version_key, (int64_t)version);
	sbx_head_done(&at);
	return 0;
}

static struct json_object *read_args(struct request *request)
{
	struct json_object *args = new_object();

	sbx_json_add(args, "args", json_object_get(request->args));
	sbx_json_add_string(args, "root_at", request->daemon->sandbox.root_at);
	return args;
}

void op_at_version(struct request *request)
{
	SBX_JSON struct json_object *args = read_args(request);
	struct sbx_err err = SBX_ERR_INIT;

	if (add_version(request, args, "at", 0, "head", "version", &err) < 0)
		request_fail(request, &err, NULL);
	else
		submit(request, sbx_take(&args));
}

/* From the version before to the head, unless told otherwise. */
void op_diff(struct request *request)
{
	SBX_JSON struct json_object *args = read_args(request);
	struct sbx_err err = SBX_ERR_INIT;
	uint64_t to = (uint64_t)sbx_json_int(
		request->args, "to", (int64_t)daemon_head(request->daemon)->version);
	int r = add_version(
		request, args, "from", to > 1 ? to - 1 : 1, "base", "base_version", &err);

	if (r == 0)
		r = add_version(request, args, "to", 0, "head", "version", &err);
	if (r < 0)
		request_fail(request, &err, NULL);
	else
		submit(request, sbx_take(&args));
}

/* --- requests that are served one at a time --- */

static void leave_line(struct request *request)
{
	TAILQ_REMOVE((struct request_list *)request->waiting_on, request, wait);
}

static void wait_in_line(struct request_list *line, struct request *request)
{
	request->waiting_on = line;
	request->cancel = leave_line;
	TAILQ_INSERT_TAIL(line, request, wait);
}

/* The first of line, which cannot be stopped any more; or NULL. */
static struct request *take_first(struct request_list *line)
{
	struct request *request = TAILQ_FIRST(line);

	if (!request)
		return NULL;
	leave_line(request);
	request->cancel = NULL;
	return request;
}

/* --- squash --- */

/* Whether a live session's base ends after n layers. */
static bool is_pinned_border(const struct daemon *daemon, size_t n)
{
	const struct session *session;

	TAILQ_FOREACH(session, &daemon->sessions, entry)
	if (session->base.stack.n == n && session->end != SESSION_END_DISCARD)
		return true;
	return false;
}

/*
 * The longest run of layers above the base layer between pins of live sessions: [*ret_first,
 * return value). The base layer stays by itself: flattening into it would touch the whole project.
 *
 * A session keeps the layers of its base whatever the head has, so a run across its pin does no
 * harm; but both forms are on the disk until it ends, and a publication from it then looks at more
 * paths. So it is done only when sessions pin so many versions that the stack would grow on.
 */
static size_t find_run(const struct daemon *daemon, size_t *ret_first)
{
	const struct sbx_stack *stack = &daemon_head(daemon)->stack;
	size_t first = 1, best_first = 1, best_end = 1;

	if (stack->n > STACK_SQUASH_ACROSS) {
		*ret_first = 1;
		return stack->n;
	}
	for (size_t end = 2; end <= stack->n; end++) {
		if (end - first > best_end - best_first) {
			best_first = first;
			best_end = end;
		}
		if (is_pinned_border(daemon, end))
			first = end;
	}
	*ret_first = best_first;
	return best_end;
}

static int squash_run(
	struct daemon *daemon, size_t first, size_t end, commit_done_fn done, void *data)
{
	const struct sbx_stack *stack = &daemon_head(daemon)->stack;
	struct sbx_stack run = {0};
	int r = 0;

	for (size_t i = first; r == 0 && i < end; i++)
		r = sbx_stack_add(&run, stack->ids[i]);
	if (r == 0)
		r = commit_squash(daemon->commits, &run, done, data);
	if (r == 0)
		daemon->squashing = true;
	sbx_stack_done(&run);
	return r;
}

static void serve_squashes(struct daemon *daemon);

static void on_squashed(void *data, struct json_object *result, const struct sbx_err *err,
	struct json_object *details)
{
	struct request *request = data;
	struct daemon *daemon = request->daemon;

	daemon->squashing = false;
	if (err)
		request_fail(request, err, details);
	else
		request_result(request, json_object_get(result));
	history_trim(daemon);
	serve_squashes(daemon);
}

static void on_squashed_by_itself(void *data, struct json_object *result SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	struct daemon *daemon = data;

	daemon->squashing = false;
	if (err)
		daemon_log("squash: %s; the stack stays long until the next publication",
			err->message);
	history_trim(daemon);
	serve_squashes(daemon);
}

static void squash_for(struct request *request)
{
	struct daemon *daemon = request->daemon;
	struct sbx_err err = SBX_ERR_INIT;
	size_t first, end = find_run(daemon, &first);
	struct json_object *nothing;
	int r;

	if (end - first < 2) {
		nothing = new_object();
		sbx_json_add_string(nothing, "outcome", "no_op");
		sbx_json_add_int(nothing, "version", (int64_t)daemon_head(daemon)->version);
		request_result(request, nothing);
		return;
	}
	r = squash_run(daemon, first, end, on_squashed, request);
	if (r < 0) {
		(void)pool_refused(&err, r, "squash");
		request_fail(request, &err, NULL);
	}
}

static void serve_squashes(struct daemon *daemon)
{
	struct request *request;

	while (!daemon->squashing && (request = take_first(&daemon->squash_waiting)))
		squash_for(request);
}

void op_squash(struct request *request)
{
	wait_in_line(&request->daemon->squash_waiting, request);
	serve_squashes(request->daemon);
}

void stack_maybe_squash(struct daemon *daemon)
{
	size_t first, end;

	if (daemon->squashing || daemon_head(daemon)->stack.n <= STACK_SQUASH_ABOVE)
		return;
	end = find_run(daemon, &first);
	if (end - first < STACK_SQUASH_RUN)
		return; /* live sessions pin it; the next commit looks again */
	if (squash_run(daemon, first, end, on_squashed_by_itself, daemon) < 0)
		daemon_log("squash: cannot begin");
}

/* --- gc --- */

static void on_collected(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	struct request *request = data;
	struct daemon *daemon = request->daemon;

	on_job_done(request, text, size, err, details);
	daemon->collecting = false;
	commits_resume(daemon->commits);
	history_unpinned(daemon); /* a session may have ended meanwhile */
	stack_serve_gc(daemon);
}

static void collect_for(struct request *request)
{
	struct daemon *daemon = request->daemon;
	struct job_request job = {
		.name = "gc", .fd = -EBADF, .done = on_collected, .data = request};
	SBX_STACK struct sbx_stack keep = SBX_STACK_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	int r = history_pinned_layers(daemon, &keep);

	if (r == 0) {
		commits_forget(daemon->commits, daemon_head(daemon)->version);
		job.args = read_args(request);
		sbx_json_add(job.args, "keep", stack_to_json(&keep));
		r = pool_submit(daemon->pool, &job);
	}
	if (r < 0) {
		(void)pool_refused(&err, r, "gc");
		on_collected(request, NULL, 0, &err, NULL);
	}
}

/* The layers of publications that are under way belong to nothing yet: gc would take them. */
static void on_nothing_under_way(void *data)
{
	struct daemon *daemon = data;
	struct request *request = take_first(&daemon->gc_waiting);

	if (request) {
		collect_for(request);
		return;
	}
	daemon->collecting = false; /* its client has gone */
	commits_resume(daemon->commits);
}

void stack_serve_gc(struct daemon *daemon)
{
	/* two workers must not remove the same layers */
	if (daemon->collecting || daemon->removing || TAILQ_EMPTY(&daemon->gc_waiting))
		return;
	daemon->collecting = true;
	commits_pause(daemon->commits, on_nothing_under_way, daemon);
}

void op_gc(struct request *request)
{
	wait_in_line(&request->daemon->gc_waiting, request);
	stack_serve_gc(request->daemon);
}
