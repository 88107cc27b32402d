/* SPDX-License-Identifier: MIT */
/* Unix sockets: listening, connecting, messages with descriptors (unix(7), SCM_RIGHTS). */
#ifndef SBX_SOCK_H
#define SBX_SOCK_H

#include <sys/types.h>

#include "sbx/err.h"

#define SBX_SOCK_FDS_MAX 8 /* descriptors in one message */

/* A CLOEXEC SOCK_SEQPACKET pair: message borders are kept. */
int sbx_sock_pair(int ret_fds[static 2]);
/* How long reads wait (0: for ever); they fail with -EAGAIN then (socket(7), SO_RCVTIMEO). */
int sbx_sock_set_read_timeout(int fd, unsigned seconds);
/* Listens on dir_fd/name (removing a stale socket there); SOCK_STREAM, non-blocking. The path
 * goes through /proc/self/fd so that its length does not matter. */
int sbx_sock_listen(int dir_fd, const char *name, mode_t mode, int *ret_fd, struct sbx_err *err);
#define SBX_SOCK_CONNECT_MAX_S 20 /* for a listener that takes no connection */

/* Connects to dir_fd/name; blocking SOCK_STREAM. -ETIMEDOUT: its queue is full, and stays so. */
int sbx_sock_connect(int dir_fd, const char *name, int *ret_fd);
/* SO_PEERCRED. */
int sbx_sock_peer(int fd, uid_t *ret_uid, pid_t *ret_pid);

/* One message of exactly size bytes with n_fds descriptors; EINTR handled. -EAGAIN passes up. */
int sbx_sock_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds);
/*
 * One message: at most size bytes, at most SBX_SOCK_FDS_MAX descriptors (CLOEXEC). Returns the
 * number of bytes, 0 at the end, -errno; -EMSGSIZE when it was longer or carried more
 * descriptors (then none is left open). *ret_n_fds descriptors now belong to the caller.
 */
ssize_t sbx_sock_recv(
	int fd, void *data, size_t size, int ret_fds[static SBX_SOCK_FDS_MAX], size_t *ret_n_fds);

#endif
