/* SPDX-License-Identifier: MIT */
/* A non-blocking stream of frames (wire.h): one for each client and each worker. */
#ifndef SBX_DAEMON_CHANNEL_H
#define SBX_DAEMON_CHANNEL_H

#include "sbx/loop.h"
#include "sbx/wire.h"

/* Bytes queued for a peer that does not read; beyond it nothing more is read from that peer. */
#define CHANNEL_OUT_HIGH (32u << 20)

struct channel;

struct channel_events {
	/* One whole frame; payload is borrowed. May free the channel. */
	void (*frame)(void *data, const struct sbx_wire_header *header, const char *payload);
	/* One request frame longer than SBX_ASIDE_FRAME_MIN, its payload in a memfd that the callee
	 * takes. NULL: frames of any length come whole, by frame(). */
	void (*long_request)(void *data, const struct sbx_wire_header *header, int fd);
	/* The peer is gone (0) or broke the protocol (-errno). The channel must be freed. */
	void (*closed)(void *data, int reason);
	/* The peer has caught up (see channel_is_behind()). May not free the channel. NULL: nobody
	 * waits for that. */
	void (*caught_up)(void *data);
};

/* Takes fd, also on failure. */
int channel_new(struct sbx_loop *loop, int fd, const struct channel_events *events, void *data,
	struct channel **ret);
void channel_free(struct channel *channel); /* NULL is fine */
/* Queues a frame. A dead peer is told by closed() later. */
int channel_send(struct channel *channel, enum sbx_wire_kind kind, uint64_t id, const void *payload,
	size_t size);
/* The same with descriptors, which are duplicated: only while nothing is queued (-EBUSY). */
int channel_send_fds(struct channel *channel, enum sbx_wire_kind kind, uint64_t id,
	const void *payload, size_t size, const int *fds, size_t n_fds);
/* Queues bytes that are frames already. */
int channel_send_raw(struct channel *channel, const void *frames, size_t size);
/* Whether more than CHANNEL_OUT_HIGH is queued: who sends much waits for caught_up(). */
bool channel_is_behind(const struct channel *channel);
/* Reads nothing more from the peer until it is resumed. */
void channel_pause(struct channel *channel);
void channel_resume(struct channel *channel);

#endif
