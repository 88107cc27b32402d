/* SPDX-License-Identifier: MIT */
/*
 * sandboxd's parts and what they know of each other. Everything runs in one event loop; nothing
 * here blocks. Each noun has its own file:
 *
 *   client    connections, requests and their answers
 *   slots     the spawner's slots and the layers attached for them
 *   session   workspace sessions: from a prepared slot to the end of their last command
 *   command   command sessions: terminal, transcript, waiting, limits in time
 *   disk      what sessions take of the disk, and its limit
 *   commit    publications: prepared by workers, put in order, written to head.log
 *   fileop    the file tools
 *   reject    rejects that are tried again
 *   show      what sbx-admin asks for
 *   recover   what the last sandboxd left behind
 */
#ifndef SBX_DAEMON_DAEMON_H
#define SBX_DAEMON_DAEMON_H

#include <sys/queue.h>

#include "pool.h"
#include "sbx/loop.h"
#include "sbx/op.h"
#include "sbx/store.h"

#define DAEMON_IDLE_NS (60 * SBX_NSEC_PER_SEC) /* without client, command or managed session */

struct sbx_cgroup_host;
struct client;
struct command;
struct commits;
struct request;
struct retry;
struct session;
struct slots;

TAILQ_HEAD(client_list, client);
TAILQ_HEAD(command_list, command);
TAILQ_HEAD(request_list, request);
TAILQ_HEAD(retry_list, retry);
TAILQ_HEAD(session_list, session);

/* Commands on disk, those that started first in front. */
struct command_index_entry {
	char id[SBX_ID_SIZE];
	uint64_t ended_ns; /* CLOCK_REALTIME; 0: it runs */
};
struct command_index {
	struct command_index_entry *entries;
	size_t n, capacity;
};

struct daemon {
	struct sbx_loop *loop;
	struct sbx_sandbox sandbox;
	struct sbx_job_context context; /* the directories, by descriptor */
	struct sbx_head_log *log;
	struct pool *pool;
	struct sbx_cgroup_host *cgroups;
	struct slots *slots;
	struct commits *commits;

	int listen_fd;
	struct sbx_watch *listen_watch;
	struct sbx_timer *accept_timer; /* set while there are no descriptors for a client */
	int signal_fd;
	struct sbx_watch *signal_watch;
	struct sbx_timer *idle_timer;
	struct sbx_timer *disk_timer; /* disk.c; NULL: nothing is limited */
	bool disk_timer_set;

	struct client_list clients;
	size_t n_clients;
	struct request_list orphans;  /* requests whose client has gone, and whose work goes on */
	struct session_list sessions; /* all but the standby */
	size_t n_sessions;
	struct session *standby; /* the next automatic session, its init waiting; or NULL */
	size_t n_stale;      /* former ones on their way out: there is no next before they went */
	bool standby_failed; /* making one failed: an exec tries again and tells why */
	struct command_list commands; /* newest last; live ones and the latest ended */
	size_t n_commands, n_live_commands;
	uint32_t next_command_number;
	struct command_index command_index;

	struct retry_list retries; /* of rejects */

	bool stopping;
	bool squashing, collecting, weighing, weigh_again, removing;
	struct request_list squash_waiting, gc_waiting; /* one at a time of each */
	struct sbx_stack garbage;            /* layers of forgotten versions, still pinned */
	struct json_object *history_weights; /* of sbx_history_oldest(); NULL: none yet */
	uint64_t started_ns;
};

/* The head that clients see: durable. */
const struct sbx_head *daemon_head(const struct daemon *daemon);
/* Whether sessions have a root file system of their own instead of the host's. */
bool daemon_has_rootfs(const struct daemon *daemon);
/* Layer ids, bottom first, for a job's arguments. */
struct json_object *stack_to_json(const struct sbx_stack *stack);
/* Something has begun or ended: the time without anything to do counts from now. */
void daemon_touch(struct daemon *daemon);
/* The idle timer has fired: ends the daemon if there is nothing to do. data: the daemon. */
void daemon_idle(void *data);
/* Ends the loop; what runs is ended by the kernel and found again by the next start. */
void daemon_stop(struct daemon *daemon);
/* One line on stderr (the log), with the time. */
void daemon_log(const char *fmt, ...) SBX_PRINTF(1, 2);

#endif
