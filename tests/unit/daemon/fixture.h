/* SPDX-License-Identifier: MIT */
/*
 * A daemon's parts in the test's own event loop, and peers that speak to them over real sockets: a
 * peer is a channel too, whose frames are kept.
 */
#ifndef TEST_DAEMON_FIXTURE_H
#define TEST_DAEMON_FIXTURE_H

#include <criterion/criterion.h>

#include "../../../src/daemon/channel.h"
#include "../../../src/daemon/client.h"

#define FRAMES_MAX 4096

struct frame {
	uint32_t kind;
	uint64_t id;
	char *text; /* the payload, NUL-terminated */
	size_t size;
};

struct peer {
	struct sbx_loop *loop;
	struct channel *channel;
	int fd; /* the channel's, for bytes that are no frames */
	struct frame frames[FRAMES_MAX];
	size_t n;
	size_t wanted; /* the loop stops when so many are there, or at the end */
	bool ended;
	int reason;
	bool free_at_first; /* frees the channel inside the callback */
};

/* Takes fd. */
void peer_init(struct peer *peer, struct sbx_loop *loop, int fd);
void peer_done(struct peer *peer);
#define PEER SBX_CLEANUP(peer_done)
/* Runs the loop until the peer has n frames in all, or its connection has ended. */
void peer_wait(struct peer *peer, size_t n);
/* The same until the other end has closed; everything that came before is kept. */
void peer_wait_end(struct peer *peer);
void peer_send(struct peer *peer, enum sbx_wire_kind kind, uint64_t id, const char *payload);
/* The only frame with that id, of that kind. */
const char *peer_text(const struct peer *peer, uint64_t id, enum sbx_wire_kind kind);

/* A daemon that has clients, a pool, and nothing else. */
struct world {
	char path[64];
	struct daemon daemon;
};

void world_init(struct world *w);
void world_done(struct world *w);
#define WORLD SBX_CLEANUP(world_done)
/* A connection to its socket. */
int world_connect(struct world *w);
/* Runs the loop once around: what is pending is handled. */
void world_settle(struct world *w);

#endif
