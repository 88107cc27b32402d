/* SPDX-License-Identifier: MIT */
/*
 * What sessions take of the disk, and the limit of it (disk_max, inodes_max of sandbox.json).
 *
 * The kernel can limit a single file (RLIMIT_FSIZE, spawner.h), but not what a directory holds:
 * project quotas need a mount option that state directories rarely have. So it is watched, at a
 * cost that follows what happens: while nothing runs, nothing is done. While commands run, a timer
 * asks statfs(2), which is one figure for the whole file system: as long as that has not gone down
 * by half of what a session may still take, the session cannot have reached its limit by what was
 * written since it was last measured. Only then a worker measures it (job "measure"). Since
 * somebody else may free at the same time what the session takes, it is measured now and then
 * anyway, at longer and longer intervals while nothing is found, and not for more than a fiftieth
 * of the time.
 *
 * A session over its limit is ended like one over its time: its processes are killed, its commands
 * get a note, and its work is published or, managed, kept. From then on it may run what takes
 * nothing more, to make room.
 */
#ifndef SBX_DAEMON_DISK_H
#define SBX_DAEMON_DISK_H

#include "sbx/util.h"

struct daemon;
struct session;

struct disk_amount {
	uint64_t n_bytes, n_inodes;
};

/* Of one session. */
struct disk_use {
	struct disk_amount measured; /* at measured_ns; a new session is empty */
	struct disk_amount fs_used;  /* of the whole file system at that time */
	struct disk_amount floor;    /* what it had when it was over the limit: no more than that */
	uint64_t measured_ns;        /* CLOCK_MONOTONIC; 0: unknown */
	uint64_t took_ns;
	uint64_t interval_ns;
	bool measuring;
	bool settling; /* the next measure tells the floor */
};

/* Makes the timer where there is a limit. */
int disk_open(struct daemon *daemon);
/* A command of the session is about to run. */
void disk_watch(struct session *session);
/* The session has work of before this sandboxd, or of before it failed to be published. */
void disk_unknown(struct session *session);
/* All its processes are gone, and it lives on. */
void disk_settle(struct session *session);

#endif
