/* SPDX-License-Identifier: MIT */
/* The control socket's messages, for both of its ends. */
#include <string.h>

#include "sbx/init.h"
#include "sbx/sock.h"

int sbx_init_send(int control_fd, const struct sbx_init_message *message, int fd)
{
	return sbx_sock_send(control_fd, message, sizeof(*message), &fd, fd >= 0);
}

static bool well_formed(const struct sbx_init_message *m, ssize_t size)
{
	return size == sizeof(*m) && m->op >= SBX_INIT_START && m->op <= SBX_INIT_EMPTY &&
	       memchr(m->detail, '\0', sizeof(m->detail));
}

int sbx_init_read(int control_fd, struct sbx_init_message *ret, int *ret_fd)
{
	int fds[SBX_SOCK_FDS_MAX];
	struct sbx_init_message m;
	size_t n_fds;
	ssize_t n = sbx_sock_recv(control_fd, &m, sizeof(m), fds, &n_fds);

	if (n == 0 || n == -ECONNRESET)
		return 0;
	if (n == -EMSGSIZE)
		return -EPROTO;
	if (n < 0)
		return (int)n;
	if (!well_formed(&m, n) || n_fds > 1) {
		while (n_fds)
			sbx_fd_close(&fds[--n_fds]);
		return -EPROTO;
	}
	*ret = m;
	*ret_fd = n_fds ? fds[0] : -EBADF;
	return 1;
}
