/* SPDX-License-Identifier: MIT */
#include "commit_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>


int commits_new(struct daemon *daemon, struct commits **ret)
{
	struct commits *commits = calloc(1, sizeof(*commits));
	int r;

	if (!commits)
		return -ENOMEM;
	commits->daemon = daemon;
	TAILQ_INIT(&commits->all);
	TAILQ_INIT(&commits->queue);
	TAILQ_INIT(&commits->accepted);
	TAILQ_INIT(&commits->writing);
	TAILQ_INIT(&commits->paused_list);
	r = commits_replan(commits);
	if (r < 0) {
		commits_free(commits);
		return r;
	}
	*ret = commits;
	return 0;
}

static void publication_free(struct publication *p)
{
	sbx_json_put(&p->args);
	sbx_json_put(&p->result);
	sbx_head_done(&p->prepared);
	sbx_stack_done(&p->remove);
	TAILQ_REMOVE(&p->commits->all, p, in_all);
	p->commits->n--;
	free(p);
}

void commits_free(struct commits *commits)
{
	if (!commits)
		return;
	while (!TAILQ_EMPTY(&commits->all)) /* the other lists end with them */
		publication_free(TAILQ_FIRST(&commits->all));
	sbx_head_done(&commits->planned);
	sbx_buf_done(&commits->batch);
	free(commits);
}

size_t commits_pending(const struct commits *commits)
{
	return commits->n;
}

/* What commits_pause() was called for. */
static void begin_if_idle(struct commits *commits)
{
	void (*begin)(void *data) = commits->begin;

	if (!begin || commits->n > commits->n_paused)
		return;
	commits->begin = NULL;
	begin(commits->begin_data);
}

void publication_finish(
	struct publication *p, const struct sbx_err *err, struct json_object *details)
{
	SBX_JSON struct json_object *result = err ? NULL : json_object_get(p->result);
	struct commits *commits = p->commits;
	commit_done_fn done = p->done;
	void *data = p->data;

	publication_free(p);
	done(data, result, err, details);
	daemon_touch(commits->daemon);
	begin_if_idle(commits);
}

static void fail(struct publication *p, int r, const char *what)
{
	struct sbx_err err = SBX_ERR_INIT;

	(void)pool_refused(&err, r, what);
	publication_finish(p, &err, NULL);
}

/* No squash has made room for long: its failures are in the log. */
static void fail_at_limit(struct publication *p)
{
	struct sbx_err err = SBX_ERR_INIT;

	(void)sbx_err_kind(&err, SBX_KIND_BUSY, E2BIG,
		"sandbox '%s' has %d layers, as many as can be mounted: run 'sbx-admin squash %s', "
		"which says what keeps them from becoming fewer, and publish again",
		p->commits->daemon->sandbox.id, SBX_STACK_MAX, p->commits->daemon->sandbox.id);
	publication_finish(p, &err, NULL);
}

int commits_pinned_layers(const struct commits *commits, struct sbx_stack *ret)
{
	const struct publication *p;
	int r = sbx_stack_include_all(ret, &commits->planned.stack);

	TAILQ_FOREACH(p, &commits->queue, entry)
	if (r == 0)
		r = sbx_stack_include_all(ret, &p->prepared.stack);
	return r;
}

/* --- the sequencer --- */

static bool same_stack(const struct sbx_stack *a, const struct sbx_stack *b)
{
	return a->n == b->n && (a->n == 0 || !memcmp(a->ids, b->ids, a->n * sizeof(a->ids[0])));
}

/* Where remove stands in stack as one run; -ENOENT when it does not any more. */
static ssize_t find_run(const struct sbx_stack *stack, const struct sbx_stack *remove)
{
	for (size_t i = 0; i + remove->n <= stack->n; i++)
		if (!memcmp(stack->ids + i, remove->ids, remove->n * sizeof(remove->ids[0])))
			return (ssize_t)i;
	return -ENOENT;
}

static int plan(struct commits *commits, struct publication *p)
{
	struct sbx_stack next = {0};
	const struct sbx_stack *now = &commits->planned.stack;
	ssize_t at = p->remove.n ? find_run(now, &p->remove) : (ssize_t)now->n;
	int r = at < 0 ? (int)at : 0;

	for (size_t i = 0; r == 0 && i < (size_t)at; i++)
		r = sbx_stack_add(&next, now->ids[i]);
	if (r == 0)
		r = sbx_stack_add(&next, p->layer_id);
	for (size_t i = (size_t)SBX_MAX(at, 0) + p->remove.n; r == 0 && i < now->n; i++)
		r = sbx_stack_add(&next, now->ids[i]);
	if (r < 0) {
		sbx_stack_done(&next);
		return r;
	}
	sbx_stack_done(&commits->planned.stack);
	commits->planned.stack = next;
	p->version = ++commits->planned.version;
	return 0;
}

static void accept_first(struct commits *commits)
{
	struct publication *p = TAILQ_FIRST(&commits->queue);
	int r = plan(commits, p);

	TAILQ_REMOVE(&commits->queue, p, entry);
	if (r == -E2BIG) {
		fail_at_limit(p);
		return;
	}
	if (r < 0) {
		fail(p, r, "put a publication on the head");
		return;
	}
	TAILQ_INSERT_TAIL(&commits->accepted, p, entry);
	commits_write(commits);
}

static struct json_object *copy_args(struct json_object *args)
{
	struct json_object *copy = json_object_new_object();

	if (!copy)
		abort();
	json_object_object_foreach (args, key, value)
		sbx_json_add(copy, key, json_object_get(value));
	return copy;
}

static void remove_done(void *data SBX_UNUSED, const char *text SBX_UNUSED, size_t size SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	if (err)
		daemon_log("remove a layer that was made again: %s", err->message);
}

/* The layer of an operation's earlier run, which the head has passed by. */
static void remove_layer(struct daemon *daemon, const char *layer_id)
{
	struct job_request request = {.name = "remove",
		.args = json_object_new_object(),
		.fd = -EBADF,
		.done = remove_done};

	if (!request.args)
		return; /* the next sweep removes it */
	sbx_json_add_string(request.args, "layer_id", layer_id);
	(void)pool_submit(daemon->pool, &request);
}

/* The job's arguments for the planned head, which p will fit on when the job is done. */
static int args_for_head(
	struct publication *p, struct json_object *from, struct json_object **ret_args)
{
	struct commits *commits = p->commits;
	struct json_object *args;
	int r;

	sbx_head_done(&p->prepared);
	p->prepared.version = commits->planned.version;
	r = sbx_stack_copy(&commits->planned.stack, &p->prepared.stack);
	if (r == 0 && p->kind == KIND_OPERATION && p->result) {
		remove_layer(commits->daemon, p->layer_id);
		r = sbx_id_new(SBX_ID_LAYER, p->layer_id);
	}
	if (r < 0)
		return r;
	args = copy_args(from);
	sbx_json_add(args, "head", stack_to_json(&p->prepared.stack));
	sbx_json_add_int(args, "version", (int64_t)p->prepared.version);
	sbx_json_add_string(args, "layer_id", p->layer_id);
	if (p->kind == KIND_OPERATION)
		sbx_json_add_string(args, "operation_id", p->operation_id);
	*ret_args = args;
	return 0;
}

/* Takes the job's result; true when p is to go on towards the head. */
static bool take_result(struct publication *p, const char *text, size_t size,
	const struct sbx_err *err, struct json_object *details)
{
	struct sbx_err parse_err = SBX_ERR_INIT;

	if (!err) {
		sbx_json_put(&p->result);
		if (sbx_json_parse(text, size, &p->result, &parse_err) < 0)
			err = &parse_err;
	}
	if (err) {
		publication_finish(p, err, details);
		return false;
	}
	if (!strcmp(sbx_json_string(p->result, "outcome", ""), "published"))
		return true;
	sbx_json_add_int(p->result, "version", (int64_t)daemon_head(p->commits->daemon)->version);
	publication_finish(p, NULL, NULL);
	return false;
}

static void on_resolved(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	struct publication *p = data;
	struct commits *commits = p->commits;

	commits->sequencing = false;
	TAILQ_REMOVE(&commits->queue, p, entry);
	if (take_result(p, text, size, err, details))
		TAILQ_INSERT_HEAD(&commits->queue, p, entry);
	commits_sequence(commits);
}

static int resolve_again(struct publication *p)
{
	struct job_request request = {
		.fd = -EBADF, .aside_fd = p->aside_fd, .done = on_resolved, .data = p};
	SBX_JSON struct json_object *from = copy_args(p->args);
	int r;

	if (p->kind == KIND_OPERATION) {
		request.name = p->job;
	} else {
		request.name = "reresolve";
		sbx_json_add(from, "base", stack_to_json(&p->prepared.stack));
	}
	r = args_for_head(p, from, &request.args);
	return r < 0 ? r : pool_submit(p->commits->daemon->pool, &request);
}

static bool fits(const struct commits *commits, const struct publication *p)
{
	return p->kind == KIND_SQUASH || same_stack(&p->prepared.stack, &commits->planned.stack);
}

void commits_sequence(struct commits *commits)
{
	struct publication *p;
	int r;

	while (!commits->sequencing && (p = TAILQ_FIRST(&commits->queue))) {
		if (fits(commits, p)) {
			accept_first(commits);
			continue;
		}
		commits->sequencing = true;
		r = resolve_again(p);
		if (r < 0) {
			commits->sequencing = false;
			TAILQ_REMOVE(&commits->queue, p, entry);
			fail(p, r, "resolve a publication against the new head");
		}
	}
}

/* --- preparation --- */

static void on_prepared(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	struct publication *p = data;
	struct commits *commits = p->commits;

	if (!take_result(p, text, size, err, details))
		return;
	TAILQ_INSERT_TAIL(&commits->queue, p, entry);
	commits_sequence(commits);
}

static int submit_first_job(struct publication *p)
{
	struct job_request request = {
		.name = p->job,
		.fd = -EBADF,
		.aside_fd = p->aside_fd,
		.done = on_prepared,
		.data = p,
	};
	int r = args_for_head(p, p->args, &request.args);

	return r < 0 ? r : pool_submit(p->commits->daemon->pool, &request);
}

void commits_pause(struct commits *commits, void (*begin)(void *data), void *data)
{
	assert(!commits->paused);
	commits->paused = true;
	commits->begin = begin;
	commits->begin_data = data;
	begin_if_idle(commits);
}

void commits_resume(struct commits *commits)
{
	struct publication *p;
	int r;

	commits->paused = false;
	while ((p = TAILQ_FIRST(&commits->paused_list)) && !commits->paused) {
		TAILQ_REMOVE(&commits->paused_list, p, entry);
		commits->n_paused--;
		r = submit_first_job(p);
		if (r < 0)
			fail(p, r, "begin a publication");
	}
}

/* Takes args. */
static int publication_start(struct commits *commits, enum kind kind, const char *job,
	struct json_object *args, int aside_fd, const struct sbx_stack *remove, commit_done_fn done,
	void *data)
{
	struct publication *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		json_object_put(args);
		return -ENOMEM;
	}
	*p = (struct publication){.commits = commits,
		.kind = kind,
		.job = job,
		.args = args,
		.aside_fd = aside_fd,
		.done = done,
		.data = data};
	TAILQ_INSERT_TAIL(&commits->all, p, in_all);
	commits->n++;
	r = sbx_id_new(SBX_ID_LAYER, p->layer_id);
	if (r == 0)
		r = sbx_id_new(SBX_ID_OPERATION, p->operation_id);
	if (r == 0 && remove)
		r = sbx_stack_copy(remove, &p->remove);
	if (r == 0 && commits->paused) {
		TAILQ_INSERT_TAIL(&commits->paused_list, p, entry);
		commits->n_paused++;
	} else if (r == 0) {
		r = submit_first_job(p);
	}
	if (r < 0)
		publication_free(p);
	return r;
}

static int add_reject_id(struct json_object *args)
{
	char id[SBX_ID_SIZE];
	int r = sbx_id_new(SBX_ID_REJECT, id);

	if (r == 0)
		sbx_json_add_string(args, "reject_id", id);
	return r;
}

int commit_session(struct commits *commits, const char *session_dir, const struct sbx_head *base,
	const char *owner, const char *command, commit_done_fn done, void *data)
{
	struct json_object *args = json_object_new_object();

	if (!args || add_reject_id(args) < 0) {
		json_object_put(args);
		return -ENOMEM;
	}
	sbx_json_add_string(args, "session_dir", session_dir);
	sbx_json_add(args, "base", stack_to_json(&base->stack));
	sbx_json_add_int(args, "base_version", (int64_t)base->version);
	sbx_json_add_string(args, "owner", owner);
	sbx_json_add_string(args, "command", command);
	sbx_json_add_string(args, "root_at", commits->daemon->sandbox.root_at);
	return publication_start(commits, KIND_SESSION, "publish", args, 0, NULL, done, data);
}

int commit_reject(struct commits *commits, const char *reject_id, commit_done_fn done, void *data)
{
	struct json_object *args = json_object_new_object();

	if (!args)
		return -ENOMEM;
	sbx_json_add_string(args, "reject_id", reject_id);
	return publication_start(commits, KIND_REJECT, "reject_retry", args, 0, NULL, done, data);
}

int commit_operation(struct commits *commits, const char *job_name, struct json_object *args,
	int aside_fd, commit_done_fn done, void *data)
{
	return publication_start(
		commits, KIND_OPERATION, job_name, args, aside_fd, NULL, done, data);
}

int commit_squash(
	struct commits *commits, const struct sbx_stack *remove, commit_done_fn done, void *data)
{
	struct json_object *args = json_object_new_object();

	if (!args)
		return -ENOMEM;
	sbx_json_add(args, "remove", stack_to_json(remove));
	return publication_start(commits, KIND_SQUASH, "squash", args, 0, remove, done, data);
}
