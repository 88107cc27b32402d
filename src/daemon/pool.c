/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "sbx/sys.h"
#include "worker.h"

/* Jobs whose length depends on what a session wrote, on the store's size or on how fast a client
 * reads. All others are short
 * and may use the worker that is kept free for them. */
static const char *const long_jobs[] = {"publish", "reresolve", "preview", "squash", "gc", "verify",
	"export", "history", "intake", "reject_retry", "reject_export", "reject_drop", "reject_diff",
	"diff", "remove", "stat", "cat"};

#define PINS_MAX 2

struct job {
	TAILQ_ENTRY(job) entry;
	uint64_t id;
	struct sbx_buf payload;
	struct json_object *pins[PINS_MAX]; /* the stacks that its arguments name, or NULL */
	int fd, aside_fd;
	bool is_long;
	job_done_fn done;
	job_chunk_fn chunk;
	void *data;
};
TAILQ_HEAD(job_list, job);

struct worker_handle {
	TAILQ_ENTRY(worker_handle) entry;
	struct pool *pool;
	struct channel *channel;
	pid_t pid;
	struct job *job; /* in hand, or NULL */
};
TAILQ_HEAD(worker_list, worker_handle);

struct pool {
	struct sbx_loop *loop;
	const struct sbx_job_context *context;
	struct worker_list workers;
	struct job_list waiting;
	size_t n_workers, n_waiting, n_running_long, n_running;
	uint64_t next_id;
	bool scheduled;
};

static void schedule_later(struct pool *pool);

static void job_free(struct job *job)
{
	if (!job)
		return;
	sbx_buf_done(&job->payload);
	for (size_t i = 0; i < PINS_MAX; i++)
		sbx_json_put(&job->pins[i]);
	sbx_fd_close(&job->fd);
	sbx_fd_close(&job->aside_fd);
	free(job);
}

static void job_finish(struct job *job, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	job->done(job->data, text, size, err, details);
	job_free(job);
}

static struct job *take_job(struct worker_handle *worker)
{
	struct job *job = sbx_take(&worker->job);

	if (job) {
		worker->pool->n_running--;
		if (job->is_long)
			worker->pool->n_running_long--;
	}
	return job;
}

static void finish_with_error(struct job *job, const char *payload, size_t size)
{
	SBX_JSON struct json_object *body = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	if (sbx_json_parse(payload, size, &body, &err) == 0)
		(void)sbx_err_kind(&err, sbx_err_kind_parse(sbx_json_string(body, "kind", "")), EIO,
			"%s", sbx_json_string(body, "message", "no message"));
	job_finish(job, NULL, 0, &err, sbx_json_member(body, "details"));
}

static void on_frame(void *data, const struct sbx_wire_header *header, const char *payload)
{
	struct worker_handle *worker = data;
	struct pool *pool = worker->pool;
	struct job *job = worker->job;

	if (!job || header->id != job->id)
		return; /* a worker says nothing unasked; if it did, it is nobody's answer */
	if (header->kind == SBX_WIRE_CHUNK) {
		if (job->chunk && !job->chunk(job->data, payload, header->size))
			channel_pause(worker->channel);
		return;
	}
	job = take_job(worker);
	schedule_later(pool);
	if (header->kind == SBX_WIRE_RESULT)
		job_finish(job, payload, header->size, NULL, NULL);
	else
		finish_with_error(job, payload, header->size);
}

static void worker_free(struct worker_handle *worker)
{
	channel_free(worker->channel);
	TAILQ_REMOVE(&worker->pool->workers, worker, entry);
	worker->pool->n_workers--;
	free(worker);
}

/* How it ended, for the message: its socket is closed, so waitpid() does not wait long. */
static int reap(pid_t pid)
{
	int status = 0;

	(void)kill(pid, SIGKILL); /* our own child, not yet reaped: the pid is still its */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void on_closed(void *data, int reason SBX_UNUSED)
{
	struct worker_handle *worker = data;
	struct pool *pool = worker->pool;
	struct sbx_err err = SBX_ERR_INIT;
	struct job *job = take_job(worker);
	int status = reap(worker->pid);

	worker_free(worker);
	schedule_later(pool);
	if (!job)
		return;
	(void)sbx_err_kind(&err, SBX_KIND_INTERNAL, ECHILD,
		"the worker process that did this ended unexpectedly (%s %d); nothing was "
		"published",
		WIFSIGNALED(status) ? "signal" : "exit code",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	job_finish(job, NULL, 0, &err, NULL);
}

static const struct channel_events worker_events = {.frame = on_frame, .closed = on_closed};

/*
 * Forks a worker and waits until it has closed what is not its own, its end of a pipe among it: a
 * session whose root it still held for a moment could not be released.
 */
static pid_t fork_worker(const struct pool *pool, int child_fd)
{
	pid_t parent = getpid(), pid;
	int fds[2];
	char byte;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		worker_main(child_fd, parent, pool->context);
	sbx_fd_close(&fds[1]);
	while (pid > 0 && read(fds[0], &byte, 1) < 0 && errno == EINTR)
		;
	sbx_fd_close(&fds[0]);
	return pid;
}

static struct worker_handle *worker_new(struct pool *pool)
{
	struct worker_handle *worker = calloc(1, sizeof(*worker));
	SBX_CLOSE int parent_fd = -EBADF, child_fd = -EBADF;
	int fds[2];

	if (!worker || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		free(worker);
		return NULL;
	}
	parent_fd = fds[0];
	child_fd = fds[1];
	worker->pool = pool;
	worker->pid = fork_worker(pool, child_fd);
	if (worker->pid < 0 || channel_new(pool->loop, sbx_fd_take(&parent_fd), &worker_events,
				       worker, &worker->channel) < 0) {
		if (worker->pid > 0)
			(void)reap(worker->pid);
		free(worker);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&pool->workers, worker, entry);
	pool->n_workers++;
	return worker;
}

static struct worker_handle *find_idle(struct pool *pool)
{
	struct worker_handle *worker;

	TAILQ_FOREACH(worker, &pool->workers, entry)
	if (!worker->job)
		return worker;
	return pool->n_workers < POOL_WORKERS_MAX ? worker_new(pool) : NULL;
}

/* The first job that may run now: long ones leave one worker for the short. */
static struct job *next_job(struct pool *pool)
{
	struct job *job;

	TAILQ_FOREACH(job, &pool->waiting, entry)
	if (!job->is_long || pool->n_running_long < POOL_WORKERS_MAX - 1)
		return job;
	return NULL;
}

static void hand_out(struct pool *pool, struct worker_handle *worker, struct job *job)
{
	struct sbx_err err = SBX_ERR_INIT;
	size_t n_fds = 0;
	int fds[2], r;

	TAILQ_REMOVE(&pool->waiting, job, entry);
	pool->n_waiting--;
	if (job->fd >= 0)
		fds[n_fds++] = job->fd;
	if (job->aside_fd >= 0)
		fds[n_fds++] = job->aside_fd;
	r = channel_send_fds(worker->channel, SBX_WIRE_REQUEST, job->id, job->payload.data,
		job->payload.size, fds, n_fds);
	if (r < 0) {
		(void)sbx_err_kind(&err, SBX_KIND_INTERNAL, -r, "hand a job to a worker: %m");
		job_finish(job, NULL, 0, &err, NULL);
		return;
	}
	sbx_buf_done(&job->payload);
	sbx_fd_close(&job->fd);
	sbx_fd_close(&job->aside_fd);
	worker->job = job;
	pool->n_running++;
	if (job->is_long)
		pool->n_running_long++;
}

/* There is no worker, none can be made, and no end of a job will make us try again. */
static void give_up(struct pool *pool, struct job *job)
{
	struct sbx_err err = SBX_ERR_INIT;

	TAILQ_REMOVE(&pool->waiting, job, entry);
	pool->n_waiting--;
	(void)sbx_err_kind(&err, SBX_KIND_BUSY, EAGAIN,
		"no worker process could be started (too many processes or no memory); try again");
	job_finish(job, NULL, 0, &err, NULL);
}

static void schedule(void *data)
{
	struct pool *pool = data;
	struct worker_handle *worker;
	struct job *job;

	pool->scheduled = false;
	while ((job = next_job(pool))) {
		worker = find_idle(pool);
		if (worker)
			hand_out(pool, worker, job);
		else if (pool->n_running == 0)
			give_up(pool, job);
		else
			return; /* the next end of a job comes back here */
	}
}

static void schedule_later(struct pool *pool)
{
	if (pool->scheduled)
		return;
	pool->scheduled = sbx_loop_defer(pool->loop, schedule, pool) == 0;
}

static bool is_long(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(long_jobs); i++)
		if (!__builtin_strcmp(long_jobs[i], name))
			return true;
	return false;
}

static int put_payload(struct job *job, const struct job_request *request)
{
	SBX_JSON struct json_object *frame = json_object_new_object();
	const char *text;
	size_t size;

	if (!frame)
		return -ENOMEM;
	sbx_json_add_string(frame, "op", request->name);
	if (request->aside_fd)
		sbx_json_add_bool(frame, "aside", true); /* the last descriptor that comes along */
	sbx_json_add(frame, "args", json_object_get(request->args));
	text = sbx_json_text(frame, &size);
	return sbx_buf_append(&job->payload, text, size);
}

/* What is read from must not be removed meanwhile: looked at only when layers go. */
static void pin_layers(struct job *job, struct json_object *args)
{
	static const char *const keys[PINS_MAX] = {"head", "base"};

	for (size_t i = 0; i < PINS_MAX; i++)
		job->pins[i] = json_object_get(sbx_json_member(args, keys[i]));
}

static int include_pins(const struct job *job, struct sbx_stack *ret)
{
	int r = 0;

	for (size_t i = 0; i < PINS_MAX; i++) {
		struct json_object *stack = job->pins[i];
		size_t n = json_object_is_type(stack, json_type_array)
				   ? json_object_array_length(stack)
				   : 0;

		for (size_t k = 0; r == 0 && k < n; k++)
			r = sbx_stack_include(
				ret, json_object_get_string(json_object_array_get_idx(stack, k)));
	}
	return r;
}

int pool_pinned_layers(const struct pool *pool, struct sbx_stack *ret)
{
	const struct worker_handle *worker;
	const struct job *job;
	int r = 0;

	TAILQ_FOREACH(job, &pool->waiting, entry)
	if (r == 0)
		r = include_pins(job, ret);
	TAILQ_FOREACH(worker, &pool->workers, entry)
	if (r == 0 && worker->job)
		r = include_pins(worker->job, ret);
	return r;
}

int pool_submit(struct pool *pool, const struct job_request *request)
{
	SBX_JSON struct json_object *args = request->args;
	struct job *job;
	int r;

	if (pool->n_waiting >= POOL_QUEUE_MAX)
		return -EAGAIN;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	*job = (struct job){.id = ++pool->next_id,
		.fd = -EBADF,
		.aside_fd = -EBADF,
		.is_long = is_long(request->name),
		.done = request->done,
		.chunk = request->chunk,
		.data = request->data};
	r = put_payload(job, request);
	pin_layers(job, args);
	if (r == 0 && request->fd >= 0) {
		job->fd = fcntl(request->fd, F_DUPFD_CLOEXEC, 3);
		r = job->fd < 0 ? -errno : 0;
	}
	if (r == 0 && request->aside_fd) {
		job->aside_fd = fcntl(request->aside_fd, F_DUPFD_CLOEXEC, 3);
		r = job->aside_fd < 0 ? -errno : 0;
	}
	if (r < 0) {
		job_free(job);
		return r;
	}
	TAILQ_INSERT_TAIL(&pool->waiting, job, entry);
	pool->n_waiting++;
	schedule_later(pool);
	return 0;
}

int pool_refused(struct sbx_err *err, int r, const char *what)
{
	if (r == -EAGAIN)
		return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
			"%s: %d jobs are waiting; try again in a moment", what, POOL_QUEUE_MAX);
	return sbx_err_set(err, -r, "%s: %m", what);
}

void pool_resume(struct pool *pool)
{
	struct worker_handle *worker;

	TAILQ_FOREACH(worker, &pool->workers, entry)
	channel_resume(worker->channel);
}

size_t pool_busy(const struct pool *pool)
{
	return pool->n_running + pool->n_waiting;
}

int pool_new(struct sbx_loop *loop, const struct sbx_job_context *context, struct pool **ret)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	*pool = (struct pool){.loop = loop, .context = context};
	TAILQ_INIT(&pool->workers);
	TAILQ_INIT(&pool->waiting);
	/* one is forked now, while the process is smallest */
	if (!worker_new(pool)) {
		free(pool);
		return -ENOMEM;
	}
	*ret = pool;
	return 0;
}

void pool_free(struct pool *pool)
{
	struct worker_handle *worker;
	struct job *job;

	if (!pool)
		return;
	while ((job = TAILQ_FIRST(&pool->waiting))) {
		TAILQ_REMOVE(&pool->waiting, job, entry);
		job_free(job);
	}
	while ((worker = TAILQ_FIRST(&pool->workers))) {
		job_free(take_job(worker));
		(void)reap(worker->pid);
		worker_free(worker);
	}
	free(pool);
}
