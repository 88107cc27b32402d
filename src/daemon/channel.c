/* SPDX-License-Identifier: MIT */
#include "channel.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sbx/aside.h"
#include "sbx/fs.h"
#include "sbx/sock.h"

#define READ_CHUNK (64u << 10)

struct channel {
	struct sbx_loop *loop;
	struct sbx_watch *watch;
	int fd;
	struct sbx_buf in;
	struct sbx_buf out;
	size_t out_sent; /* bytes at the front of out that are gone */
	const struct channel_events *events;
	void *data;
	bool paused;
	bool was_behind;
	struct sbx_wire_header long_header; /* of the long request that is coming in */
	int long_fd;                        /* its memfd, or -EBADF */
	size_t long_left;                   /* bytes still to come */
	bool *freed; /* set when a callback frees the channel under our feet */
};

static size_t queued(const struct channel *channel)
{
	return channel->out.size - channel->out_sent;
}

bool channel_is_behind(const struct channel *channel)
{
	return queued(channel) >= CHANNEL_OUT_HIGH;
}

static void update_watch(struct channel *channel)
{
	uint32_t events = 0;

	if (!channel_is_behind(channel) && !channel->paused)
		events |= EPOLLIN;
	if (queued(channel))
		events |= EPOLLOUT;
	(void)sbx_watch_set(channel->watch, events); /* fails only for a fd that is not watched */
}

void channel_pause(struct channel *channel)
{
	channel->paused = true;
	update_watch(channel);
}

void channel_resume(struct channel *channel)
{
	channel->paused = false;
	update_watch(channel);
}

static int flush(struct channel *channel)
{
	while (channel->out_sent < channel->out.size) {
		ssize_t n = send(channel->fd, channel->out.data + channel->out_sent,
			channel->out.size - channel->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		channel->out_sent += (size_t)n;
	}
	if (channel->out_sent == channel->out.size) {
		channel->out_sent = 0;
		sbx_buf_clear(&channel->out);
		if (channel->out.capacity > READ_CHUNK)
			sbx_buf_done(&channel->out); /* one long answer must not stay in memory */
	} else if (channel->out_sent > READ_CHUNK && channel->out_sent > channel->out.size / 2) {
		/* a peer that is always a little behind: what is gone must not pile up */
		sbx_buf_consume(&channel->out, channel->out_sent);
		channel->out_sent = 0;
	}
	return 0;
}

/* The header of a long request is at the front of in: from here on its bytes go to a memfd. */
static int begin_long(struct channel *channel, size_t *used)
{
	struct sbx_wire_header header;
	size_t n = channel->in.size - *used;
	int r;

	if (!channel->events->long_request || n < sizeof(header))
		return 0;
	memcpy(&header, channel->in.data + *used, sizeof(header));
	if (header.kind != SBX_WIRE_REQUEST || header.size <= SBX_ASIDE_FRAME_MIN ||
		header.size > SBX_WIRE_PAYLOAD_MAX)
		return 0;
	channel->long_fd = memfd_create("request", MFD_CLOEXEC);
	if (channel->long_fd < 0)
		return -errno;
	n = SBX_MIN(n - sizeof(header), (size_t)header.size);
	r = sbx_fs_write_all(channel->long_fd, channel->in.data + *used + sizeof(header), n);
	channel->long_header = header;
	channel->long_left = header.size - n;
	*used += sizeof(header) + n;
	return r;
}

static int fill_long(struct channel *channel)
{
	char chunk[READ_CHUNK];
	ssize_t n =
		recv(channel->fd, chunk, SBX_MIN(sizeof(chunk), channel->long_left), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNRESET;
	channel->long_left -= (size_t)n;
	return sbx_fs_write_all(channel->long_fd, chunk, (size_t)n);
}

static int fill(struct channel *channel)
{
	ssize_t n;
	int r;

	if (channel->long_fd >= 0)
		return fill_long(channel);
	r = sbx_buf_reserve(&channel->in, READ_CHUNK);
	if (r < 0)
		return r;
	n = recv(channel->fd, channel->in.data + channel->in.size,
		channel->in.capacity - channel->in.size - 1, MSG_DONTWAIT);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ECONNRESET;
	channel->in.size += (size_t)n;
	return 0;
}

/* Hands out whole frames. 1 when a callback freed the channel. */
static int dispatch(struct channel *channel)
{
	struct sbx_wire_header header;
	const char *payload;
	bool freed = false;
	size_t used = 0;
	int r;

	channel->freed = &freed;
	for (;;) {
		if (channel->long_fd < 0 && (r = begin_long(channel, &used)) < 0)
			break;
		if (channel->long_fd >= 0 && channel->long_left) {
			r = 0;
			break;
		}
		if (channel->long_fd >= 0) {
			channel->events->long_request(channel->data, &channel->long_header,
				sbx_fd_take(&channel->long_fd));
			if (freed)
				return 1;
			continue;
		}
		struct sbx_buf rest = {.data = channel->in.data + used,
			.size = channel->in.size - used,
			.capacity = 0};

		r = sbx_wire_peek(&rest, &header, &payload);
		if (r <= 0)
			break;
		used += sizeof(header) + header.size;
		channel->events->frame(channel->data, &header, payload);
		if (freed)
			return 1;
	}
	channel->freed = NULL;
	sbx_buf_consume(&channel->in, used);
	if (channel->in.size == 0 && channel->in.capacity > 4 * READ_CHUNK)
		sbx_buf_done(&channel->in);
	return r;
}

/* Half of the mark: not one wake-up of the sender for each chunk that the peer takes. */
static void tell_caught_up(struct channel *channel)
{
	if (!channel->was_behind || queued(channel) > CHANNEL_OUT_HIGH / 2)
		return;
	channel->was_behind = false;
	if (channel->events->caught_up)
		channel->events->caught_up(channel->data);
}

static void on_ready(void *data, uint32_t events)
{
	struct channel *channel = data;
	int r = 0;

	if (events & EPOLLOUT)
		r = flush(channel);
	if (r == 0)
		tell_caught_up(channel);
	if (r == 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		r = fill(channel);
		if (r == 0)
			r = dispatch(channel);
		if (r > 0)
			return;
	}
	if (r < 0)
		channel->events->closed(channel->data, r == -ECONNRESET || r == -EPIPE ? 0 : r);
	else
		update_watch(channel);
}

int channel_new(struct sbx_loop *loop, int fd, const struct channel_events *events, void *data,
	struct channel **ret)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	int r;

	if (!channel) {
		sbx_fd_close(&fd);
		return -ENOMEM;
	}
	*channel = (struct channel){
		.loop = loop, .fd = fd, .long_fd = -EBADF, .events = events, .data = data};
	r = sbx_watch_new(loop, fd, EPOLLIN, on_ready, channel, &channel->watch);
	if (r < 0) {
		channel_free(channel);
		return r;
	}
	*ret = channel;
	return 0;
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	if (channel->freed)
		*channel->freed = true;
	sbx_watch_free(channel->watch);
	sbx_fd_close(&channel->fd);
	sbx_fd_close(&channel->long_fd);
	sbx_buf_done(&channel->in);
	sbx_buf_done(&channel->out);
	free(channel);
}

/* Sends what the socket takes at once; an error is left to the next read, which sees it too. */
static int push(struct channel *channel)
{
	(void)flush(channel); /* a dead peer also wakes us with EPOLLHUP */
	channel->was_behind |= channel_is_behind(channel);
	update_watch(channel);
	return 0;
}

int channel_send(struct channel *channel, enum sbx_wire_kind kind, uint64_t id, const void *payload,
	size_t size)
{
	int r = sbx_wire_put(&channel->out, kind, id, payload, size);

	return r < 0 ? r : push(channel);
}

/* Descriptors travel with the first byte of the frame, so the header goes first, alone. */
int channel_send_fds(struct channel *channel, enum sbx_wire_kind kind, uint64_t id,
	const void *payload, size_t size, const int *fds, size_t n_fds)
{
	struct sbx_wire_header header = {.size = (uint32_t)size, .kind = kind, .id = id};
	int r;

	if (queued(channel))
		return -EBUSY;
	r = sbx_sock_send(channel->fd, &header, sizeof(header), fds, n_fds);
	if (r == 0)
		r = sbx_buf_append(&channel->out, payload, size);
	return r < 0 ? r : push(channel);
}

int channel_send_raw(struct channel *channel, const void *frames, size_t size)
{
	int r = sbx_buf_append(&channel->out, frames, size);

	return r < 0 ? r : push(channel);
}
