/* SPDX-License-Identifier: MIT */
/*
 * Slots of the spawner, as sandboxd uses them: numbers are handed out here, and the layers that a
 * slot needs are attached before it and detached when neither the head nor a slot needs them.
 */
#ifndef SBX_DAEMON_SLOTS_H
#define SBX_DAEMON_SLOTS_H

#include "daemon.h"
#include "sbx/cgroup.h"
#include "sbx/spawner.h"

#define SLOT_NONE UINT32_MAX

/* Slots with a lower number keep their control group when they are dropped: the next session need
 * not wait for a new one (spawner.h, SEAT). */
#define SLOT_GROUPS_KEPT 8

/* The end of a slot request: err is NULL on success; fd (or -EBADF) belongs to the callee. */
typedef void (*slot_done_fn)(void *data, int fd, const struct sbx_err *err);

/* Takes the spawner. */
int slots_new(struct daemon *daemon, struct sbx_spawner *spawner, struct slots **ret);
void slots_free(struct slots *slots);
/* A slot over stack for sessions/<session_dir>; done gets the overlay root's O_PATH descriptor.
 * Returns the slot's number at once, or -errno (-EMFILE: all slots are in use). */
int slot_prepare(struct slots *slots, const char *session_dir, const struct sbx_stack *stack,
	slot_done_fn done, void *data, uint32_t *ret_slot);
/* Starts an init; done gets its pidfd. control_fd stays the caller's. */
int slot_run(struct slots *slots, uint32_t slot, int control_fd, slot_done_fn done, void *data);
int slot_renew(struct slots *slots, uint32_t slot, slot_done_fn done, void *data);
/* Releases the slot; its number is free again once done was called. */
int slot_drop(struct slots *slots, uint32_t slot, slot_done_fn done, void *data);
/* Detaches layers that neither the head nor a slot needs. */
void slots_head_changed(struct slots *slots);
/* Of the slot's control group; 0 without one. Sessions that use the slot one after the other share
 * it: what matters is the difference of two counts. */
void slot_count(const struct slots *slots, uint32_t slot, struct sbx_cgroup_counts *ret);
void slot_use(const struct slots *slots, uint32_t slot, struct sbx_cgroup_usage *ret);
size_t slots_in_use(const struct slots *slots);

#endif
