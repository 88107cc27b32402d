/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sbx/digest.h"
#include "sbx/fs.h"
#include "sbx/sock.h"

static void on_frame(void *data, const struct sbx_wire_header *header, const char *payload)
{
	struct peer *peer = data;
	struct frame *frame = &peer->frames[peer->n++];

	cr_assert_lt(peer->n, (size_t)FRAMES_MAX);
	*frame = (struct frame){.kind = header->kind, .id = header->id, .size = header->size};
	frame->text = calloc(1, (size_t)header->size + 1);
	cr_assert_not_null(frame->text);
	if (header->size)
		memcpy(frame->text, payload, header->size);
	if (peer->free_at_first) {
		channel_free(sbx_take(&peer->channel));
		sbx_loop_stop(peer->loop);
	}
	if (peer->n == peer->wanted)
		sbx_loop_stop(peer->loop);
}

static void on_closed(void *data, int reason)
{
	struct peer *peer = data;

	peer->ended = true;
	peer->reason = reason;
	channel_free(sbx_take(&peer->channel));
	sbx_loop_stop(peer->loop);
}

static const struct channel_events peer_events = {.frame = on_frame, .closed = on_closed};

void peer_init(struct peer *peer, struct sbx_loop *loop, int fd)
{
	*peer = (struct peer){.loop = loop, .fd = fd};
	cr_assert_eq(channel_new(loop, fd, &peer_events, peer, &peer->channel), 0);
}

void peer_done(struct peer *peer)
{
	channel_free(sbx_take(&peer->channel));
	for (size_t i = 0; i < peer->n; i++)
		free(peer->frames[i].text);
	peer->n = 0;
}

void peer_wait(struct peer *peer, size_t n)
{
	peer->wanted = n;
	while (peer->n < n && !peer->ended && peer->channel)
		cr_assert_eq(sbx_loop_run(peer->loop), 0);
}

void peer_wait_end(struct peer *peer)
{
	peer_wait(peer, FRAMES_MAX);
	cr_assert(peer->ended);
}

void peer_send(struct peer *peer, enum sbx_wire_kind kind, uint64_t id, const char *payload)
{
	cr_assert_eq(channel_send(peer->channel, kind, id, payload, strlen(payload)), 0);
}

const char *peer_text(const struct peer *peer, uint64_t id, enum sbx_wire_kind kind)
{
	const struct frame *found = NULL;

	for (size_t i = 0; i < peer->n; i++) {
		if (peer->frames[i].id != id)
			continue;
		cr_assert_null(found, "two answers to request %llu", (unsigned long long)id);
		found = &peer->frames[i];
	}
	cr_assert_not_null(found, "no answer to request %llu", (unsigned long long)id);
	cr_assert_eq(found->kind, kind, "%s", found->text);
	return found->text;
}

static int open_dir(int at, const char *name)
{
	int fd = -EBADF;

	cr_assert_eq(sbx_fs_ensure_dir(at, name, 0755, &fd), 0);
	return fd;
}

/* One version, of the layer base: docs/store-format.md. */
static void write_head_log(int store_fd)
{
	static const char record[] = "1 0 1 snapshot {\"format\":1,\"layers\":[\"base\"]}";
	SBX_BUF struct sbx_buf line = SBX_BUF_INIT;
	char hex[SBX_DIGEST_HEX_SIZE];
	struct sbx_digest digest;

	sbx_digest_bytes(record, strlen(record), &digest);
	sbx_digest_hex(&digest, hex);
	cr_assert_eq(sbx_buf_printf(&line, "%.16s %s\n", hex, record), 0);
	cr_assert_eq(sbx_fs_write_at(store_fd, "head.log", 0600, line.data, line.size, 0), 0);
}

void world_init(struct world *w)
{
	struct daemon *daemon = &w->daemon;
	struct sbx_err err = SBX_ERR_INIT;

	*w = (struct world){.path = "/tmp/sbx-test-daemon-XXXXXX"};
	cr_assert_not_null(mkdtemp(w->path));
	cr_assert_eq(chmod(w->path, 0755), 0); /* another user finds the socket */
	daemon->context.sandbox_fd = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(daemon->context.sandbox_fd, 0);
	daemon->context.store_fd = open_dir(daemon->context.sandbox_fd, "store");
	daemon->context.layers_fd = open_dir(daemon->context.store_fd, "layers");
	daemon->context.rejects_fd = open_dir(daemon->context.store_fd, "rejects");
	daemon->context.sessions_fd = open_dir(daemon->context.sandbox_fd, "sessions");
	daemon->context.commands_fd = open_dir(daemon->context.sandbox_fd, "commands");
	(void)close(open_dir(daemon->context.layers_fd, "base"));
	write_head_log(daemon->context.store_fd);
	cr_assert_eq(sbx_head_log_open(daemon->context.store_fd, true, &daemon->log, &err), 0, "%s",
		err.message);
	daemon->sandbox.root_at = strdup("/workspace");
	daemon->sandbox.rootfs = strdup("host");
	cr_assert(daemon->sandbox.root_at && daemon->sandbox.rootfs);
	(void)snprintf(daemon->sandbox.id, sizeof(daemon->sandbox.id), "box");
	daemon->sandbox.owner_uid = 4321;
	daemon->listen_fd = -EBADF;
	TAILQ_INIT(&daemon->clients);
	TAILQ_INIT(&daemon->sessions);
	TAILQ_INIT(&daemon->commands);
	TAILQ_INIT(&daemon->orphans);
	TAILQ_INIT(&daemon->retries);
	cr_assert_eq(sbx_loop_new(&daemon->loop), 0);
	cr_assert_eq(pool_new(daemon->loop, &daemon->context, &daemon->pool), 0);
	cr_assert_eq(clients_listen(daemon, &err), 0, "%s", err.message);
}

void world_done(struct world *w)
{
	struct daemon *daemon = &w->daemon;

	clients_free(daemon);
	pool_free(daemon->pool);
	requests_free(daemon);
	sbx_loop_free(daemon->loop);
	sbx_head_log_free(daemon->log);
	sbx_sandbox_done(&daemon->sandbox);
	sbx_fd_close(&daemon->context.commands_fd);
	sbx_fd_close(&daemon->context.sessions_fd);
	sbx_fd_close(&daemon->context.rejects_fd);
	sbx_fd_close(&daemon->context.layers_fd);
	sbx_fd_close(&daemon->context.store_fd);
	sbx_fd_close(&daemon->context.sandbox_fd);
	(void)sbx_fs_remove_tree(AT_FDCWD, w->path);
}

int world_connect(struct world *w)
{
	int fd = -EBADF;

	cr_assert_eq(sbx_sock_connect(w->daemon.context.sandbox_fd, "sandboxd.sock", &fd), 0);
	return fd;
}

static void stop(void *data)
{
	sbx_loop_stop(data);
}

void world_settle(struct world *w)
{
	/* what became ready before the second round is handled in it at the latest */
	for (int i = 0; i < 2; i++) {
		struct sbx_timer *timer = NULL;

		cr_assert_eq(sbx_timer_new(w->daemon.loop, stop, w->daemon.loop, &timer), 0);
		cr_assert_eq(sbx_timer_set(timer, sbx_now_ns() + 1), 0);
		cr_assert_eq(sbx_loop_run(w->daemon.loop), 0);
		sbx_timer_free(timer);
	}
}
