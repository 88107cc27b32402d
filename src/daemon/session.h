/* SPDX-License-Identifier: MIT */
#ifndef SBX_DAEMON_SESSION_H
#define SBX_DAEMON_SESSION_H

#include <sys/stat.h>

#include "client.h"
#include "daemon.h"
#include "disk.h"
#include "sbx/cgroup.h"

#define SESSIONS_MAX         512 /* live in one sandbox; more is server_busy */
#define SESSION_COMMANDS_MAX 256 /* running in one session */
/* Without a process a managed session keeps its init so long, for the next command. */
#define SESSION_REST_NS (5 * SBX_NSEC_PER_SEC)

enum session_state {
	SESSION_PREPARING, /* a slot was asked for */
	SESSION_READY,     /* there is a slot and no process */
	SESSION_RUNNING,   /* init lives, or is being started */
	SESSION_STOPPING,  /* init was killed; waiting until the kernel has ended everything */
	SESSION_DROPPING,  /* the slot is being released, so that the upper may be read */
	SESSION_PUBLISHING,
	SESSION_ENDED,
};

/* What happens when the session stops. */
enum session_end {
	SESSION_END_NONE,    /* managed, no process left: back to READY */
	SESSION_END_PUBLISH, /* publish, then destroy */
	SESSION_END_DISCARD,
};

struct session {
	TAILQ_ENTRY(session) entry;
	struct daemon *daemon;
	char id[SBX_ID_SIZE];
	bool managed;
	bool stale; /* a standby that the head has left behind */
	enum session_state state;
	enum session_end end;
	struct sbx_head base;
	uint64_t created_ns; /* CLOCK_REALTIME */
	uint32_t slot;
	int root_fd;            /* O_PATH of the overlay's root, for the file tools */
	struct stat upper_stat; /* when the overlay was mounted */
	struct stat root_stat;  /* the same of its root's upper, in a sandbox that has one */
	struct sbx_cgroup_counts counts; /* of its slot's group, when it got the slot */
	struct disk_use disk;            /* disk.c's */
	size_t n_file_jobs; /* hold a copy of root_fd: the overlay cannot be released before */
	int control_fd;
	struct sbx_watch *control_watch;
	struct sbx_buf unsent; /* signals that init's socket had no room for: whole messages */
	int pidfd;
	struct sbx_watch *pidfd_watch;
	struct command_list commands; /* not ended: waiting to start, running, or draining */
	size_t n_commands;
	/* exited; they end with the session's publication, or ended before it and are told of it */
	struct command_list finished;
	bool empty;                  /* init lives, and no other process */
	struct sbx_timer *timer;     /* to rest, or the grace of an end by force */
	struct request_list waiters; /* publish and discard requests */
	struct request_list held;    /* file requests that came before the slot was there */
	char *first_command;         /* for layer.json */
	struct sbx_err failure;      /* why it could not be published */
	struct json_object *refusal; /* the conflicts of its publication, told when it is back */
};

/* Makes sure that the next automatic session stands ready. */
void session_prepare_standby(struct daemon *daemon);
/* The next automatic session: the standby when it fits the head, else a new one. */
int session_take_automatic(struct daemon *daemon, struct session **ret, struct sbx_err *err);
int session_new_managed(struct daemon *daemon, struct session **ret, struct sbx_err *err);
/* A session that the last sandboxd left: its directory exists. Takes base. */
int session_adopt(struct daemon *daemon, const char *id, struct sbx_head *base,
	struct session **ret, struct sbx_err *err);
void session_free(struct session *session);
/* At the end of sandboxd: ends every process of every session, and waits for that, so that nothing
 * holds their control groups any more. What they wrote is for the next start. */
void sessions_kill(struct daemon *daemon);
/* NULL, and SBX_KIND_NOT_FOUND in err. */
struct session *session_find(struct daemon *daemon, const char *id, struct sbx_err *err);

/* Starts the command as soon as the session can. On failure the command is the caller's again. */
int session_add_command(struct session *session, struct command *command, struct sbx_err *err);
/* Signals the command's processes (number 0: all of the session). */
void session_signal(struct session *session, uint32_t command_number, int sig);
/* The command's shell is gone and (managed) its terminal drained. */
void session_command_exited(struct session *session, struct command *command);
/* Ends the session; its running commands are killed. */
void session_stop(struct session *session, enum session_end end);
/* The same, with SIGTERM and a grace before it. */
void session_stop_gently(struct session *session, enum session_end end);
/* Keeps a file request until the session is prepared, then dispatches it again. */
void session_hold_request(struct session *session, struct request *request);
/* A file job has ended. */
void session_release_root(struct session *session);
/* One that can run commands and file jobs now or soon: -ESHUTDOWN with the reason if it ends. */
int session_check_usable(const struct session *session, struct sbx_err *err);
const char *session_state_name(const struct session *session);
/* Adds the layers that sessions started from to the set ret: a sweep must not take them, though
 * the head may have left them. */
int session_pinned_layers(const struct daemon *daemon, struct sbx_stack *ret);

#endif
