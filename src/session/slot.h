/* SPDX-License-Identifier: MIT */
/* One slot, shared by the files that make its parts. */
#ifndef SBX_SESSION_SLOT_H
#define SBX_SESSION_SLOT_H

#include "spawn.h"

struct sbx_slot {
	uint32_t number;
	bool mounted; /* /o/<number> is there */
	struct sbx_ns_set ns;
	int init_pidfd; /* -EBADF: it has none, RUN is refused */
	int park_fd;    /* our end to an init that waits for its control socket, else -EBADF */
	uint32_t *layers;
	size_t n_layers; /* whose users count this slot */
};

void sbx_ns_set_done(struct sbx_ns_set *set);

/* Makes the namespaces of a slot whose overlay is mounted (slot_ns.c). */
int sbx_slot_make_namespaces(struct sbx_spawn *spawn, struct sbx_slot *slot, struct sbx_err *err);

/*
 * Inits ahead of need (slot_init.c). Forking one and giving up its rights takes longer than the
 * rest of a short session: so PREPARE and RENEW start it, and RUN only hands it the control socket.
 */
int sbx_slot_park_init(struct sbx_spawn *spawn, struct sbx_slot *slot, struct sbx_err *err);
/* Ends a parked init and waits until it is gone; no-op when none is parked. */
void sbx_slot_unpark_init(struct sbx_spawn *spawn, struct sbx_slot *slot);
/* Hands the control socket over: the init runs. */
int sbx_slot_release_init(
	struct sbx_spawn *spawn, struct sbx_slot *slot, int control_fd, struct sbx_err *err);
/*
 * A fresh init is a copy of the spawner and holds its descriptors until it has closed them, among
 * them those of other slots. Waits until that is over, so that what is dropped is really gone.
 */
void sbx_slot_settle(struct sbx_spawn *spawn);

#endif
