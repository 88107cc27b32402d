/* SPDX-License-Identifier: MIT */
#include "fake_daemon.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "sbx/client.h"
#include "sbx/fs.h"
#include "sbx/sock.h"

#define SOCKET_NAME "socket"

/* Where sbx_client_connect() below leads: it runs in a child, which has a copy. */
static int daemon_dir_fd = -EBADF;

int sbx_client_no_sandbox(const char *sandbox_id, struct sbx_err *err)
{
	return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT, "no sandbox %s", sandbox_id);
}

int sbx_client_connect(const char *sandbox_id, int *ret_fd, struct sbx_err *err)
{
	int r;

	if (!strcmp(sandbox_id, "gone"))
		return sbx_client_no_sandbox(sandbox_id, err);
	if (!strcmp(sandbox_id, "broken"))
		return sbx_err_kind(err, SBX_KIND_CONNECTION, ENOEXEC, "cannot start it");
	if (!strcmp(sandbox_id, "crash"))
		(void)raise(SIGKILL);
	r = sbx_sock_connect(daemon_dir_fd, SOCKET_NAME, ret_fd);
	return r < 0 ? sbx_err_kind(err, SBX_KIND_CONNECTION, -r, "connect: %m") : 0;
}

static void advance(void *data)
{
	struct bench *bench = data;

	bench->advance_deferred = false;
	while (*bench->steps && (*bench->steps)(bench))
		bench->steps++;
	if (!*bench->steps)
		sbx_loop_stop(bench->loop);
}

static void advance_later(struct bench *bench)
{
	if (bench->advance_deferred)
		return;
	bench->advance_deferred = true;
	cr_assert_eq(sbx_loop_defer(bench->loop, advance, bench), 0);
}

/* The daemon's end of one connection. */
struct connection {
	struct connection *next;
	struct bench *bench;
	int fd;
	struct sbx_watch *watch;
	struct sbx_buf in;
};

static void record_frame(
	struct connection *connection, const struct sbx_wire_header *header, const char *payload)
{
	struct bench *bench = connection->bench;
	struct bench_frame *frame = &bench->frames[bench->n_frames];

	cr_assert_lt(bench->n_frames, BENCH_FRAMES_MAX);
	*frame = (struct bench_frame){connection->fd, *header, malloc(header->size + 1u)};
	cr_assert_not_null(frame->payload);
	memcpy(frame->payload, payload, header->size);
	frame->payload[header->size] = '\0';
	bench->n_frames++;
}

static void on_connection(void *data, uint32_t events SBX_UNUSED)
{
	struct connection *connection = data;
	struct sbx_wire_header header;
	const char *payload;
	ssize_t n;

	cr_assert_eq(sbx_buf_reserve(&connection->in, 1 << 20), 0);
	n = read(connection->fd, connection->in.data + connection->in.size, 1 << 20);
	if (n <= 0) {
		sbx_watch_free(connection->watch);
		connection->watch = NULL;
		return;
	}
	connection->in.size += (size_t)n;
	while (sbx_wire_peek(&connection->in, &header, &payload) > 0) {
		record_frame(connection, &header, payload);
		sbx_buf_consume(&connection->in, sizeof(header) + header.size);
	}
	advance_later(connection->bench);
}

static void on_listen(void *data, uint32_t events SBX_UNUSED)
{
	struct bench *bench = data;
	struct connection *connection = calloc(1, sizeof(*connection));

	cr_assert_not_null(connection);
	connection->bench = bench;
	connection->next = bench->connections;
	bench->connections = connection;
	connection->fd = accept4(bench->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(connection->fd, 0);
	cr_assert_eq(sbx_watch_new(bench->loop, connection->fd, EPOLLIN, on_connection, connection,
			     &connection->watch),
		0);
	bench->last_fd = connection->fd;
	bench->n_connections++;
	advance_later(bench);
}

static void on_line(void *data)
{
	struct bench *bench = data;

	bench->n_lines++;
	advance_later(bench);
}

static void on_answer(void *data, struct mcp_call *call, bool is_error, struct mcp_span payload)
{
	struct bench *bench = data;

	mcp_session_answer(&bench->session, call, is_error, payload);
}

static void on_sent(void *data)
{
	advance_later(data);
}

static void start_daemon(struct bench *bench)
{
	struct sbx_err err = SBX_ERR_INIT;

	(void)snprintf(bench->directory, sizeof(bench->directory), "/tmp/sbx-mcp-test-XXXXXX");
	cr_assert_not_null(mkdtemp(bench->directory));
	daemon_dir_fd = open(bench->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(daemon_dir_fd, 0);
	cr_assert_eq(sbx_sock_listen(daemon_dir_fd, SOCKET_NAME, 0600, &bench->listen_fd, &err), 0,
		"%s", err.message);
	cr_assert_eq(sbx_watch_new(bench->loop, bench->listen_fd, EPOLLIN, on_listen, bench,
			     &bench->listen_watch),
		0);
}

static void stop_daemon(struct bench *bench)
{
	while (bench->connections) {
		struct connection *connection = bench->connections;

		bench->connections = connection->next;
		sbx_watch_free(connection->watch);
		sbx_fd_close(&connection->fd);
		sbx_buf_done(&connection->in);
		free(connection);
	}
	sbx_watch_free(bench->listen_watch);
	sbx_fd_close(&bench->listen_fd);
	(void)unlinkat(daemon_dir_fd, SOCKET_NAME, 0);
	(void)rmdir(bench->directory);
	sbx_fd_close(&daemon_dir_fd);
	for (size_t i = 0; i < bench->n_frames; i++)
		free(bench->frames[i].payload);
}

void bench_run(const bench_step *steps)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	cr_assert_not_null(bench);
	bench->steps = steps;
	bench->last_fd = -EBADF;
	cr_assert_eq(sbx_loop_new(&bench->loop), 0);
	cr_assert_eq(mcp_links_new(bench->loop, on_answer, on_sent, bench, &bench->links), 0);
	bench->session = (struct mcp_session){
		.out = &bench->out,
		.flush = on_line,
		.data = bench,
		.links = bench->links,
		.negotiated = "2025-11-25",
	};
	start_daemon(bench);
	advance_later(bench);
	cr_expect_eq(sbx_loop_run(bench->loop), 0);
	mcp_session_end(&bench->session);
	mcp_links_free(bench->links);
	stop_daemon(bench);
	sbx_loop_free(bench->loop);
	sbx_buf_done(&bench->out);
	free(bench);
}

void bench_send(struct bench *bench, const char *fmt, ...)
{
	char *line = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&line, fmt, args);
	va_end(args);
	cr_assert_geq(n, 0);
	mcp_session_line(&bench->session, line, (size_t)n);
	free(line);
}

const char *bench_line(struct bench *bench, size_t i)
{
	static char *copy;
	const char *at = bench->out.data, *end;

	cr_assert_lt(i, bench->n_lines, "there are %zu lines", bench->n_lines);
	while (i-- > 0)
		at = strchr(at, '\n') + 1;
	end = strchr(at, '\n');
	free(copy);
	copy = strndup(at, (size_t)(end - at));
	cr_assert_not_null(copy);
	return copy;
}

void bench_answer(struct bench *bench, size_t i, enum sbx_wire_kind kind, const char *payload)
{
	SBX_BUF struct sbx_buf frame = SBX_BUF_INIT;

	cr_assert_lt(i, bench->n_frames);
	cr_assert_eq(
		sbx_wire_put(&frame, kind, bench->frames[i].header.id, payload, strlen(payload)),
		0);
	cr_assert_eq(sbx_fs_write_all(bench->frames[i].fd, frame.data, frame.size), 0);
}

size_t bench_frame_with(struct bench *bench, const char *text)
{
	size_t i = bench->n_frames;

	while (i > 0 && !strstr(bench->frames[i - 1].payload, text))
		i--;
	cr_assert_gt(i, 0, "no frame with %s", text);
	return i - 1;
}
