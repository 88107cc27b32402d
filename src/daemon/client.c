/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel.h"
#include "dispatch.h"
#include "sbx/aside.h"
#include "sbx/client.h"
#include "sbx/sock.h"

#define ACCEPT_REST_NS (SBX_NSEC_PER_SEC / 2)
#define SOCKET_NAME    "sandboxd.sock"
#define SOCKET_MODE    0666 /* who may connect is decided by SO_PEERCRED */

struct client {
	TAILQ_ENTRY(client) entry;
	struct daemon *daemon;
	struct channel *channel;
	uid_t uid;
	struct request_list requests;
	size_t n_requests;
};

static void request_free(struct request *request)
{
	if (request->client) {
		TAILQ_REMOVE(&request->client->requests, request, entry);
		request->client->n_requests--;
	} else {
		TAILQ_REMOVE(&request->daemon->orphans, request, entry);
	}
	sbx_timer_free(request->timer);
	sbx_json_put(&request->args);
	if (request->aside_fd)
		sbx_fd_close(&request->aside_fd);
	free(request);
}

static void send_error(struct client *client, uint64_t id, const struct sbx_err *err)
{
	SBX_BUF struct sbx_buf frame = SBX_BUF_INIT;

	if (sbx_wire_put_error(&frame, id, err, NULL) == 0)
		(void)channel_send_raw(client->channel, frame.data, frame.size);
}

static void send_result(struct request *request, const char *json, size_t size)
{
	struct sbx_err err = SBX_ERR_INIT;
	int r = channel_send(request->client->channel, SBX_WIRE_RESULT, request->id, json,
		size); /* a dead client hears nothing */

	if (r < 0) {
		(void)sbx_err_set(&err, -r, "%s: an answer of %zu bytes cannot be sent: %m",
			request->op->name, size);
		send_error(request->client, request->id, &err);
	}
}

void request_result_text(struct request *request, const char *json, size_t size)
{
	if (request->client)
		send_result(request, json, size);
	request_free(request);
}

void request_result(struct request *request, struct json_object *result)
{
	size_t size;
	const char *text = sbx_json_text(result, &size);

	request_result_text(request, text, size);
	sbx_json_put(&result);
}

void request_fail(struct request *request, const struct sbx_err *err, struct json_object *details)
{
	SBX_BUF struct sbx_buf frame = SBX_BUF_INIT;

	if (request->client && sbx_wire_put_error(&frame, request->id, err, details) == 0)
		(void)channel_send_raw(request->client->channel, frame.data, frame.size);
	request_free(request);
}

int request_chunk(struct request *request, const void *bytes, size_t size)
{
	if (!request->client)
		return -EPIPE;
	return channel_send(request->client->channel, SBX_WIRE_CHUNK, request->id, bytes, size);
}

bool request_is_behind(const struct request *request)
{
	return request->client && channel_is_behind(request->client->channel);
}

static struct request *find_request(struct client *client, uint64_t id)
{
	struct request *request;

	TAILQ_FOREACH(request, &client->requests, entry)
	if (request->id == id)
		return request;
	return NULL;
}

static void stop_waiting(struct client *client, uint64_t id)
{
	struct request *request = find_request(client, id);
	struct sbx_err err = SBX_ERR_INIT;

	if (request)
		request->cancelled = true;
	if (!request || !request->cancel)
		return; /* answered already, or about to be */
	request->cancel(request);
	(void)sbx_err_kind(&err, SBX_KIND_CONFLICT, ECANCELED,
		"waiting was cancelled by the caller; what it started goes on");
	request_fail(request, &err, NULL);
}

/* NULL when it was refused. */
static struct request *request_new(struct client *client, uint64_t id)
{
	struct request *request =
		client->n_requests < CLIENT_REQUESTS_MAX ? calloc(1, sizeof(*request)) : NULL;
	struct sbx_err err = SBX_ERR_INIT;

	if (!request) {
		(void)sbx_err_kind(&err, SBX_KIND_BUSY, EAGAIN,
			"%d requests of this client are in flight; wait for some to be answered",
			CLIENT_REQUESTS_MAX);
		send_error(client, id, &err);
		return NULL;
	}
	*request = (struct request){
		.daemon = client->daemon,
		.client = client,
		.id = id,
		.uid = client->uid,
		.since_ns = sbx_now_ns(),
	};
	TAILQ_INSERT_TAIL(&client->requests, request, entry);
	client->n_requests++;
	return request;
}

static void start_request(struct client *client, uint64_t id, const char *payload, size_t size)
{
	SBX_JSON struct json_object *args = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	const struct sbx_op *op = NULL;
	struct request *request;

	if (sbx_op_parse(payload, size, &op, &args, &err) < 0) {
		send_error(client, id, &err);
		return;
	}
	request = request_new(client, id);
	if (!request)
		return;
	request->op = op;
	request->args = sbx_take(&args);
	dispatch(request);
}

static void on_taken_apart(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details)
{
	SBX_JSON struct json_object *body = NULL;
	struct sbx_err own_err = SBX_ERR_INIT;
	struct request *request = data;
	int r = 0;

	if (!err && request->cancelled)
		r = sbx_err_kind(&own_err, SBX_KIND_CONFLICT, ECANCELED,
			"cancelled by the caller; nothing was started");
	else if (!err)
		r = sbx_json_parse(text, size, &body, &own_err);
	if (err || r < 0) {
		request_fail(request, err ? err : &own_err, details);
		return;
	}
	request->op = sbx_op_find(sbx_json_string(body, "op", "")); /* a worker found it */
	request->args = json_object_get(sbx_json_member(body, "args"));
	dispatch(request);
}

static void on_long_request(void *data, const struct sbx_wire_header *header, int fd)
{
	struct client *client = data;
	struct request *request = request_new(client, header->id);
	struct job_request job = {.name = "intake",
		.args = json_object_new_object(),
		.fd = fd,
		.done = on_taken_apart,
		.data = request};
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	if (!request) {
		sbx_fd_close(&fd);
		json_object_put(job.args);
		return;
	}
	request->aside_fd = fd;
	r = pool_submit(client->daemon->pool, &job);
	if (r < 0) {
		(void)sbx_err_kind(&err, SBX_KIND_BUSY, -r,
			"a request of %u bytes cannot be taken apart now: %m; try again",
			header->size);
		request_fail(request, &err, NULL);
	}
}

static void on_frame(void *data, const struct sbx_wire_header *header, const char *payload)
{
	struct client *client = data;

	if (header->kind == SBX_WIRE_REQUEST)
		start_request(client, header->id, payload, header->size);
	else if (header->kind == SBX_WIRE_CANCEL)
		stop_waiting(client, header->id);
}

/* Requests that only waited end here; those that change something lose only their reader. */
static void client_free(struct client *client)
{
	struct daemon *daemon = client->daemon;
	struct request *request, *next;

	for (request = TAILQ_FIRST(&client->requests); request; request = next) {
		next = TAILQ_NEXT(request, entry);
		if (request->cancel) {
			request->cancel(request);
			request_free(request);
		} else {
			TAILQ_REMOVE(&client->requests, request, entry);
			request->client = NULL;
			TAILQ_INSERT_TAIL(&daemon->orphans, request, entry);
		}
	}
	channel_free(client->channel);
	TAILQ_REMOVE(&daemon->clients, client, entry);
	daemon->n_clients--;
	free(client);
	pool_resume(daemon->pool);
	if (daemon->listen_watch)
		(void)sbx_watch_set(daemon->listen_watch, EPOLLIN); /* a descriptor is free again */
	daemon_touch(daemon);
}

static void on_closed(void *data, int reason)
{
	struct client *client = data;

	if (reason < 0)
		daemon_log("a client broke the protocol (%s); its connection is closed",
			strerror(-reason));
	client_free(client);
}

static void on_caught_up(void *data)
{
	struct client *client = data;
	struct request *request, *next;

	pool_resume(client->daemon->pool);
	for (request = TAILQ_FIRST(&client->requests); request; request = next) {
		next = TAILQ_NEXT(request, entry);
		if (request->progress)
			request->progress(request);
	}
}

static const struct channel_events client_events = {.frame = on_frame,
	.long_request = on_long_request,
	.closed = on_closed,
	.caught_up = on_caught_up};

/* Says who may not: the same words as for a sandbox that does not exist. */
static void refuse(int fd, const struct sbx_err *err)
{
	SBX_BUF struct sbx_buf frame = SBX_BUF_INIT;

	if (sbx_wire_put_error(&frame, 0, err, NULL) == 0)
		(void)send(fd, frame.data, frame.size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int admit(struct daemon *daemon, int fd, uid_t *ret_uid, struct sbx_err *err)
{
	uid_t uid;
	int r = sbx_sock_peer(fd, &uid, NULL);

	if (r < 0)
		return sbx_err_set(err, -r, "find out who connects: %m");
	if (uid != 0 && uid != daemon->sandbox.owner_uid)
		return sbx_client_no_sandbox(daemon->sandbox.id, err);
	if (daemon->n_clients >= CLIENTS_MAX)
		return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
			"%d clients are connected to '%s'; close some", CLIENTS_MAX,
			daemon->sandbox.id);
	*ret_uid = uid;
	return 0;
}

static void accept_again(void *data)
{
	struct daemon *daemon = data;

	if (daemon->listen_watch)
		(void)sbx_watch_set(daemon->listen_watch, EPOLLIN);
}

/* No descriptors: the backlog waits until a client has gone, or for a moment. The socket stays
 * readable meanwhile, which would keep the loop spinning. */
static void rest_accepting(struct daemon *daemon)
{
	daemon_log("accept a connection: %s; trying again in a moment", strerror(errno));
	if (sbx_timer_set(daemon->accept_timer, sbx_now_ns() + ACCEPT_REST_NS) == 0)
		(void)sbx_watch_set(daemon->listen_watch, 0);
}

static void on_connection(void *data, uint32_t events SBX_UNUSED)
{
	struct daemon *daemon = data;
	SBX_CLOSE int fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct sbx_err err = SBX_ERR_INIT;
	struct client *client;
	uid_t uid = 0;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			rest_accepting(daemon);
		return; /* else the caller gave up */
	}
	if (admit(daemon, fd, &uid, &err) < 0) {
		refuse(fd, &err);
		return;
	}
	client = calloc(1, sizeof(*client));
	if (!client)
		return;
	client->daemon = daemon;
	client->uid = uid;
	TAILQ_INIT(&client->requests);
	if (channel_new(daemon->loop, sbx_fd_take(&fd), &client_events, client, &client->channel) <
		0) {
		free(client);
		return;
	}
	TAILQ_INSERT_TAIL(&daemon->clients, client, entry);
	daemon->n_clients++;
	(void)channel_send(client->channel, SBX_WIRE_RESULT, 0, "{}", 2);
	daemon_touch(daemon);
}

int clients_listen(struct daemon *daemon, struct sbx_err *err)
{
	int r = sbx_sock_listen(
		daemon->context.sandbox_fd, SOCKET_NAME, SOCKET_MODE, &daemon->listen_fd, err);

	if (r < 0)
		return r;
	r = sbx_timer_new(daemon->loop, accept_again, daemon, &daemon->accept_timer);
	if (r == 0)
		r = sbx_watch_new(daemon->loop, daemon->listen_fd, EPOLLIN, on_connection, daemon,
			&daemon->listen_watch);
	return r < 0 ? sbx_err_set(err, -r, "watch the socket: %m") : 0;
}

void clients_free(struct daemon *daemon)
{
	struct client *client;

	sbx_watch_free(sbx_take(&daemon->listen_watch));
	sbx_timer_free(sbx_take(&daemon->accept_timer));
	if (daemon->listen_fd >= 0)
		(void)unlinkat(daemon->context.sandbox_fd, SOCKET_NAME, 0); /* stale is harmless */
	sbx_fd_close(&daemon->listen_fd);
	while ((client = TAILQ_FIRST(&daemon->clients)))
		client_free(client);
}

void requests_free(struct daemon *daemon)
{
	struct request *request;

	while ((request = TAILQ_FIRST(&daemon->orphans)))
		request_free(request);
}
