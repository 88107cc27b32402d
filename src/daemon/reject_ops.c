/* SPDX-License-Identifier: MIT */
/*
 * A retry takes the reject's tree away into a layer, and brings back one that never arrived. Two at
 * once would take it from each other, so the second is refused; so is dropping what is on its way.
 * A retry that landed is answered when the reject is gone: then nobody sees work as refused that
 * is in the head.
 */
#include "reject_ops.h"

#include <string.h>

#include "command.h"
#include "commit.h"
#include "fileop.h"

struct retry {
	TAILQ_ENTRY(retry) entry;
	struct request *request;
	struct json_object *answer; /* once it has landed */
};

static const char *reject_of(const struct request *request)
{
	return sbx_json_string(request->args, "reject_id", "");
}

static void retry_free(struct retry *retry)
{
	TAILQ_REMOVE(&retry->request->daemon->retries, retry, entry);
	sbx_json_put(&retry->answer);
	free(retry);
}

/* Answers, and the reject is free again. */
static void retry_end(struct retry *retry)
{
	struct request *request = retry->request;
	struct json_object *answer = sbx_take(&retry->answer);

	retry_free(retry);
	request_result(request, answer);
}

static void retry_fail(struct retry *retry, const struct sbx_err *err, struct json_object *details)
{
	struct request *request = retry->request;

	retry_free(retry);
	request_fail(request, err, details);
}

static void on_dropped(void *data, const char *text SBX_UNUSED, size_t size SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	if (err) /* it stays listed; a further retry finds that it has landed, as does a start */
		daemon_log("drop a reject that was published: %s", err->message);
	retry_end(data);
}

/* Its work is in the head now: the reject has served. */
static void drop_landed(struct retry *retry)
{
	struct job_request job = {
		.name = "reject_drop", .fd = -EBADF, .done = on_dropped, .data = retry};
	struct json_object *inner = json_object_new_object();

	job.args = json_object_new_object();
	if (!inner || !job.args)
		abort(); /* as the adders of sbx/json.h do */
	sbx_json_add_string(inner, "reject_id", reject_of(retry->request));
	sbx_json_add(job.args, "args", inner);
	if (pool_submit(retry->request->daemon->pool, &job) < 0)
		retry_end(retry); /* as above */
}

static void on_retried(void *data, struct json_object *result, const struct sbx_err *err,
	struct json_object *details)
{
	struct retry *retry = data;

	if (err) {
		retry_fail(retry, err, details);
		return;
	}
	retry->answer = publish_answer(NULL, result);
	json_object_object_del(retry->answer, "workspace_session_id");
	if (!strcmp(sbx_json_string(result, "outcome", ""), "rejected"))
		retry_end(retry);
	else
		drop_landed(retry);
}

/* Refuses the request when its reject is being tried again. */
static bool is_busy(struct request *request)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct retry *retry;

	TAILQ_FOREACH(retry, &request->daemon->retries, entry)
	if (!strcmp(reject_of(retry->request), reject_of(request))) {
		(void)sbx_err_kind(&err, SBX_KIND_CONFLICT, EBUSY,
			"reject %s is being tried again at this moment; see 'sbx-admin reject "
			"list' when that is done",
			reject_of(request));
		request_fail(request, &err, NULL);
		return true;
	}
	return false;
}

void op_reject_retry(struct request *request)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct retry *retry;
	int r;

	if (is_busy(request))
		return;
	retry = calloc(1, sizeof(*retry));
	r = retry ? 0 : -ENOMEM;
	if (r == 0) {
		retry->request = request;
		TAILQ_INSERT_TAIL(&request->daemon->retries, retry, entry);
		r = commit_reject(request->daemon->commits, reject_of(request), on_retried, retry);
	}
	if (r == 0)
		return;
	if (retry)
		retry_free(retry);
	(void)pool_refused(&err, r, "retry the reject");
	request_fail(request, &err, NULL);
}

void op_reject_drop(struct request *request)
{
	if (!is_busy(request))
		op_read_job(request);
}

void retries_free(struct daemon *daemon)
{
	struct retry *retry;

	while ((retry = TAILQ_FIRST(&daemon->retries))) {
		TAILQ_REMOVE(&daemon->retries, retry, entry);
		sbx_json_put(&retry->answer);
		free(retry);
	}
}
