/* SPDX-License-Identifier: MIT */
/*
 * The writer: appends the records of what is accepted to head.log, as many as are ready with one
 * fdatasync, in a worker. Then the head moves, and who waits is told.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commit_internal.h"
#include "history.h"
#include "session.h"
#include "slots.h"
#include "stack_ops.h"

/* Records in one write to head.log. */
#define BATCH_MAX 64

int commits_replan(struct commits *commits)
{
	const struct sbx_head *head = daemon_head(commits->daemon);

	sbx_head_done(&commits->planned);
	commits->planned.version = head->version;
	return sbx_stack_copy(&head->stack, &commits->planned.stack);
}

static void put_on_head(struct publication *p)
{
	struct daemon *daemon = p->commits->daemon;
	struct sbx_head_change change = {
		.add_layer = p->layer_id,
		.remove = p->remove.n ? &p->remove : NULL,
	};

	if (sbx_head_log_apply(daemon->log, p->version, &change) < 0)
		abort(); /* the log says so already: memory must not say otherwise */
	sbx_json_add_int(p->result, "version", (int64_t)p->version);
}

/* The worker may have died between write and answer, or after the half of it: what is in the log
 * was told to nobody, and must not be followed by other records of the same versions. */
static int cut_log(struct commits *commits)
{
	int fd = sbx_head_log_fd(commits->daemon->log);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size == commits->log_size)
		return 0;
	return ftruncate(fd, commits->log_size) < 0 || fdatasync(fd) < 0 ? -errno : 0;
}

/* Nothing of the batch was acknowledged, and what was planned on top of it has no base. */
static void batch_failed(struct commits *commits, const struct sbx_err *err)
{
	struct publication *p;

	TAILQ_CONCAT(&commits->writing, &commits->accepted, entry);
	if (commits_replan(commits) < 0)
		daemon_stop(commits->daemon); /* no memory: the next start reads the log afresh */
	while ((p = TAILQ_FIRST(&commits->writing))) {
		TAILQ_REMOVE(&commits->writing, p, entry);
		publication_finish(p, err, NULL);
	}
}

/* Now and then some milliseconds in which nobody is served: a job could not put the new log in the
 * place of the one that is open here. */
static void compact_log(struct commits *commits)
{
	struct daemon *daemon = commits->daemon;
	SBX_STACK struct sbx_stack gone = SBX_STACK_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	if (sbx_head_log_forget(
		    daemon->log, daemon->context.store_fd, commits->oldest, &gone, &err) < 0)
		daemon_log("shorten head.log: %s", err.message); /* it grows on; tried again */
	if (gone.n)
		history_forgotten(daemon, &gone);
}

void commits_forget(struct commits *commits, uint64_t oldest)
{
	commits->oldest = SBX_MAX(commits->oldest, oldest);
	if (!commits->is_writing)
		compact_log(commits);
}

static void note_acknowledged(struct daemon *daemon)
{
	int r = sbx_head_log_acknowledge(daemon->log);

	if (r < 0) /* what is published is durable all the same */
		daemon_log("note the acknowledged version: %s", strerror(-r));
}

static void on_written(void *data, const char *text SBX_UNUSED, size_t size SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	struct commits *commits = data;
	struct publication *p;

	commits->is_writing = false;
	if (err && cut_log(commits) < 0) {
		daemon_log("head.log cannot be restored after: %s; sandboxd ends", err->message);
		daemon_stop(commits->daemon); /* nobody is told anything: the next start reads it */
		return;
	}
	if (err) {
		batch_failed(commits, err);
	} else {
		TAILQ_FOREACH(p, &commits->writing, entry)
		put_on_head(p);
		note_acknowledged(commits->daemon);
		slots_head_changed(commits->daemon->slots);
		while ((p = TAILQ_FIRST(&commits->writing))) {
			TAILQ_REMOVE(&commits->writing, p, entry);
			publication_finish(p, NULL, NULL);
		}
		session_prepare_standby(commits->daemon);
		stack_maybe_squash(commits->daemon);
		compact_log(commits);
	}
	commits_write(commits);
	commits_sequence(commits);
}

static int format_batch(struct commits *commits)
{
	struct daemon *daemon = commits->daemon;
	struct publication *p;
	size_t n = 0;
	int r;

	sbx_buf_clear(&commits->batch);
	while (n++ < BATCH_MAX && (p = TAILQ_FIRST(&commits->accepted))) {
		struct sbx_head_change change = {
			.add_layer = p->layer_id,
			.remove = p->remove.n ? &p->remove : NULL,
		};

		r = sbx_head_log_format(daemon->log, p->version, &change, &commits->batch);
		if (r < 0)
			return r;
		TAILQ_REMOVE(&commits->accepted, p, entry);
		TAILQ_INSERT_TAIL(&commits->writing, p, entry);
	}
	return 0;
}

void commits_write(struct commits *commits)
{
	struct job_request request = {
		.name = "commit",
		.fd = sbx_head_log_fd(commits->daemon->log),
		.done = on_written,
		.data = commits,
	};
	struct sbx_err err = SBX_ERR_INIT;
	struct stat st;
	int r;

	if (commits->is_writing || TAILQ_EMPTY(&commits->accepted))
		return;
	r = fstat(request.fd, &st) < 0 ? -errno : 0;
	if (r == 0) {
		commits->log_size = st.st_size;
		r = format_batch(commits);
	}
	if (r == 0) {
		request.args = json_object_new_object();
		r = request.args ? 0 : -ENOMEM;
	}
	if (r == 0) {
		sbx_json_add_bytes(request.args, "batch", commits->batch.data, commits->batch.size);
		commits->is_writing = true;
		r = pool_submit(commits->daemon->pool, &request);
	}
	if (r < 0) {
		commits->is_writing = false;
		(void)sbx_err_set(&err, -r, "write head.log: %m");
		batch_failed(commits, &err);
	}
}
