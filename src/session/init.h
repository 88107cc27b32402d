/* SPDX-License-Identifier: MIT */
/* Session init, seen from the spawner that starts it. */
#ifndef SBX_SESSION_INIT_H
#define SBX_SESSION_INIT_H

#include "sbx/init.h"

#include "spawn.h"

struct sbx_init_setup {
	struct sbx_ns_set ns; /* the session's */
	int user_ns;
	int park_fd; /* the control socket comes through it, when the session is to run */
	int lock_fd;
	const char *root_at;
	const struct sbx_filter *filter;
	uint64_t file_max; /* bytes of one file; 0: no limit */
};

/* The life of pid 1: called in a fresh process, in a new pid namespace, as the host's root. */
_Noreturn void sbx_init_main(const struct sbx_init_setup *setup);

/*
 * A command of a session: its shell runs below a keeper, a process of ours that adopts every orphan
 * of the command (PR_SET_CHILD_SUBREAPER): so what the command started, setsid(2) and double forks
 * or not, is what descends from its keeper. The keeper reaps, and ends after the last of them. What
 * it knows is in a page that it shares with init; for news it sends init SIGCHLD.
 */
struct sbx_init_report {
	pid_t shell;      /* set by itself, as the first thing it does */
	int code;         /* 0, or -errno: the shell could not be started, detail says why */
	char detail[200]; /* NUL-terminated */
	int exited;       /* set last: status is the shell's, as of wait(2) */
	int status;
};

/* Starting a command (init_start.c). */
struct sbx_init_start {
	int text_fd; /* memfd of text_size bytes */
	uint32_t text_size;
	uint16_t rows, columns;
};
/* Starts the shell on a new terminal; report is shared memory, and all 0. */
int sbx_init_start(const struct sbx_init_start *start, struct sbx_init_report *report,
	int *ret_master, pid_t *ret_keeper, struct sbx_err *err);

/* The keeper (init_keeper.c). start returns the shell's pid or -errno, with the reason in err; it
 * runs in the keeper, which holds nothing of init afterwards. */
int sbx_init_keep(pid_t (*start)(void *data, struct sbx_err *err), void *data,
	struct sbx_init_report *report, pid_t *ret_keeper, struct sbx_err *err);

/* Sends sig to all processes of one command (init_tree.c): what descends from its keeper; when a
 * command has killed that (0), from its shell. SIGKILL misses none that forks meanwhile. */
void sbx_init_tree_signal(pid_t keeper, pid_t shell, int sig);

/* Leaves open stdin, stdout, stderr and keep[]; closes all else (fds.c). */
int sbx_fds_keep(const int *keep, size_t n_keep);

#endif
