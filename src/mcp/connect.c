/* SPDX-License-Identifier: MIT */
#include "connect.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sbx/client.h"
#include "sbx/sock.h"
#include "sbx/sys.h"

struct mcp_connect {
	mcp_connect_fn fn;
	void *data;
	int pidfd;
	int report_fd; /* our end of a SOCK_SEQPACKET pair */
	struct sbx_watch *watch;
};

/* What the child says, with the socket when code is 0. */
struct report {
	int code;
	struct sbx_err err;
};

/* The daemon may be started from here: it must not hold the client's streams or our signal mask. */
static void leave_client(void)
{
	SBX_CLOSE int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	for (int fd = 0; fd <= STDERR_FILENO && null_fd >= 0; fd++)
		(void)dup2(null_fd, fd); /* fails only for a bad fd: the client closed it */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void child(const char *sandbox_id, int report_fd)
{
	struct report report = {.err = SBX_ERR_INIT};
	int fd = -EBADF;

	leave_client();
	report.code = sbx_client_connect(sandbox_id, &fd, &report.err);
	(void)sbx_sock_send(report_fd, &report, sizeof(report), &fd,
		report.code == 0 ? 1 : 0); /* if that fails, our end tells it */
	_exit(0);
}

static int receive(struct mcp_connect *connect, struct sbx_err *err)
{
	struct report report;
	int fds[SBX_SOCK_FDS_MAX];
	size_t n_fds = 0;
	ssize_t n = sbx_sock_recv(connect->report_fd, &report, sizeof(report), fds, &n_fds);

	if (n == (ssize_t)sizeof(report) && report.code < 0) {
		*err = report.err;
		return report.code;
	}
	if (n == (ssize_t)sizeof(report) && n_fds == 1)
		return fds[0];
	return sbx_err_kind(err, SBX_KIND_CONNECTION, ECONNABORTED,
		"connecting to the sandbox's daemon ended without a result; call again");
}

/* The child has exited; what it had to say is in the socket. */
static void on_exit_of_child(void *data, uint32_t events)
{
	struct mcp_connect *connect = data;
	struct sbx_err err = SBX_ERR_INIT;
	int fd = receive(connect, &err);

	(void)events;
	connect->fn(connect->data, fd < 0 ? -EBADF : fd, &err);
}

static int start(struct mcp_connect *connect, const char *sandbox_id)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD,
		.exit_signal = SIGCHLD,
		.pidfd = (uint64_t)(uintptr_t)&connect->pidfd,
	};
	int fds[2];
	pid_t pid;
	int r;

	r = sbx_sock_pair(fds);
	if (r < 0)
		return r;
	connect->report_fd = fds[0];
	pid = sbx_sys_clone3(&args);
	if (pid == 0)
		child(sandbox_id, fds[1]);
	sbx_fd_close(&fds[1]);
	return pid < 0 ? (int)pid : 0;
}

int mcp_connect_new(struct sbx_loop *loop, const char *sandbox_id, mcp_connect_fn fn, void *data,
	struct mcp_connect **ret, struct sbx_err *err)
{
	struct mcp_connect *connect = malloc(sizeof(*connect));
	int r = -ENOMEM;

	if (connect) {
		*connect = (struct mcp_connect){fn, data, -EBADF, -EBADF, NULL};
		r = start(connect, sandbox_id);
	}
	if (r == 0)
		r = sbx_watch_new(
			loop, connect->pidfd, EPOLLIN, on_exit_of_child, connect, &connect->watch);
	if (r < 0) {
		mcp_connect_free(connect);
		return sbx_err_kind(err, SBX_KIND_CONNECTION, -r,
			"cannot connect to the sandbox's daemon: start a helper process: %m");
	}
	*ret = connect;
	return 0;
}

void mcp_connect_free(struct mcp_connect *connect)
{
	siginfo_t info;

	if (!connect)
		return;
	sbx_watch_free(connect->watch);
	if (connect->pidfd >= 0) {
		(void)sbx_sys_pidfd_signal(connect->pidfd, SIGKILL); /* mostly gone already */
		(void)waitid(P_PIDFD, (id_t)connect->pidfd, &info, WEXITED);
	}
	sbx_fd_close(&connect->pidfd);
	sbx_fd_close(&connect->report_fd);
	free(connect);
}
