/* SPDX-License-Identifier: MIT */
#include "sbx/sock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LISTEN_BACKLOG 128

int sbx_sock_pair(int ret_fds[static 2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds) < 0)
		return -errno;
	return 0;
}

/* sun_path has 108 bytes; through /proc/self/fd a state root of any length fits. */
static int make_address(int dir_fd, const char *name, struct sockaddr_un *ret)
{
	int n;

	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
	return n >= (int)sizeof(ret->sun_path) ? -ENAMETOOLONG : 0;
}

int sbx_sock_listen(int dir_fd, const char *name, mode_t mode, int *ret_fd, struct sbx_err *err)
{
	SBX_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {0};
	int r;

	if (fd < 0)
		return sbx_err_set(err, errno, "make a unix socket: %m");
	r = make_address(dir_fd, name, &address);
	if (r < 0)
		return sbx_err_set(err, -r, "socket name %s: %m", name);
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return sbx_err_set(err, errno, "remove the old socket %s: %m", name);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return sbx_err_set(err, errno, "bind socket %s: %m", name);
	if (fchmodat(dir_fd, name, mode, 0) < 0)
		return sbx_err_set(err, errno, "set the mode of socket %s: %m", name);
	if (listen(fd, LISTEN_BACKLOG) < 0)
		return sbx_err_set(err, errno, "listen on socket %s: %m", name);
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int sbx_sock_set_read_timeout(int fd, unsigned seconds)
{
	struct timeval limit = {.tv_sec = (time_t)seconds};

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ? -errno : 0;
}

static int set_write_timeout(int fd, unsigned seconds)
{
	struct timeval limit = {.tv_sec = (time_t)seconds};

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ? -errno : 0;
}

int sbx_sock_connect(int dir_fd, const char *name, int *ret_fd)
{
	SBX_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {0};
	int r;

	if (fd < 0)
		return -errno;
	r = make_address(dir_fd, name, &address);
	if (r < 0)
		return r;
	r = set_write_timeout(fd, SBX_SOCK_CONNECT_MAX_S); /* unix(7): connect waits so long */
	if (r < 0)
		return r;
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		if (errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
	r = set_write_timeout(fd, 0);
	if (r < 0)
		return r;
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int sbx_sock_peer(int fd, uid_t *ret_uid, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	*ret_uid = peer.uid;
	if (ret_pid)
		*ret_pid = peer.pid;
	return 0;
}

int sbx_sock_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * SBX_SOCK_FDS_MAX)];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (n_fds > SBX_SOCK_FDS_MAX)
		return -EINVAL;
	if (n_fds) {
		struct cmsghdr *cmsg;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
	}
	do {
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EMSGSIZE;
}

/* Takes the descriptors out of a received message. More than room for are closed and counted. */
static size_t collect_fds(struct msghdr *message, int ret_fds[static SBX_SOCK_FDS_MAX])
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < SBX_SOCK_FDS_MAX)
				ret_fds[n++] = fd;
			else
				sbx_fd_close(&fd);
		}
	}
	return n;
}

ssize_t sbx_sock_recv(
	int fd, void *data, size_t size, int ret_fds[static SBX_SOCK_FDS_MAX], size_t *ret_n_fds)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * SBX_SOCK_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	*ret_n_fds = 0;
	do {
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_n_fds = collect_fds(&message, ret_fds);
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		while (*ret_n_fds)
			sbx_fd_close(&ret_fds[--*ret_n_fds]);
		return -EMSGSIZE;
	}
	return n;
}
