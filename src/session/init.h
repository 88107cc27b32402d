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
};

/* The life of pid 1: called in a fresh process, in a new pid namespace, as the host's root. */
_Noreturn void sbx_init_main(const struct sbx_init_setup *setup);

/* One command of a session (init_start.c). */
struct sbx_init_start {
	int text_fd; /* memfd of text_size bytes */
	uint32_t text_size;
	uint16_t rows, columns;
};
/* Starts the shell on a new terminal. */
int sbx_init_start(
	const struct sbx_init_start *start, int *ret_master, pid_t *ret_pid, struct sbx_err *err);

/* One command's processes, from its first signal on (init_tree.c). */
struct sbx_init_member {
	pid_t pid;
	uint64_t started; /* tells it from a later one with the same number */
};
struct sbx_init_tree {
	pid_t leader; /* the shell */
	struct sbx_init_member *members;
	size_t n;
};
/* Sends sig to all processes of the terminal session that the shell leads, to those that an earlier
 * signal met, and to the descendants of all these. SIGKILL misses none that forks meanwhile. */
void sbx_init_tree_signal(struct sbx_init_tree *tree, int sig);
/* Whether all that the last signal met are gone, and the rest of the terminal session too. */
bool sbx_init_tree_gone(struct sbx_init_tree *tree);
void sbx_init_tree_done(struct sbx_init_tree *tree);

/* Leaves open stdin, stdout, stderr and keep[]; closes all else (fds.c). */
int sbx_fds_keep(const int *keep, size_t n_keep);

#endif
