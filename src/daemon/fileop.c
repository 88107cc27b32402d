/* SPDX-License-Identifier: MIT */
#include "fileop.h"

#include <fcntl.h>
#include <string.h>

#include "commit.h"
#include "session.h"

static void fail(struct request *request, int r, const char *what)
{
	struct sbx_err err = SBX_ERR_INIT;

	(void)pool_refused(&err, r, what);
	request_fail(request, &err, NULL);
}

/* What the tool's caller gets of the result of a change. */
static void answer_tool(struct request *request, struct json_object *result)
{
	struct json_object *tool = json_object_get(sbx_json_member(result, "tool"));

	request_result(request, tool ? tool : json_object_new_object());
}

static void on_done(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	struct request *request = data;
	struct session *session = request->session;

	if (err)
		request_fail(request, err, details);
	else
		request_result_text(request, text, size);
	if (session)
		session_release_root(session);
}

static void on_changed(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	struct request *request = data;
	SBX_JSON struct json_object *result = NULL;
	struct sbx_err parse_err = SBX_ERR_INIT;
	struct session *session = request->session;

	if (err)
		request_fail(request, err, details);
	else if (sbx_json_parse(text, size, &result, &parse_err) < 0)
		request_fail(request, &parse_err, NULL);
	else
		answer_tool(request, result);
	session_release_root(session);
}

static bool on_chunk(void *data, const void *bytes, size_t size)
{
	(void)request_chunk(data, bytes, size); /* its client may be gone */
	return !request_is_behind(data);
}

static struct json_object *job_args(const struct request *request)
{
	struct json_object *args = json_object_new_object();

	if (!args)
		abort();
	sbx_json_add(args, "args", json_object_get(request->args));
	sbx_json_add_string(args, "root_at", request->daemon->sandbox.root_at);
	sbx_json_add_int(args, "uid", request->uid);
	return args;
}

static void add_head(struct json_object *args, const struct daemon *daemon)
{
	const struct sbx_head *head = daemon_head(daemon);

	sbx_json_add(args, "head", stack_to_json(&head->stack));
	sbx_json_add_int(args, "version", (int64_t)head->version);
}

static void submit(struct request *request, struct session *session, job_done_fn done)
{
	struct job_request job = {
		.name = request->op->name,
		.args = job_args(request),
		.fd = session ? session->root_fd : -EBADF,
		.aside_fd = request->aside_fd,
		.done = done,
		.chunk = on_chunk,
		.data = request,
	};
	int r;

	if (session)
		sbx_json_add_int(job.args, "id_base", request->daemon->sandbox.id_base);
	else
		add_head(job.args, request->daemon);
	r = pool_submit(request->daemon->pool, &job);
	if (r < 0) {
		fail(request, r, request->op->name);
		return;
	}
	request->session = session;
	if (session)
		session->n_file_jobs++;
}

static void on_published(void *data, struct json_object *result, const struct sbx_err *err,
	struct json_object *details)
{
	struct request *request = data;

	if (err)
		request_fail(request, err, details);
	else
		answer_tool(request, result);
}

static void publish(struct request *request)
{
	int r = commit_operation(request->daemon->commits, request->op->name, job_args(request),
		request->aside_fd, on_published, request);

	if (r < 0)
		fail(request, r, request->op->name);
}

/* In a session that is still being prepared the request waits: session_advance() comes back. */
static void in_session(struct request *request, const char *id, job_done_fn done)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct session *session = session_find(request->daemon, id, &err);

	if (!session || session_check_usable(session, &err) < 0) {
		request_fail(request, &err, NULL);
	} else if (session->state == SESSION_PREPARING) {
		session_hold_request(session, request);
	} else {
		submit(request, session, done);
	}
}

void op_file_read(struct request *request)
{
	const char *id = sbx_json_string(request->args, "workspace_session_id", NULL);

	if (id)
		in_session(request, id, on_done);
	else
		submit(request, NULL, on_done);
}

void op_file_change(struct request *request)
{
	const char *id = sbx_json_string(request->args, "workspace_session_id", NULL);

	if (id)
		in_session(request, id, on_changed);
	else
		publish(request);
}

void op_read_job(struct request *request)
{
	submit(request, NULL, on_done);
}
