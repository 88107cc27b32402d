/* SPDX-License-Identifier: MIT */
#include "link.h"

#include <assert.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "connect.h"
#include "reply.h"
#include "sbx/client.h"
#include "sbx/id.h"
#include "sbx/wire.h"

#define READ_SIZE (64u << 10)
#define KEEP_SIZE (1u << 20) /* an empty buffer above this goes back to the system */

struct mcp_link {
	struct mcp_links *links;
	struct mcp_link *next;
	char sandbox_id[SBX_ID_SIZE];
	struct mcp_connect *connect; /* NULL once connected */
	int fd;
	struct sbx_watch *watch;
	struct sbx_buf in, out;
	size_t sent; /* bytes at the front of out that are gone */
	struct mcp_call *calls;
};

struct mcp_links {
	struct sbx_loop *loop;
	mcp_answer_fn answer;
	mcp_sent_fn sent;
	void *data;
	struct mcp_link *first;
	size_t n_calls;
	uint64_t last_wire_id;
	bool paused;
};

void mcp_call_free(struct mcp_call *call)
{
	if (!call)
		return;
	free(call->id);
	free(call);
}

int mcp_links_new(struct sbx_loop *loop, mcp_answer_fn answer, mcp_sent_fn sent, void *data,
	struct mcp_links **ret)
{
	struct mcp_links *links = malloc(sizeof(*links));

	if (!links)
		return -ENOMEM;
	*links = (struct mcp_links){.loop = loop, .answer = answer, .sent = sent, .data = data};
	*ret = links;
	return 0;
}

static void link_free(struct mcp_link *link)
{
	assert(!link->calls); /* each is owed an answer, or was dropped */
	mcp_connect_free(link->connect);
	sbx_watch_free(link->watch);
	sbx_fd_close(&link->fd);
	sbx_buf_done(&link->in);
	sbx_buf_done(&link->out);
	free(link);
}

void mcp_links_free(struct mcp_links *links)
{
	if (!links)
		return;
	while (links->first) {
		struct mcp_link *link = links->first;

		links->first = link->next;
		link_free(link);
	}
	free(links);
}

size_t mcp_links_n_calls(const struct mcp_links *links)
{
	return links->n_calls;
}

size_t mcp_links_queued(const struct mcp_links *links)
{
	size_t n = 0;

	for (const struct mcp_link *link = links->first; link; link = link->next)
		n += link->out.size - link->sent;
	return n;
}

/* Takes the call that slot points at off its connection. */
static struct mcp_call *detach(struct mcp_links *links, struct mcp_call **slot)
{
	struct mcp_call *call = *slot;

	*slot = call->next;
	call->next = NULL;
	links->n_calls--;
	return call;
}

static void answer_error(struct mcp_links *links, struct mcp_call *call, const struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	mcp_put_failure(&text, err);
	links->answer(links->data, call, true, (struct mcp_span){text.data, text.size});
}

/* The end of a connection, or of the attempt to make one: every call on it hears why. */
static void link_end(struct mcp_link *link, const struct sbx_err *err)
{
	struct mcp_links *links = link->links;
	struct mcp_link **slot = &links->first;

	while (*slot != link)
		slot = &(*slot)->next;
	*slot = link->next;
	while (link->calls)
		answer_error(links, detach(links, &link->calls), err);
	link_free(link);
	links->sent(links->data);
}

static void link_lost(struct mcp_link *link, const char *how)
{
	struct sbx_err err = SBX_ERR_INIT;

	(void)sbx_err_kind(&err, SBX_KIND_CONNECTION, ECONNRESET,
		"the daemon of sandbox %s %s before it answered; its running commands have ended "
		"with it. What they had written is published, or kept as a reject, when the daemon "
		"starts again: the next call does that. Look at the files before you repeat this "
		"call: it may have been done",
		link->sandbox_id, how);
	link_end(link, &err);
}

/* Waits for what there is to wait for. A hang-up is reported even when nothing is asked for:
 * EPOLLONESHOT then lets it come once, and not over and over. */
static void update_watch(struct mcp_link *link)
{
	uint32_t wanted = 0;

	if (!link->watch)
		return;
	if (!link->links->paused)
		wanted |= EPOLLIN;
	if (link->out.size > link->sent)
		wanted |= EPOLLOUT;
	(void)sbx_watch_set(link->watch, wanted ? wanted : EPOLLONESHOT); /* its fd is open */
}

static void link_flush(struct mcp_link *link)
{
	while (link->fd >= 0 && link->sent < link->out.size) {
		ssize_t n = send(link->fd, link->out.data + link->sent, link->out.size - link->sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		/* Another error means that the daemon is gone. Reading finds that, too, after the
		 * answers that it left behind. */
		link->sent += n < 0 ? link->out.size - link->sent : (size_t)n;
	}
	if (link->sent == link->out.size) {
		if (link->out.capacity > KEEP_SIZE)
			sbx_buf_done(&link->out);
		sbx_buf_clear(&link->out);
		link->sent = 0;
	}
	update_watch(link);
}

/* How much to ask for: the rest of a long frame in one go. */
static size_t read_size(const struct sbx_buf *in)
{
	struct sbx_wire_header header;
	size_t frame;

	if (in->size < sizeof(header))
		return READ_SIZE;
	memcpy(&header, in->data, sizeof(header));
	frame = sizeof(header) + SBX_MIN(header.size, SBX_WIRE_PAYLOAD_MAX);
	return SBX_MAX(frame > in->size ? frame - in->size : 0, (size_t)READ_SIZE);
}

/* 1: something came, 0: nothing now, -errno: the end. */
static int link_read(struct mcp_link *link)
{
	ssize_t n;

	if (sbx_buf_reserve(&link->in, read_size(&link->in)) < 0)
		return -ENOMEM;
	n = recv(link->fd, link->in.data + link->in.size, link->in.capacity - link->in.size - 1,
		MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	link->in.size += (size_t)n;
	return 1;
}

/* A payload goes out as part of a line of ours: it must not be able to end that line. */
static bool is_one_line(struct mcp_span payload)
{
	return payload.size > 0 && !memchr(payload.data, '\n', payload.size) &&
	       sbx_utf8_valid(payload.data, payload.size);
}

static void take_answer(
	struct mcp_links *links, struct mcp_call *call, bool is_error, struct mcp_span payload)
{
	struct sbx_err err = SBX_ERR_INIT;

	if (is_one_line(payload)) {
		links->answer(links->data, call, is_error, payload);
		return;
	}
	(void)sbx_err_kind(&err, SBX_KIND_INTERNAL, EBADMSG,
		"the sandbox's daemon answered with something that is not one line of UTF-8; the "
		"call was done");
	answer_error(links, call, &err);
}

static void take_frame(
	struct mcp_link *link, const struct sbx_wire_header *header, const char *payload)
{
	struct mcp_call **slot = &link->calls;

	if (header->kind != SBX_WIRE_RESULT && header->kind != SBX_WIRE_ERROR)
		return; /* chunks belong to operations that are no tools */
	while (*slot && (*slot)->wire_id != header->id)
		slot = &(*slot)->next;
	if (!*slot)
		return; /* cancelled meanwhile */
	take_answer(link->links, detach(link->links, slot), header->kind == SBX_WIRE_ERROR,
		(struct mcp_span){payload, header->size});
}

static int take_frames(struct mcp_link *link)
{
	struct sbx_wire_header header;
	const char *payload;
	int r;

	while ((r = sbx_wire_peek(&link->in, &header, &payload)) > 0) {
		take_frame(link, &header, payload);
		sbx_buf_consume(&link->in, sizeof(header) + header.size);
	}
	if (link->in.size == 0 && link->in.capacity > KEEP_SIZE)
		sbx_buf_done(&link->in);
	return r;
}

static void on_event(void *data, uint32_t events)
{
	struct mcp_link *link = data;
	struct mcp_links *links = link->links;
	int r = 0;

	if (link->sent < link->out.size) {
		link_flush(link);
		links->sent(links->data);
	}
	if (links->paused || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	r = link_read(link);
	if (r > 0)
		r = take_frames(link);
	if (r == -EPROTO)
		link_lost(link, "sent something that is no answer");
	else if (r < 0)
		link_lost(link, "went away");
}

static void on_connected(void *data, int fd, const struct sbx_err *err)
{
	struct mcp_link *link = data;
	struct sbx_err watch_err = SBX_ERR_INIT;
	int r = 0;

	link->fd = fd;
	if (fd >= 0)
		r = sbx_watch_new(link->links->loop, fd, EPOLLIN, on_event, link, &link->watch);
	if (r < 0) {
		(void)sbx_err_kind(&watch_err, SBX_KIND_CONNECTION, -r,
			"watch the connection to sandbox %s: %m", link->sandbox_id);
		err = &watch_err;
	}
	if (!link->watch) {
		link_end(link, err);
		return;
	}
	mcp_connect_free(link->connect);
	link->connect = NULL;
	link_flush(link);
	link->links->sent(link->links->data);
}

/* Makes room by closing the connection that nobody waits on for longest. */
static bool drop_idle(struct mcp_links *links)
{
	struct mcp_link **idle = NULL, *link;

	for (struct mcp_link **slot = &links->first; *slot; slot = &(*slot)->next)
		if (!(*slot)->calls && !(*slot)->connect && (*slot)->sent == (*slot)->out.size)
			idle = slot;
	if (!idle)
		return false;
	link = *idle;
	*idle = link->next;
	link_free(link);
	return true;
}

static int link_new(
	struct mcp_links *links, const char *sandbox_id, struct mcp_link **ret, struct sbx_err *err)
{
	struct mcp_link *link;
	size_t n = 0;
	int r;

	for (link = links->first; link; link = link->next)
		n++;
	if (n >= MCP_LINKS_MAX && !drop_idle(links))
		return sbx_err_kind(err, SBX_KIND_BUSY, EBUSY,
			"calls to %d sandboxes are waiting already; wait for an answer and call "
			"again",
			MCP_LINKS_MAX);
	link = calloc(1, sizeof(*link));
	if (!link)
		return sbx_err_set(err, ENOMEM, "connect to sandbox %s: no memory", sandbox_id);
	link->links = links;
	link->fd = -EBADF;
	memcpy(link->sandbox_id, sandbox_id, strlen(sandbox_id) + 1);
	r = mcp_connect_new(links->loop, sandbox_id, on_connected, link, &link->connect, err);
	if (r < 0) {
		link_free(link);
		return r;
	}
	link->next = links->first;
	links->first = link;
	*ret = link;
	return 0;
}

static int link_get(
	struct mcp_links *links, const char *sandbox_id, struct mcp_link **ret, struct sbx_err *err)
{
	if (!sbx_id_valid(sandbox_id))
		return sbx_client_no_sandbox(sandbox_id, err);
	for (struct mcp_link **slot = &links->first; *slot; slot = &(*slot)->next) {
		struct mcp_link *link = *slot;

		if (strcmp(link->sandbox_id, sandbox_id) != 0)
			continue;
		*slot = link->next; /* to the front: the last one is out of use for longest */
		link->next = links->first;
		links->first = link;
		*ret = link;
		return 0;
	}
	return link_new(links, sandbox_id, ret, err);
}

/* {"op": ..., "args": ...} in a frame, put together in place. */
static int put_request(struct mcp_link *link, uint64_t wire_id, const struct sbx_op *op,
	struct json_object *args, struct sbx_err *err)
{
	struct sbx_wire_header header = {.kind = SBX_WIRE_REQUEST, .id = wire_id};
	struct sbx_buf *out = &link->out;
	size_t start = out->size;
	struct mcp_span text;

	text.data = sbx_json_text(args, &text.size);
	if (text.size > SBX_WIRE_PAYLOAD_MAX - 1024) /* op's name and what is around it */
		return sbx_err_kind(err, SBX_KIND_INVALID, EMSGSIZE,
			"arguments of %zu bytes are too long", text.size);
	mcp_put(out, (struct mcp_span){(const char *)&header, sizeof(header)});
	mcp_put_string(out, "{\"op\":\"");
	mcp_put_string(out, op->name);
	mcp_put_string(out, "\",\"args\":");
	mcp_put(out, text);
	mcp_put_string(out, "}");
	header.size = (uint32_t)(out->size - start - sizeof(header));
	memcpy(out->data + start, &header, sizeof(header));
	return 0;
}

int mcp_links_call(struct mcp_links *links, const struct sbx_op *op, struct json_object *args,
	struct mcp_call *call, struct sbx_err *err)
{
	struct mcp_call **slot;
	struct mcp_link *link = NULL;
	int r;

	if (links->n_calls >= MCP_CALLS_MAX)
		return sbx_err_kind(err, SBX_KIND_BUSY, EBUSY,
			"%d calls are waiting already; wait for an answer and call again",
			MCP_CALLS_MAX);
	r = link_get(links, sbx_json_string(args, "sandbox_id", ""), &link, err);
	if (r < 0)
		return r;
	call->wire_id = ++links->last_wire_id;
	r = put_request(link, call->wire_id, op, args, err);
	if (r < 0)
		return r;
	for (slot = &link->calls; *slot;)
		slot = &(*slot)->next;
	*slot = call;
	links->n_calls++;
	link_flush(link);
	return 0;
}

struct mcp_call *mcp_links_cancel(struct mcp_links *links, struct mcp_span id)
{
	for (struct mcp_link *link = links->first; link; link = link->next) {
		for (struct mcp_call **slot = &link->calls; *slot; slot = &(*slot)->next) {
			struct mcp_call *call = *slot;

			if (!mcp_span_equal((struct mcp_span){call->id, call->id_size}, id))
				continue;
			if (sbx_wire_put(&link->out, SBX_WIRE_CANCEL, call->wire_id, "", 0) < 0)
				abort(); /* no memory */
			(void)detach(links, slot);
			link_flush(link);
			return call;
		}
	}
	return NULL;
}

struct mcp_call *mcp_links_drop(struct mcp_links *links)
{
	for (struct mcp_link *link = links->first; link; link = link->next)
		if (link->calls)
			return detach(links, &link->calls);
	return NULL;
}

void mcp_links_pause(struct mcp_links *links, bool paused)
{
	if (links->paused == paused)
		return;
	links->paused = paused;
	for (struct mcp_link *link = links->first; link; link = link->next)
		update_watch(link);
}
