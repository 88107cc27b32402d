/* SPDX-License-Identifier: MIT */
/*
 * Everything happens in callbacks of the loop; what they change is looked at in one place,
 * turn(), once a round: more lines to take, whom to let wait, whether all is done.
 *
 * Memory stays bounded by letting others wait. While stdout or a daemon does not take what is
 * queued, no further line is begun (stdin fills up and the client waits); while stdout does not,
 * no further answer is read (the daemons wait).
 */
#include "server.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "lines.h"
#include "out.h"
#include "session.h"

#define QUEUED_HIGH (8u << 20) /* bytes before daemons, above which nothing new is begun */

struct server {
	struct sbx_loop *loop;
	struct mcp_links *links;
	struct mcp_lines lines;
	struct mcp_out out;
	struct mcp_session session;
	struct sbx_watch *in_watch;
	struct sbx_timer *in_timer; /* instead of the watch, where stdin is always ready */
	int signal_fd;
	struct sbx_watch *signal_watch;
	unsigned int n_signals;
	bool ended;         /* no more bytes will be read */
	bool turn_deferred; /* turn() runs at the end of this round */
	int failed;         /* -errno that ends it all */
};

static void stop(struct server *server, int code)
{
	server->failed = code;
	sbx_loop_stop(server->loop);
}

static bool is_congested(const struct server *server)
{
	return mcp_out_pending(&server->out) > MCP_OUT_HIGH ||
	       mcp_links_queued(server->links) > QUEUED_HIGH;
}

/* Takes the lines that are there. False: some may be left, others have to move first. */
static bool take_lines(struct server *server)
{
	enum mcp_line line = MCP_LINE_TEXT;
	const char *text;
	size_t size;

	while (line != MCP_LINE_NONE) {
		if (server->out.failed || is_congested(server))
			return false;
		line = mcp_lines_next(&server->lines, server->ended, &text, &size);
		if (line == MCP_LINE_TEXT)
			mcp_session_line(&server->session, text, size);
		else if (line == MCP_LINE_TOO_LONG)
			mcp_session_too_long(&server->session);
	}
	return true;
}

static void want_input(struct server *server, bool wanted)
{
	if (server->in_watch)
		(void)sbx_watch_set(server->in_watch,
			wanted ? EPOLLIN : EPOLLONESHOT); /* a hang-up is reported once */
	else if (server->in_timer && wanted)
		(void)sbx_timer_set(server->in_timer, sbx_now_ns()); /* its slot exists */
}

static void turn(void *data)
{
	struct server *server = data;
	bool taken;

	server->turn_deferred = false;
	taken = take_lines(server);
	if (server->out.failed) {
		stop(server, server->out.failed);
		return;
	}
	mcp_links_pause(server->links, mcp_out_pending(&server->out) > MCP_OUT_HIGH);
	want_input(server, taken && !server->ended);
	if (taken && server->ended && mcp_links_n_calls(server->links) == 0 &&
		mcp_out_pending(&server->out) == 0)
		stop(server, 0);
}

static void defer_turn(void *data)
{
	struct server *server = data;

	if (server->turn_deferred)
		return;
	server->turn_deferred = true;
	if (sbx_loop_defer(server->loop, turn, server) < 0)
		abort(); /* no memory */
}

static void end_input(struct server *server)
{
	server->ended = true;
	sbx_watch_free(server->in_watch);
	server->in_watch = NULL;
	sbx_timer_free(server->in_timer);
	server->in_timer = NULL;
}

static void read_input(struct server *server)
{
	char *room;
	size_t size;
	ssize_t n;

	if (server->ended)
		return;
	if (mcp_lines_room(&server->lines, &room, &size) < 0)
		abort();
	n = read(STDIN_FILENO, room, size);
	if (n > 0)
		mcp_lines_added(&server->lines, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		end_input(server); /* an error (a terminal that went away) is an end, too */
	defer_turn(server);
}

static void on_input(void *data, uint32_t events SBX_UNUSED)
{
	read_input(data);
}

static void on_input_timer(void *data)
{
	read_input(data);
}

static void on_signal(void *data, uint32_t events SBX_UNUSED)
{
	struct server *server = data;
	struct signalfd_siginfo info;

	if (read(server->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (++server->n_signals > 1) {
		stop(server, -EINTR); /* whoever sends a second one is not going to wait */
		return;
	}
	end_input(server);
	defer_turn(server);
}

/* An answer, and what may follow from it: it can be the last one. */
static void on_answer(void *data, struct mcp_call *call, bool is_error, struct mcp_span payload)
{
	struct server *server = data;

	mcp_session_answer(&server->session, call, is_error, payload);
	defer_turn(server);
}

static void flush(void *data)
{
	struct server *server = data;

	mcp_out_flush(&server->out);
}

static int start_signals(struct server *server)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGHUP);
	(void)signal(SIGUSR1, SIG_IGN); /* there is nothing that it could ask for */
	(void)signal(SIGUSR2, SIG_IGN);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	server->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (server->signal_fd < 0)
		return -errno;
	return sbx_watch_new(
		server->loop, server->signal_fd, EPOLLIN, on_signal, server, &server->signal_watch);
}

static int start_input(struct server *server)
{
	int r = sbx_watch_new(
		server->loop, STDIN_FILENO, EPOLLIN, on_input, server, &server->in_watch);

	if (r != -EPERM)
		return r;
	/* epoll_ctl(2): a file or /dev/null, which can be read at any time */
	r = sbx_timer_new(server->loop, on_input_timer, server, &server->in_timer);
	return r < 0 ? r : sbx_timer_set(server->in_timer, sbx_now_ns());
}

static int start(struct server *server, struct sbx_err *err)
{
	int r = sbx_loop_new(&server->loop);

	if (r < 0)
		return sbx_err_set(err, -r, "make an event loop: %m");
	r = mcp_links_new(server->loop, on_answer, defer_turn, server, &server->links);
	if (r < 0)
		return sbx_err_set(err, -r, "start: %m");
	r = start_signals(server);
	if (r < 0)
		return sbx_err_set(err, -r, "watch signals: %m");
	r = mcp_out_init(&server->out, server->loop, STDOUT_FILENO, defer_turn, server);
	if (r < 0)
		return sbx_err_set(err, -r, "watch stdout: %m");
	r = start_input(server);
	if (r < 0)
		return sbx_err_set(err, -r, "watch stdin: %m");
	return 0;
}

static void server_done(struct server *server)
{
	end_input(server);
	mcp_links_free(server->links);
	sbx_watch_free(server->signal_watch);
	sbx_fd_close(&server->signal_fd);
	mcp_out_done(&server->out);
	mcp_lines_done(&server->lines);
	sbx_loop_free(server->loop);
}

static int why_ended(const struct server *server, struct sbx_err *err)
{
	if (server->failed == -EINTR)
		return sbx_err_set(err, EINTR, "a second signal came before all was answered");
	if (server->failed < 0)
		return sbx_err_set(
			err, -server->failed, "the client does not read its answers any more: %m");
	return 0;
}

int mcp_server_run(const struct mcp_options *options, struct sbx_err *err)
{
	struct server server = {.signal_fd = -EBADF, .out = {.fd = -EBADF, .own_fd = -EBADF}};
	int r;

	r = start(&server, err);
	if (r == 0) {
		server.session = (struct mcp_session){
			.out = &server.out.buf,
			.flush = flush,
			.data = &server,
			.links = server.links,
			.as_text = options->text_content,
		};
		r = sbx_loop_run(server.loop);
		if (r < 0)
			(void)sbx_err_set(err, -r, "wait for events: %m");
		else
			r = why_ended(&server, err);
		mcp_session_end(&server.session);
	}
	server_done(&server);
	return r;
}
