/* SPDX-License-Identifier: MIT */
/*
 * Session init, pid 1 of each session, seen from sandboxd: a SOCK_SEQPACKET control socket with
 * fixed-size messages. Init starts commands, reaps, and forwards signals; when the control socket
 * closes or init is killed (SIGKILL by its pidfd is the fastest way), the kernel ends everything in
 * the session. Init runs with the session's own rights: sandboxd believes nothing from it but what
 * is checked here.
 *
 * Init never waits for sandboxd. While one of its messages finds the socket full it reads no
 * request: so sandboxd must not wait for it either (non-blocking), and must read.
 */
#ifndef SBX_INIT_H
#define SBX_INIT_H

#include <sys/types.h>

#include "sbx/err.h"

/* Running in one session at once. All sessions of the host share kernel.pty.max (4096) terminals.
 */
#define SBX_INIT_COMMANDS_MAX 256
/* A command text that fits one argument goes to "bash -c"; a longer one is run from the memfd: the
 * shell reads it from descriptor 3, which stays open, and $0 is that descriptor's path. */
#define SBX_INIT_ARG_MAX     (128u * 1024 - 1)
#define SBX_COMMAND_TEXT_MAX (8u << 20)

enum sbx_init_op {
	SBX_INIT_START = 1, /* sandboxd → init, with the sealed memfd of the command text */
	SBX_INIT_STARTED,   /* init → sandboxd, with the terminal's master (non-blocking) */
	SBX_INIT_EXITED,    /* init → sandboxd: the shell was reaped */
	SBX_INIT_SIGNAL,    /* sandboxd → init: to one command's tree, or all (command 0) */
	SBX_INIT_READY,     /* init → sandboxd: set up, or code < 0 and why */
	/* init → sandboxd: no process is left in the session (command 0; comes each time when this
	 * becomes so, after the EXITED before it), or none of this command (only for one that was
	 * sent a SIGNAL; after its EXITED) */
	SBX_INIT_EMPTY,
};

struct sbx_init_message {
	uint32_t op;
	uint32_t command; /* sandboxd's number for the command, > 0 */
	int32_t code;     /* STARTED, READY: 0 or -errno; EXITED: wait(2) status; SIGNAL: number */
	uint32_t pid;     /* STARTED: in the session's pid namespace */
	uint16_t rows, columns;
	uint32_t text_size; /* START */
	char detail[232];   /* READY, STARTED with code < 0: which step, NUL-terminated */
};

/* Messages with at most one descriptor (-EBADF: none). read: 1 a message, 0 the session ended,
 * -EAGAIN, -EPROTO for one that is not well-formed. */
int sbx_init_send(int control_fd, const struct sbx_init_message *message, int fd);
int sbx_init_read(int control_fd, struct sbx_init_message *ret, int *ret_fd);

#endif
