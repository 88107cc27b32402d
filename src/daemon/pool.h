/* SPDX-License-Identifier: MIT */
/*
 * Workers: processes that run jobs (job.h), one at a time each. They are forked as work comes, up
 * to a limit, and stay for more; at least one stays free of long jobs, so that a publication of
 * 100,000 files delays no read.
 */
#ifndef SBX_DAEMON_POOL_H
#define SBX_DAEMON_POOL_H

#include "sbx/err.h"
#include "sbx/job.h"
#include "sbx/loop.h"
#include "sbx/view.h"

#define POOL_WORKERS_MAX 16
#define POOL_QUEUE_MAX   4096 /* jobs waiting; one more is refused (server_busy) */

struct pool;

/* The end of a job. On success err is NULL and text the result's JSON (size bytes); else err
 * tells why and details (borrowed, may be NULL) more. */
typedef void (*job_done_fn)(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details);
/* False: whoever gets the bytes is behind; the job's next ones wait for pool_resume(). */
typedef bool (*job_chunk_fn)(void *data, const void *bytes, size_t size);

struct job_request {
	const char *name;         /* of a job in job.h */
	struct json_object *args; /* taken */
	int fd;                   /* duplicated for the worker; -EBADF: none */
	int aside_fd;             /* what args has put aside (aside.h), duplicated; 0: nothing */
	job_done_fn done;         /* always called exactly once, never from pool_submit() itself */
	job_chunk_fn chunk;       /* NULL: the job sends none */
	void *data;
};

/* context: what each worker holds (borrowed). */
int pool_new(struct sbx_loop *loop, const struct sbx_job_context *context, struct pool **ret);
void pool_free(struct pool *pool);
int pool_submit(struct pool *pool, const struct job_request *request);
/* Says why pool_submit() gave r (negative) for what was to be done; server_busy if it is that. */
int pool_refused(struct sbx_err *err, int r, const char *what);
/* Somebody who was behind has caught up or has gone: jobs that wait for that go on. */
void pool_resume(struct pool *pool);
/* Adds the layers that jobs work on, running or waiting, to the set ret. */
int pool_pinned_layers(const struct pool *pool, struct sbx_stack *ret);
size_t pool_busy(const struct pool *pool); /* jobs running or waiting */

#endif
