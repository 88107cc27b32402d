/* SPDX-License-Identifier: MIT */
/*
 * Connections and requests. A request is answered exactly once, by request_result(),
 * request_result_text() or request_fail(), which also free it; when its client has gone the answer
 * goes nowhere, but the work it asked for is done all the same.
 */
#ifndef SBX_DAEMON_CLIENT_H
#define SBX_DAEMON_CLIENT_H

#include "daemon.h"

#define CLIENTS_MAX         256  /* connections; one more is told server_busy */
#define CLIENT_REQUESTS_MAX 1024 /* of one client in flight */

struct request {
	TAILQ_ENTRY(request) entry; /* in its client's list, or the daemon's of orphans */
	TAILQ_ENTRY(request) wait;  /* in the list of the thing it waits for */
	struct daemon *daemon;
	struct client *client; /* NULL when it has gone */
	uint64_t id;
	uid_t uid; /* of the client */
	const struct sbx_op *op;
	struct json_object *args; /* checked */
	int aside_fd;             /* its long texts (aside.h); 0: it has none */
	bool cancelled;           /* while a worker took it apart */
	uint64_t since_ns;        /* CLOCK_MONOTONIC of its arrival */
	/* Stops waiting (the client asks, or has gone). Set by whoever keeps the request; NULL: it
	 * cannot be stopped. Must not answer. */
	void (*cancel)(struct request *request);
	/* Called for each output of the command that it waits for, and when the client has caught
	 * up, in place of an answer at the end; answers by itself. NULL: an ordinary wait. */
	void (*progress)(struct request *request);
	uint64_t next_row;       /* command_tail */
	void *waiting_on;        /* for cancel and timer callbacks */
	struct session *session; /* whose root a worker holds for it; NULL: none */
	struct sbx_timer *timer;
	bool due;                       /* has waited as long as it may */
	uint64_t stdin_size, stdin_end; /* write_command_stdin: its bytes and where they end */
};

int clients_listen(struct daemon *daemon, struct sbx_err *err);
void clients_free(struct daemon *daemon);
/* At the end: requests that nobody will answer any more. */
void requests_free(struct daemon *daemon);

void request_result(struct request *request, struct json_object *result); /* takes result */
void request_result_text(struct request *request, const char *json, size_t size);
void request_fail(struct request *request, const struct sbx_err *err, struct json_object *details);
/* Raw bytes of a long answer; a result follows. -EPIPE when the client has gone. */
int request_chunk(struct request *request, const void *bytes, size_t size);
/* Its client reads more slowly than chunks come: jobs wait (job_chunk_fn), and progress() is called
 * when it has caught up. */
bool request_is_behind(const struct request *request);

#endif
