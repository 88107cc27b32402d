/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <sched.h>
#include <signal.h>

#include "init.h"
#include "sbx/sock.h"
#include "sbx/sys.h"
#include "seat.h"
#include "slot.h"

void sbx_slot_settle(struct sbx_spawn *spawn)
{
	int fds[SBX_SOCK_FDS_MAX];
	size_t n_fds;
	char word;

	if (!spawn->starting)
		return;
	/* its one word, or its end: both say that the copies are closed. It has no rights over us
	 * that descriptors would give, and is asked for none. */
	if (sbx_sock_recv(spawn->starting->park_fd, &word, sizeof(word), fds, &n_fds) >= 0)
		while (n_fds)
			sbx_fd_close(&fds[--n_fds]);
	spawn->starting = NULL;
}

static void run_init(const void *setup)
{
	sbx_init_main(setup);
}

int sbx_slot_park_init(struct sbx_spawn *spawn, struct sbx_slot *slot, struct sbx_err *err)
{
	SBX_CLOSE int ours = -EBADF, theirs = -EBADF;
	struct sbx_init_setup setup;
	int pair[2], r, pidfd = -EBADF;
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
	};
	pid_t pid;

	sbx_slot_settle(spawn);
	r = sbx_sock_pair(pair);
	if (r < 0)
		return sbx_err_set(err, -r, "make a socket pair: %m");
	ours = pair[0];
	theirs = pair[1];
	setup = (struct sbx_init_setup){
		.ns = slot->ns,
		.user_ns = spawn->user_ns,
		.park_fd = theirs,
		.lock_fd = spawn->config->lock_fd,
		.root_at = spawn->config->root_at,
		.filter = spawn->filter,
		.file_max = spawn->config->file_max,
	};
	pid = sbx_seat_clone(spawn->seats[slot->number], &args, run_init, &setup);
	if (pid < 0)
		return sbx_err_set(err, -pid, "start the session's init: %m");
	slot->init_pidfd = pidfd;
	slot->park_fd = sbx_fd_take(&ours);
	spawn->starting = slot;
	return 0;
}

void sbx_slot_unpark_init(struct sbx_spawn *spawn, struct sbx_slot *slot)
{
	struct pollfd dead = {.fd = slot->init_pidfd, .events = POLLIN};

	if (slot->park_fd < 0)
		return;
	if (spawn->starting == slot)
		spawn->starting = NULL;
	(void)sbx_sys_pidfd_signal(slot->init_pidfd, SIGKILL); /* ESRCH: it died by itself */
	while (poll(&dead, 1, -1) < 0 && errno == EINTR)
		;
	sbx_fd_close(&slot->park_fd);
	sbx_fd_close(&slot->init_pidfd);
}

int sbx_slot_release_init(
	struct sbx_spawn *spawn, struct sbx_slot *slot, int control_fd, struct sbx_err *err)
{
	const char word = 0;
	int r = sbx_sock_send(slot->park_fd, &word, sizeof(word), &control_fd, 1);

	if (r < 0)
		return sbx_err_set(err, -r, "the session's init died while it waited: %m");
	if (spawn->starting == slot)
		sbx_slot_settle(spawn); /* RUN right after PREPARE: its word is still to come */
	sbx_fd_close(&slot->park_fd);
	return 0;
}

int sbx_slot_seat(struct sbx_spawn *spawn, uint32_t number, const struct sbx_cgroup_entry *entry,
	struct sbx_err *err)
{
	struct sbx_seat *seat = NULL;
	int r;

	if (number >= SBX_SPAWN_SLOTS_MAX)
		return sbx_err_set(err, EINVAL, "there is no slot %u", number);
	if (spawn->slots[number])
		return sbx_err_set(err, EBUSY, "slot %u is in use", number);
	sbx_seat_free(sbx_take(&spawn->seats[number]));
	spawn->seat_failed[number] = false;
	if (entry->unified_fd < 0 && !entry->n_procs)
		return 0;
	r = sbx_seat_new(spawn->proc_fd, entry, &seat, err);
	if (r < 0) {
		spawn->seat_failed[number] = true;
		return sbx_err_wrap(err, r, "slot %u", number);
	}
	spawn->seats[number] = seat;
	return 0;
}
