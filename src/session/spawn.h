/* SPDX-License-Identifier: MIT */
/*
 * The spawner process's own state. It lives in the store namespace, with these directories in the
 * root of a small tmpfs:
 *   /layers    the store's layers          /sessions  the sandbox's sessions
 *   /l/<n>     layer n, idmapped           /s/<slot>  parent of upper and work, idmapped,
 *   /o/<slot>  the slot's overlay                     while an overlay is being mounted
 * and with a root file system of its own (rootfs.h):
 *   /l/root    it, idmapped                /l/places  what lies over it in every session
 *   /r/<slot>  the slot's overlay of both
 */
#ifndef SBX_SESSION_SPAWN_H
#define SBX_SESSION_SPAWN_H

#include "sbx/spawner.h"

#include "filter.h"

/* The namespaces of one session, or the spawner's own to come back to. */
struct sbx_ns_set {
	int mnt, ipc, uts, net; /* -EBADF: not one of its own */
};
#define SBX_NS_SET_EMPTY ((struct sbx_ns_set){-EBADF, -EBADF, -EBADF, -EBADF})

struct sbx_bridge;
struct sbx_seat;
struct sbx_slot;

struct sbx_spawn {
	const struct sbx_spawner_config *config;
	const struct sbx_filter *filter;
	int sock_fd;
	int proc_fd; /* the host's /proc: for opening /proc/self/ns/... */
	int user_ns;
	int template_ns;
	struct sbx_ns_set home;
	struct sbx_bridge *bridge; /* NULL: sessions are not on it */
	int ready_net;        /* a network namespace for the next slot, or -EBADF (netpool.h) */
	int layers_fd;        /* O_PATH of /layers */
	int sessions_fd;      /* O_PATH of /sessions */
	bool overlay_classic; /* this kernel wants the classic mount string (overlay.c) */
	/* By layer number: 0 not attached, else 1 + how many slots use it. */
	uint16_t layer_users[SBX_SPAWN_NAMES_MAX];
	struct sbx_slot *slots[SBX_SPAWN_SLOTS_MAX];
	struct sbx_seat *seats[SBX_SPAWN_SLOTS_MAX]; /* by slot; NULL: no control group */
	bool seat_failed[SBX_SPAWN_SLOTS_MAX];       /* then nothing is prepared: no limit holds */
	struct sbx_slot *starting; /* its init still holds copies of our descriptors (slot.h) */
};

/* Whether sessions have a root file system of their own instead of the host's. */
static inline bool sbx_spawn_has_rootfs(const struct sbx_spawn *spawn)
{
	return spawn->config->rootfs_fd >= 0; /* closed long since, but it says what was given */
}

/* Opens the calling process's namespace: "mnt", "ipc", "uts", "net". */
int sbx_spawn_open_ns(
	const struct sbx_spawn *spawn, const char *name, int *ret_fd, struct sbx_err *err);

/* Layers (layers.c). */
int sbx_spawn_layer(struct sbx_spawn *spawn, uint32_t number, const char *id, struct sbx_err *err);
int sbx_spawn_unlayer(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err);

/* Gives the slot a seat in place of the one it had; an empty entry gives none (slot_init.c). */
int sbx_slot_seat(struct sbx_spawn *spawn, uint32_t number, const struct sbx_cgroup_entry *entry,
	struct sbx_err *err);

/* Slots (slot.c): see spawner.h. ret_fd, ret_pidfd belong to the caller. */
int sbx_slot_prepare(struct sbx_spawn *spawn, uint32_t number, const char *session_dir,
	const uint32_t *layers, size_t n_layers, int *ret_fd, struct sbx_err *err);
int sbx_slot_run(struct sbx_spawn *spawn, uint32_t number, int control_fd, int *ret_pidfd,
	struct sbx_err *err);
int sbx_slot_renew(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err);
int sbx_slot_drop(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err);

#endif
