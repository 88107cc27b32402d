/* SPDX-License-Identifier: MIT */
#include "seat.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "sbx/sys.h"

#define STACK_SIZE (256u << 10) /* an init lives on its copy of it */
#define GUARD_SIZE (64u << 10)  /* at least a page of any size */

struct seat_request {
	struct clone_args *args;
	void (*child)(const void *data);
	const void *data;
	volatile pid_t result;
};

struct sbx_seat {
	int unified_fd; /* -EBADF: no v2 group */
	/* the helper; -EBADF and NULL where v2 does it all */
	int pidfd;
	int ask_fd, done_fd; /* eventfds: a request is there; it has been done */
	void *stack;
	pid_t spawner;
	struct seat_request *request;
};

/* In the helper. Returns in the parent only. */
static pid_t clone_here(const struct seat_request *request)
{
	pid_t pid = sbx_sys_clone3(request->args);

	if (pid == 0) {
		request->child(request->data);
		_exit(EXIT_FAILURE);
	}
	return pid;
}

/* It shares the spawner's memory, and errno too: it runs only while the spawner waits for it. */
static int run_helper(void *data)
{
	struct sbx_seat *seat = data;
	eventfd_t count;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != seat->spawner)
		_exit(EXIT_FAILURE);
	for (;;) {
		if (eventfd_write(seat->done_fd, 1) < 0 || eventfd_read(seat->ask_fd, &count) < 0)
			_exit(EXIT_FAILURE);
		seat->request->result = clone_here(seat->request);
	}
}

static int wait_for_helper(const struct sbx_seat *seat)
{
	struct pollfd fds[] = {
		{.fd = seat->done_fd, .events = POLLIN},
		{.fd = seat->pidfd, .events = POLLIN},
	};
	eventfd_t count;

	while (poll(fds, SBX_N_ELEMENTS(fds), -1) < 0)
		if (errno != EINTR)
			return -errno;
	if (!(fds[0].revents & POLLIN))
		return -ESRCH;
	return eventfd_read(seat->done_fd, &count) < 0 ? -errno : 0;
}

static int start_helper(struct sbx_seat *seat, pid_t *ret_pid, struct sbx_err *err)
{
	char *stack;
	pid_t pid;

	seat->ask_fd = eventfd(0, EFD_CLOEXEC);
	seat->done_fd = eventfd(0, EFD_CLOEXEC);
	if (seat->ask_fd < 0 || seat->done_fd < 0)
		return sbx_err_set(err, errno, "make an eventfd: %m");
	stack = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return sbx_err_set(err, errno, "map a stack: %m");
	seat->stack = stack;
	if (mprotect(stack + GUARD_SIZE, STACK_SIZE, PROT_READ | PROT_WRITE) < 0)
		return sbx_err_set(err, errno, "map a stack: %m");
	seat->spawner = getpid();
	pid = clone(run_helper, stack + GUARD_SIZE + STACK_SIZE, CLONE_VM | CLONE_FILES | SIGCHLD,
		seat);
	if (pid < 0)
		return sbx_err_set(err, errno, "start a process: %m");
	seat->pidfd = sbx_sys_pidfd_open(pid);
	if (seat->pidfd < 0) {
		(void)kill(pid, SIGKILL); /* not waited for: out of descriptors, we end soon */
		seat->stack = NULL;
		return sbx_err_set(err, -seat->pidfd, "open a pidfd: %m");
	}
	*ret_pid = pid;
	return 0;
}

static int move_helper(pid_t pid, const struct sbx_cgroup_entry *entry, struct sbx_err *err)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", pid);
	for (size_t i = 0; i < entry->n_procs; i++)
		if (write(entry->procs_fds[i], number, strlen(number)) < 0)
			return sbx_err_set(err, errno, "enter the session's control group: %m");
	return 0;
}

/* Without CAP_SYS_RESOURCE it is not exempt, only last: an init adds half of the limit to its own
 * weight, and all tmpfs of a session together stay below the limit. */
static void exempt_from_oom(int proc_fd)
{
	static const char value[] = "-1000";
	SBX_CLOSE int fd = openat(proc_fd, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, value, strlen(value));
}

static int fill(struct sbx_seat *seat, int proc_fd, const struct sbx_cgroup_entry *entry,
	struct sbx_err *err)
{
	pid_t pid = -1;
	int r;

	if (entry->unified_fd >= 0) {
		seat->unified_fd = fcntl(entry->unified_fd, F_DUPFD_CLOEXEC, 0);
		if (seat->unified_fd < 0)
			return sbx_err_set(err, errno, "duplicate a descriptor: %m");
	}
	if (!entry->n_procs)
		return 0;
	exempt_from_oom(proc_fd);
	r = start_helper(seat, &pid, err);
	if (r == 0) {
		r = wait_for_helper(seat);
		if (r < 0)
			return sbx_err_set(err, -r, "start a process: %m");
	}
	return r < 0 ? r : move_helper(pid, entry, err);
}

int sbx_seat_new(int proc_fd, const struct sbx_cgroup_entry *entry, struct sbx_seat **ret,
	struct sbx_err *err)
{
	struct sbx_seat *seat = calloc(1, sizeof(*seat));
	int r;

	if (!seat)
		return sbx_err_set(err, ENOMEM, "make a seat: %m");
	seat->unified_fd = seat->pidfd = seat->ask_fd = seat->done_fd = -EBADF;
	r = fill(seat, proc_fd, entry, err);
	if (r < 0) {
		sbx_seat_free(seat);
		return r;
	}
	*ret = seat;
	return 0;
}

void sbx_seat_free(struct sbx_seat *seat)
{
	struct pollfd dead;

	if (!seat)
		return;
	if (seat->pidfd >= 0) {
		dead = (struct pollfd){.fd = seat->pidfd, .events = POLLIN};
		(void)sbx_sys_pidfd_signal(seat->pidfd, SIGKILL); /* ESRCH: it is gone */
		while (poll(&dead, 1, -1) < 0 && errno == EINTR)
			;
	}
	if (seat->stack)
		(void)munmap(seat->stack, GUARD_SIZE + STACK_SIZE); /* ours: cannot fail */
	sbx_fd_close(&seat->pidfd);
	sbx_fd_close(&seat->ask_fd);
	sbx_fd_close(&seat->done_fd);
	sbx_fd_close(&seat->unified_fd);
	free(seat);
}

pid_t sbx_seat_clone(struct sbx_seat *seat, struct clone_args *args,
	void (*child)(const void *data), const void *data)
{
	struct seat_request request = {.args = args, .child = child, .data = data};
	int r;

	args->exit_signal = SIGCHLD;
	if (seat && seat->unified_fd >= 0) {
		args->flags |= CLONE_INTO_CGROUP;
		args->cgroup = (uint64_t)seat->unified_fd;
	}
	if (!seat || seat->pidfd < 0)
		return clone_here(&request);
	/* the spawner's child; with CLONE_PARENT the signal is taken from the helper */
	args->flags |= CLONE_PARENT;
	args->exit_signal = 0;
	seat->request = &request;
	if (eventfd_write(seat->ask_fd, 1) < 0)
		return -errno;
	r = wait_for_helper(seat);
	seat->request = NULL;
	return r < 0 ? r : request.result;
}
