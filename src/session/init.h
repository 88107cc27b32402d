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

/* Sends sig to all processes of the terminal session that pid leads and to their descendants
 * (init_tree.c). */
void sbx_init_signal_tree(pid_t pid, int sig);

/* Leaves open stdin, stdout, stderr and keep[]; closes all else (fds.c). */
int sbx_fds_keep(const int *keep, size_t n_keep);

#endif
