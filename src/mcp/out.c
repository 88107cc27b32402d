/* SPDX-License-Identifier: MIT */
#include "out.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define KEEP_SIZE (1u << 20) /* an empty queue above this goes back to the system */

/*
 * A descriptor that does not block. O_NONBLOCK belongs to the open file, which others may hold as
 * well (the shell's terminal, a sibling's pipe), so a pipe or terminal is opened anew; only where
 * that is not allowed is the flag set on the one we have. Sockets have MSG_DONTWAIT, and files
 * do not block.
 */
static int open_nonblocking(struct mcp_out *out)
{
	char path[32];
	struct stat st;
	int flags;

	if (fstat(out->fd, &st) < 0)
		return -errno;
	out->is_socket = S_ISSOCK(st.st_mode);
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", out->fd);
	out->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (out->own_fd >= 0) {
		out->fd = out->own_fd;
		return 0;
	}
	flags = fcntl(out->fd, F_GETFL);
	if (flags < 0 || fcntl(out->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

/* Nothing is asked for while nothing waits: an error is reported all the same. */
static void update_watch(struct mcp_out *out)
{
	uint32_t wanted = mcp_out_pending(out) > 0 ? EPOLLOUT : 0;

	if (out->watch)
		(void)sbx_watch_set(out->watch, wanted); /* its fd is open */
}

static void fail(struct mcp_out *out, int code)
{
	out->failed = -code;
	sbx_watch_free(out->watch);
	out->watch = NULL;
	out->fn(out->data);
}

static void on_event(void *data, uint32_t events)
{
	struct mcp_out *out = data;

	mcp_out_flush(out);
	if (!out->failed && (events & (EPOLLERR | EPOLLHUP)))
		fail(out, EPIPE);
	else if (!out->failed)
		out->fn(out->data);
}

int mcp_out_init(struct mcp_out *out, struct sbx_loop *loop, int fd, mcp_out_fn fn, void *data)
{
	int r;

	*out = (struct mcp_out){.fd = fd, .own_fd = -EBADF, .fn = fn, .data = data};
	r = open_nonblocking(out);
	if (r < 0)
		return r;
	r = sbx_watch_new(loop, out->fd, 0, on_event, out, &out->watch);
	return r == -EPERM ? 0 : r; /* epoll_ctl(2): a file, or a device that never blocks */
}

void mcp_out_done(struct mcp_out *out)
{
	sbx_watch_free(out->watch);
	sbx_fd_close(&out->own_fd);
	sbx_buf_done(&out->buf);
}

static ssize_t write_some(struct mcp_out *out)
{
	const char *data = out->buf.data + out->sent;
	size_t size = mcp_out_pending(out);

	if (out->is_socket)
		return send(out->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(out->fd, data, size);
}

static void forget_sent(struct mcp_out *out)
{
	if (mcp_out_pending(out) == 0 && out->buf.capacity > KEEP_SIZE)
		sbx_buf_done(&out->buf);
	else if (mcp_out_pending(out) == 0)
		sbx_buf_clear(&out->buf);
	else if (out->sent > out->buf.size / 2)
		sbx_buf_consume(&out->buf, out->sent);
	else
		return;
	out->sent = 0;
}

void mcp_out_flush(struct mcp_out *out)
{
	while (!out->failed && mcp_out_pending(out) > 0) {
		ssize_t n = write_some(out);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && out->watch)
			break;
		if (n < 0) {
			fail(out, errno);
			return;
		}
		out->sent += (size_t)n;
	}
	if (!out->failed)
		forget_sent(out);
	update_watch(out);
}

size_t mcp_out_pending(const struct mcp_out *out)
{
	return out->buf.size - out->sent;
}
