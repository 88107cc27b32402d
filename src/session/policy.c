/* SPDX-License-Identifier: MIT */
#include "sbx/policy.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter.h"

/* What the child of try_shell() ends with when it is not the policy's doing. */
#define NO_TRIAL 126

/* What a trial may take. A policy can make a program spin, or wait for ever: one that refuses to
 * let it end, say. These limits were set before it and hold whatever it refuses. */
#define TRIAL_CPU_S 2
#define TRIAL_S     10

/* The least that a session's init does for a command: a child that calls execve. */
static _Noreturn void run_shell(const struct sbx_filter *filter)
{
	const struct rlimit cpu = {.rlim_cur = TRIAL_CPU_S, .rlim_max = TRIAL_CPU_S};
	int status;
	pid_t pid;

	(void)alarm(TRIAL_S);
	if (setrlimit(RLIMIT_CPU, &cpu) < 0)
		_exit(NO_TRIAL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sbx_filter_enter(filter, NULL) < 0)
		_exit(NO_TRIAL);
	pid = vfork(); /* as init does: shares the memory until execve */
	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", ":", NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		_exit(1);
	if (WIFSIGNALED(status))
		(void)kill(getpid(), WTERMSIG(status));
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static int try_shell(const struct sbx_filter *filter, struct sbx_err *err)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return sbx_err_set(err, errno, "fork: %m");
	if (pid == 0)
		run_shell(filter);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return sbx_err_set(err, errno, "wait for the trial of a policy: %m");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_TRIAL)
		return sbx_err_set(err, EIO, "the kernel did not take the policy");
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
		"no session could run under this policy: 'sh -c :' %s; start from the default "
		"policy, %s/seccomp/default.json",
		WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "fails under it", SBX_DATADIR);
}

int sbx_policy_check(const char *text, size_t size, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
	int r = sbx_filter_compile(text, size, &filter, err);

	return r < 0 ? r : try_shell(&filter, err);
}
