/* SPDX-License-Identifier: MIT */
/*
 * Keepers. Whoever ends its session, its terminal or its parent still descends from the nearest
 * ancestor that adopts (prctl(2), PR_SET_CHILD_SUBREAPER): no process can leave its command by
 * itself. It can kill the keeper, which is one more process of the session's root. Then the rest of
 * the command is init's, as if there never was a keeper: it is out of reach of its timeout, and
 * ends with the session.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"
#include "title.h"

static int wait_status(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

/* Looks before it reaps: a keeper that is killed in between leaves the shell's end to init, or has
 * told it. Ends with its last child. */
_Noreturn static void keep(struct sbx_init_report *report)
{
	for (;;) {
		siginfo_t info = {0};

		if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0)
			_exit(errno == ECHILD ? EXIT_SUCCESS
					      : EXIT_FAILURE); /* no signal is let in */
		if (info.si_pid == report->shell) {
			report->status = wait_status(&info);
			__atomic_store_n(&report->exited, 1, __ATOMIC_RELEASE);
			(void)kill(1, SIGCHLD); /* init blocks it and reads it from a signalfd */
		}
		(void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED); /* it is there */
	}
}

_Noreturn static void run(pid_t (*start)(void *data, struct sbx_err *err), void *data,
	struct sbx_init_report *report, int started_fd)
{
	struct sbx_err err = SBX_ERR_INIT;
	pid_t pid = -1;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		report->code = sbx_err_set(&err, errno, "adopt orphans: %m");
	if (report->code == 0)
		report->code = sbx_title_set("sbx-keeper", &err);
	if (report->code == 0) {
		pid = start(data, &err);
		report->code = SBX_MIN(pid, 0);
	}
	/* among others the terminal: the end of the last process that has it must show */
	if (report->code == 0 && sbx_fds_keep(&started_fd, 1) < 0)
		_exit(EXIT_FAILURE);
	if (report->code < 0)
		(void)snprintf(report->detail, sizeof(report->detail), "%.199s", err.message);
	if (write(started_fd, "", 1) != 1 || report->code < 0)
		_exit(EXIT_FAILURE);
	(void)close(started_fd); /* a pipe */
	keep(report);
}

static int wait_for_start(int fd, const struct sbx_init_report *report, struct sbx_err *err)
{
	char byte;
	ssize_t n;

	while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR)
		;
	if (n != 1) /* "kill -9 -1" can be that fast; then the shell is init's */
		return report->shell ? 0 : sbx_err_set(err, ECHILD, "the command's keeper died");
	return report->code < 0 ? sbx_err_set(err, -report->code, "%s", report->detail) : 0;
}

int sbx_init_keep(pid_t (*start)(void *data, struct sbx_err *err), void *data,
	struct sbx_init_report *report, pid_t *ret_keeper, struct sbx_err *err)
{
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return sbx_err_set(err, errno, "make a pipe: %m");
	pid = fork();
	if (pid == 0)
		run(start, data, report, fds[1]);
	r = pid < 0 ? sbx_err_set(err, errno, "start a process: %m") : 0;
	sbx_fd_close(&fds[1]);
	if (r == 0)
		r = wait_for_start(fds[0], report, err);
	sbx_fd_close(&fds[0]);
	if (r < 0 && pid > 0)
		(void)waitpid(pid, NULL, 0); /* it ends, or has ended */
	if (r == 0)
		*ret_keeper = pid;
	return r;
}
