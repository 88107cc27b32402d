/* SPDX-License-Identifier: MIT */
/*
 * Slots: sessions as descriptors. A slot goes PREPARED (its init parked) -> RUNNING -> (init is
 * dead) and then to RUNNING again with a new init, back to PREPARED by RENEW, or away by DROP.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "overlay.h"
#include "sbx/sys.h"
#include "slot.h"

static void slot_free(struct sbx_spawn *spawn, struct sbx_slot *slot)
{
	for (size_t i = 0; i < slot->n_layers; i++)
		spawn->layer_users[slot->layers[i]]--;
	sbx_slot_unpark_init(spawn, slot);
	sbx_fd_close(&slot->init_pidfd);
	sbx_ns_set_done(&slot->ns);
	free(slot->layers);
	free(slot);
}

static int slot_new(struct sbx_spawn *spawn, uint32_t number, const uint32_t *layers,
	size_t n_layers, struct sbx_slot **ret, struct sbx_err *err)
{
	struct sbx_slot *slot;

	for (size_t i = 0; i < n_layers; i++)
		if (layers[i] >= SBX_SPAWN_NAMES_MAX || !spawn->layer_users[layers[i]])
			return sbx_err_set(
				err, ENOENT, "layer number %u is not attached", layers[i]);
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return sbx_err_set(err, ENOMEM, "slot %u: %m", number);
	slot->number = number;
	slot->ns = SBX_NS_SET_EMPTY;
	slot->init_pidfd = slot->park_fd = -EBADF;
	slot->layers = calloc(n_layers, sizeof(layers[0]));
	if (!slot->layers) {
		slot_free(spawn, slot);
		return sbx_err_set(err, ENOMEM, "slot %u: %m", number);
	}
	memcpy(slot->layers, layers, n_layers * sizeof(layers[0]));
	slot->n_layers = n_layers;
	for (size_t i = 0; i < n_layers; i++)
		spawn->layer_users[layers[i]]++;
	*ret = slot;
	return 0;
}

static int slot_fill(struct sbx_spawn *spawn, struct sbx_slot *slot, const char *session_dir,
	int *ret_fd, struct sbx_err *err)
{
	char path[SBX_OVERLAY_PATH_SIZE];
	int r, fd;

	r = sbx_overlay_mount(spawn, slot->number, session_dir, slot->layers, slot->n_layers, err);
	if (r < 0)
		return r;
	slot->mounted = true;
	r = sbx_slot_make_namespaces(spawn, slot, err);
	if (r >= 0)
		r = sbx_slot_park_init(spawn, slot, err);
	if (r < 0)
		return r;
	sbx_overlay_path(slot->number, path);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open the session's root: %m");
	*ret_fd = fd;
	return 0;
}

int sbx_slot_prepare(struct sbx_spawn *spawn, uint32_t number, const char *session_dir,
	const uint32_t *layers, size_t n_layers, int *ret_fd, struct sbx_err *err)
{
	struct sbx_slot *slot = NULL;
	int r;

	if (number >= SBX_SPAWN_SLOTS_MAX || !sbx_id_valid(session_dir) || n_layers < 1 ||
		n_layers > SBX_SPAWN_LAYERS_MAX)
		return sbx_err_set(err, EINVAL, "slot %u: bad number, directory or layers", number);
	if (spawn->slots[number])
		return sbx_err_set(err, EEXIST, "slot %u is in use", number);
	if (spawn->seat_failed[number])
		return sbx_err_set(err, EOPNOTSUPP,
			"the control group of slot %u could not be used, so no limit would hold; "
			"the log of sandboxd says why",
			number);
	r = slot_new(spawn, number, layers, n_layers, &slot, err);
	if (r < 0)
		return r;
	r = slot_fill(spawn, slot, session_dir, ret_fd, err);
	if (r < 0) {
		sbx_slot_unpark_init(spawn, slot);
		sbx_ns_set_done(&slot->ns);
		if (slot->mounted)
			(void)sbx_overlay_unmount(
				spawn, number, NULL); /* the first failure is told */
		slot_free(spawn, slot);
		return sbx_err_wrap(err, r, "session %s", session_dir);
	}
	spawn->slots[number] = slot;
	return 0;
}

/* The slot, unless there is none or its init still lives. */
static int find_idle(
	struct sbx_spawn *spawn, uint32_t number, struct sbx_slot **ret, struct sbx_err *err)
{
	struct sbx_slot *slot = number < SBX_SPAWN_SLOTS_MAX ? spawn->slots[number] : NULL;

	if (!slot)
		return sbx_err_set(err, ENOENT, "there is no slot %u", number);
	if (slot->init_pidfd >= 0 && slot->park_fd < 0) {
		struct pollfd dead = {.fd = slot->init_pidfd, .events = POLLIN};

		if (poll(&dead, 1, 0) != 1)
			return sbx_err_set(err, EBUSY, "the init of slot %u still lives", number);
	}
	*ret = slot;
	return 0;
}

static int hand_over(
	struct sbx_spawn *spawn, struct sbx_slot *slot, int control_fd, struct sbx_err *err)
{
	if (slot->park_fd < 0) { /* it has run before */
		int r;

		sbx_fd_close(&slot->init_pidfd);
		r = sbx_slot_park_init(spawn, slot, err);
		if (r < 0)
			return r;
	}
	return sbx_slot_release_init(spawn, slot, control_fd, err);
}

/* A parked init has nothing to lose: one that was killed (a host short of memory takes it before
 * anything else, see init.c) is replaced, once. */
int sbx_slot_run(struct sbx_spawn *spawn, uint32_t number, int control_fd, int *ret_pidfd,
	struct sbx_err *err)
{
	struct sbx_slot *slot;
	int r;

	r = find_idle(spawn, number, &slot, err);
	if (r < 0)
		return r;
	r = hand_over(spawn, slot, control_fd, err);
	if (r < 0 && slot->park_fd >= 0) {
		sbx_slot_unpark_init(spawn, slot);
		r = hand_over(spawn, slot, control_fd, err);
	}
	if (r < 0)
		return r;
	*ret_pidfd = fcntl(slot->init_pidfd, F_DUPFD_CLOEXEC, 0);
	if (*ret_pidfd >= 0)
		return 0;
	r = sbx_err_set(err, errno, "duplicate init's descriptor: %m");
	(void)sbx_sys_pidfd_signal(slot->init_pidfd, SIGKILL); /* nobody could see its end */
	return r;
}

int sbx_slot_renew(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err)
{
	struct sbx_slot *slot;
	int r;

	r = find_idle(spawn, number, &slot, err);
	if (r < 0)
		return r;
	sbx_slot_unpark_init(spawn, slot);
	sbx_fd_close(&slot->init_pidfd);
	sbx_ns_set_done(&slot->ns);
	r = sbx_slot_make_namespaces(spawn, slot, err);
	if (r >= 0)
		r = sbx_slot_park_init(spawn, slot, err);
	if (r < 0)
		sbx_ns_set_done(&slot->ns); /* without an init, RUN is refused */
	return r;
}

int sbx_slot_drop(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err)
{
	struct sbx_slot *slot;
	int r;

	r = find_idle(spawn, number, &slot, err);
	if (r < 0)
		return r;
	sbx_slot_unpark_init(spawn, slot);
	sbx_slot_settle(spawn);
	sbx_ns_set_done(&slot->ns);
	r = sbx_overlay_unmount(spawn, number, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "slot %u", number);
	slot_free(spawn, slot);
	spawn->slots[number] = NULL;
	return 0;
}
