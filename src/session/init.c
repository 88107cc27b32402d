/* SPDX-License-Identifier: MIT */
/*
 * Session init. It begins as a copy of the spawner, with the host's rights, gives them up step by
 * step in the order of the table below, and then serves sandboxd over the control socket.
 *
 * It never calls execve: its memory stays owned by the initial user namespace, so that nothing in
 * the session can trace it or look into its descriptors, whatever capabilities it has there.
 */
#include "init.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "sbx/caps.h"
#include "sbx/sock.h"
#include "title.h"

struct command {
	uint32_t number; /* 0: the place is free */
	pid_t keeper;    /* 0: it has ended; then its shell, if that still runs, is our child */
	bool signalled;  /* the end of what it left has to be told */
	bool exited;     /* as sandboxd was told */
};

/* A message that sandboxd had no room for. While there is one, no request is read: so there are
 * never more of them than the ends of the commands that run, and a few answers. */
struct waiting {
	struct waiting *next;
	struct sbx_init_message message;
	int fd;
};

struct init {
	const struct sbx_init_setup *setup;
	int control_fd;
	int signal_fd;
	bool empty;   /* sandboxd was told that nobody is left */
	bool settled; /* the spawner knows that its descriptors are closed here */
	struct command commands[SBX_INIT_COMMANDS_MAX];
	struct sbx_init_report *reports; /* of the keeper of each place */
	struct waiting *first, **last;
};

/* Capabilities in the session's user namespace. They reach what belongs to the sandbox's ids:
 * its files and processes. */
static const cap_value_t keep_caps[] = {
	CAP_CHOWN,        /* install -o, tar -x as root */
	CAP_DAC_OVERRIDE, /* root reads and writes what its other users made */
	CAP_FOWNER,       /* chmod, utime and xattrs of the same */
	CAP_FSETID,       /* chmod keeps setgid bits that tar -p and dpkg set */
	CAP_KILL,         /* root ends servers that run as another user */
	CAP_SETGID,       /* su, setpriv, a database's own group */
	CAP_SETUID,       /* the same for users */
	CAP_SETPCAP,      /* programs that give up capabilities of their own */
	CAP_SYS_CHROOT,   /* chroot of build tools; the mount namespace stays */
	CAP_SETFCAP,      /* setcap in "make install"; nosuid keeps it without effect */
};

static const struct {
	int resource;
	rlim_t soft, hard;
} limits[] = {
	{RLIMIT_NOFILE, 16384, 1048576},
	/* 1 and not 0: do_coredump() (fs/coredump.c) lets a piped core_pattern run for 0 */
	{RLIMIT_CORE, 1, 1},
	/* counted over all sessions of the sandbox, since they share its ids: the last resort
	 * against a fork bomb where there is no pids controller */
	{RLIMIT_NPROC, 16384, 16384},
};

/*
 * Beyond what file modes protect already (all of /proc/sys and every 0400 file belong to the
 * host's root, whom nobody in the session is): what every user may read of the host.
 */
static const struct {
	const char *path;
	const char *cover;
} masks[] = {
	{"/proc/kcore", "/dev/null"},
	{"/proc/keys", "/dev/null"},
	{"/proc/timer_list", "/dev/null"},
	{"/proc/sysrq-trigger", "/dev/null"},
	{"/proc/acpi", "/sys"}, /* an empty, read-only directory */
	{"/proc/scsi", "/sys"},
};

static int join_namespaces(struct init *init, struct sbx_err *err)
{
	const struct sbx_ns_set *ns = &init->setup->ns;

	if (setns(ns->mnt, CLONE_NEWNS) < 0 || setns(ns->ipc, CLONE_NEWIPC) < 0 ||
		setns(ns->uts, CLONE_NEWUTS) < 0 ||
		(ns->net >= 0 && setns(ns->net, CLONE_NEWNET) < 0))
		return sbx_err_set(err, errno, "join the session's namespaces: %m");
	/* here and not in clone3, which would root it at the spawner's cgroup */
	if (unshare(CLONE_NEWCGROUP) < 0)
		return sbx_err_set(err, errno, "make a cgroup namespace: %m");
	return 0;
}

/* Still as the initial user namespace's root: the session cannot undo any of it. In a namespace
 * where an init lived before, /proc still is that of its dead pid namespace. */
static int mount_proc(SBX_UNUSED struct init *init, struct sbx_err *err)
{
	if (umount2("/proc", MNT_DETACH) < 0 && errno != EINVAL) /* EINVAL: not a mount point */
		return sbx_err_set(err, errno, "umount the former /proc: %m");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return sbx_err_set(err, errno, "mount /proc: %m");
	for (size_t i = 0; i < SBX_N_ELEMENTS(masks); i++)
		if (mount(masks[i].cover, masks[i].path, NULL, MS_BIND, NULL) < 0 &&
			errno != ENOENT) /* a kernel without it */
			return sbx_err_set(err, errno, "mask %s: %m", masks[i].path);
	return 0;
}

/* One word, exactly once: the spawner waits for it before it drops anything (slot.h). */
static int tell_settled(struct init *init, struct sbx_err *err)
{
	const char word = 0;
	int r = sbx_sock_send(init->setup->park_fd, &word, sizeof(word), NULL, 0);

	if (r < 0)
		return sbx_err_set(err, -r, "tell the spawner: %m");
	init->settled = true;
	return 0;
}

static int arrange_descriptors(struct init *init, struct sbx_err *err)
{
	const struct sbx_init_setup *setup = init->setup;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC); /* the session's own */
	int r;

	if (null < 0)
		return sbx_err_set(err, errno, "open /dev/null: %m");
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup3(null, fd, O_CLOEXEC) < 0)
			return sbx_err_set(err, errno, "dup3: %m");
	r = sbx_fds_keep((const int[]){setup->park_fd, setup->lock_fd, setup->user_ns}, 3);
	if (r < 0)
		return sbx_err_set(err, -r, "close descriptors: %m");
	return tell_settled(init, err);
}

static int watch_children(struct init *init, struct sbx_err *err)
{
	sigset_t all, child;

	init->reports = mmap(NULL, SBX_INIT_COMMANDS_MAX * sizeof(*init->reports),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (init->reports == MAP_FAILED)
		return sbx_err_set(err, errno, "map memory: %m");
	(void)sigfillset(&all);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	/* ignored in the spawner: with that no exit status would be kept */
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || sigprocmask(SIG_SETMASK, &all, NULL) < 0)
		return sbx_err_set(err, errno, "set up signals: %m");
	init->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init->signal_fd < 0)
		return sbx_err_set(err, errno, "make a signalfd: %m");
	return 0;
}

/* The spawner is exempt from being killed for lack of memory, or shall be the last (seat.h). What
 * runs in a session goes before anything of the host does. Set with CAP_SYS_RESOURCE, it also is
 * the least that the session can set (proc_pid_oom_score_adj(5)). */
static int be_eligible(SBX_UNUSED struct init *init, struct sbx_err *err)
{
	static const char value[] = "500";
	SBX_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return sbx_err_set(err, errno, "set oom_score_adj: %m");
	return 0;
}

/* Limits only go down: the spawner may lack CAP_SYS_RESOURCE. */
static int lower_limit(int which, rlim_t soft, rlim_t hard, struct sbx_err *err)
{
	__rlimit_resource_t resource = (__rlimit_resource_t)which;
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return sbx_err_set(err, errno, "getrlimit: %m");
	limit.rlim_max = SBX_MIN(limit.rlim_max, hard);
	limit.rlim_cur = SBX_MIN(limit.rlim_max, soft);
	if (setrlimit(resource, &limit) < 0)
		return sbx_err_set(err, errno, "set resource limit %d: %m", resource);
	return 0;
}

static int set_limits(struct init *init, struct sbx_err *err)
{
	uint64_t file_max = init->setup->file_max;
	int r = 0;

	for (size_t i = 0; i < SBX_N_ELEMENTS(limits) && r >= 0; i++)
		r = lower_limit(limits[i].resource, limits[i].soft, limits[i].hard, err);
	if (r >= 0 && file_max)
		r = lower_limit(RLIMIT_FSIZE, file_max, file_max, err);
	(void)umask(022);
	return r;
}

static int enter_user_namespace(struct init *init, struct sbx_err *err)
{
	if (setns(init->setup->user_ns, CLONE_NEWUSER) < 0)
		return sbx_err_set(err, errno, "enter the user namespace: %m");
	(void)close(init->setup->user_ns); /* in use; the descriptor is needed no more */
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return sbx_err_set(err, errno, "become the session's root: %m");
	if (chdir(init->setup->root_at) < 0)
		return sbx_err_set(err, errno, "go to %s: %m", init->setup->root_at);
	return 0;
}

static int drop_capabilities(SBX_UNUSED struct init *init, struct sbx_err *err)
{
	return sbx_caps_keep_only(keep_caps, SBX_N_ELEMENTS(keep_caps), err);
}

/* After the change of ids, which resets the first two. */
static int lock_down(struct init *init, struct sbx_err *err)
{
	int r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sbx_err_set(err, errno, "prctl: %m");
	r = sbx_title_set("sbx-init", err);
	if (r < 0)
		return r;
	return sbx_filter_enter(init->setup->filter, err);
}

/* The order is the point: each step needs rights that a later one gives up. */
static int (*const steps[])(struct init *init, struct sbx_err *err) = {
	join_namespaces,     /* needs the spawner's descriptors and the host's root */
	arrange_descriptors, /* the namespaces are joined: their descriptors can go */
	mount_proc,          /* the last mounts */
	be_eligible,         /* needs the session's /proc and the host's root */
	watch_children, set_limits,
	enter_user_namespace,         /* from here on no right outside the sandbox */
	drop_capabilities, lock_down, /* the filter refuses much of the above */
};

/* Sends now, or keeps it until sandboxd has room. A session that cannot even queue ends. */
static void send_message(struct init *init, const struct sbx_init_message *message, int fd)
{
	SBX_CLOSE int owned = fd;
	struct waiting *w;
	int r = init->first ? -EAGAIN : sbx_init_send(init->control_fd, message, fd);

	if (r == 0)
		return;
	w = r == -EAGAIN ? malloc(sizeof(*w)) : NULL;
	if (!w)
		_exit(EXIT_FAILURE);
	*w = (struct waiting){.message = *message, .fd = sbx_fd_take(&owned)};
	*init->last = w;
	init->last = &w->next;
}

static void flush_waiting(struct init *init)
{
	while (init->first) {
		struct waiting *w = init->first;
		int r = sbx_init_send(init->control_fd, &w->message, w->fd);

		if (r == -EAGAIN)
			return;
		if (r < 0)
			_exit(EXIT_FAILURE);
		init->first = w->next;
		if (!init->first)
			init->last = &init->first;
		sbx_fd_close(&w->fd);
		free(w);
	}
}

static struct command *find_command(struct init *init, uint32_t number)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(init->commands); i++)
		if (init->commands[i].number == number)
			return &init->commands[i];
	return NULL;
}

static struct sbx_init_report *report_of(const struct init *init, const struct command *command)
{
	return &init->reports[command - init->commands];
}

static int try_start(struct init *init, const struct sbx_init_message *m, int text_fd,
	int *ret_master, pid_t *ret_pid, struct sbx_err *err)
{
	struct sbx_init_report *report;
	pid_t keeper = 0;
	const struct sbx_init_start start = {
		.text_fd = text_fd,
		.text_size = m->text_size,
		.rows = m->rows,
		.columns = m->columns,
	};
	struct command *place = find_command(init, 0);
	int r;

	if (!m->command || find_command(init, m->command))
		return sbx_err_set(err, EINVAL, "command number %u is 0 or in use", m->command);
	if (!place)
		return sbx_err_set(err, EAGAIN,
			"%d commands run in this session, which is the limit",
			SBX_INIT_COMMANDS_MAX);
	report = report_of(init, place);
	*report = (struct sbx_init_report){0}; /* the keeper before has told its last word there */
	r = sbx_init_start(&start, report, ret_master, &keeper, err);
	if (r < 0)
		return r;
	*place = (struct command){.number = m->command, .keeper = keeper};
	*ret_pid = report->shell;
	return 0;
}

static void send_empty(struct init *init, uint32_t command)
{
	send_message(
		init, &(struct sbx_init_message){.op = SBX_INIT_EMPTY, .command = command}, -EBADF);
}

static void free_place(struct command *command)
{
	*command = (struct command){0};
}

/* Orphans are our children: without a child there is nobody. */
static void tell_if_empty(struct init *init)
{
	if (init->empty || waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) == 0)
		return;
	init->empty = true;
	send_empty(init, 0);
}

static void handle_start(struct init *init, const struct sbx_init_message *m, int text_fd)
{
	struct sbx_init_message answer = {.op = SBX_INIT_STARTED, .command = m->command};
	struct sbx_err err = SBX_ERR_INIT;
	int master = -EBADF;
	pid_t pid = 0;

	answer.code = try_start(init, m, text_fd, &master, &pid, &err);
	answer.pid = (uint32_t)pid;
	init->empty = false;
	if (answer.code < 0)
		(void)snprintf(answer.detail, sizeof(answer.detail), "%.231s", err.message);
	send_message(init, &answer, master);
	if (answer.code < 0)
		tell_if_empty(init); /* no end of a process will */
}

static void handle_signal(struct init *init, const struct sbx_init_message *m)
{
	struct command *command = m->command ? find_command(init, m->command) : NULL;

	if (m->code < 1 || m->code >= NSIG)
		return;
	/* one that has ended meanwhile is no error: its EXITED is on its way */
	if (command) {
		command->signalled = true;
		sbx_init_tree_signal(command->keeper, report_of(init, command)->shell, m->code);
	} else if (!m->command) {
		(void)kill(-1, m->code); /* ESRCH: nobody is there */
	}
	if (command && command->exited && m->code == SIGKILL)
		free_place(command);
}

static void handle_request(struct init *init)
{
	struct sbx_init_message m;
	SBX_CLOSE int fd = -EBADF;
	int r = sbx_init_read(init->control_fd, &m, &fd);

	if (r == -EAGAIN)
		return;
	if (r <= 0)
		_exit(r == 0 ? EXIT_SUCCESS : EXIT_FAILURE); /* the kernel ends the session */
	if (m.op == SBX_INIT_START)
		handle_start(init, &m, fd);
	else if (m.op == SBX_INIT_SIGNAL)
		handle_signal(init, &m);
}

static void tell_exit(struct init *init, struct command *command, int status)
{
	send_message(init,
		&(struct sbx_init_message){
			.op = SBX_INIT_EXITED, .command = command->number, .code = status},
		-EBADF);
	command->exited = true;
}

static void note_end(struct init *init, pid_t pid, int status)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(init->commands); i++) {
		struct command *c = &init->commands[i];
		const struct sbx_init_report *report = &init->reports[i];

		if (c->number && c->keeper == pid)
			c->keeper = 0;
		else if (c->number && !c->exited && report->shell == pid &&
			 !__atomic_load_n(&report->exited, __ATOMIC_ACQUIRE))
			tell_exit(init, c, status); /* its keeper was killed */
	}
}

static void tell_news(struct init *init)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(init->commands); i++) {
		struct command *c = &init->commands[i];
		const struct sbx_init_report *report = &init->reports[i];

		if (!c->number)
			continue;
		if (!c->exited && __atomic_load_n(&report->exited, __ATOMIC_ACQUIRE))
			tell_exit(init, c, report->status);
		if (!c->exited || (c->signalled && c->keeper))
			continue;
		if (c->signalled)
			send_empty(init, c->number);
		free_place(c);
	}
}

static void reap(struct init *init)
{
	struct signalfd_siginfo info;
	pid_t pid;
	int status;

	(void)!read(init->signal_fd, &info, sizeof(info)); /* several may have become one */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		note_end(init, pid, status);
	tell_news(init);
	tell_if_empty(init);
}

static void serve(struct init *init)
{
	struct pollfd fds[] = {
		{.fd = init->control_fd},
		{.fd = init->signal_fd, .events = POLLIN},
	};

	for (;;) {
		fds[0].events = init->first ? POLLOUT : POLLIN;
		if (poll(fds, SBX_N_ELEMENTS(fds), -1) < 0)
			_exit(EXIT_FAILURE);
		if (fds[0].revents & POLLOUT)
			flush_waiting(init);
		if (fds[1].revents)
			reap(init);
		if (fds[0].revents & POLLIN)
			handle_request(init);
		else if (fds[0].revents & (POLLHUP | POLLERR))
			_exit(EXIT_SUCCESS);
	}
}

/* Parked: all is set up, or has failed; the session begins when its control socket arrives. */
static void wait_for_control(struct init *init)
{
	int fds[SBX_SOCK_FDS_MAX];
	size_t n_fds = 0;
	char word;

	if (sbx_sock_recv(init->setup->park_fd, &word, sizeof(word), fds, &n_fds) != 1 ||
		n_fds != 1 || fcntl(fds[0], F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		_exit(EXIT_FAILURE); /* the slot is not wanted any more */
	init->control_fd = fds[0];
	(void)close(init->setup->park_fd); /* nothing more comes */
}

void sbx_init_main(const struct sbx_init_setup *setup)
{
	static struct init init;
	struct sbx_init_message ready = {.op = SBX_INIT_READY};
	struct sbx_err err = SBX_ERR_INIT;

	init.setup = setup;
	init.control_fd = -EBADF;
	init.last = &init.first;
	for (size_t i = 0; i < SBX_N_ELEMENTS(steps) && ready.code == 0; i++)
		ready.code = steps[i](&init, &err);
	if (ready.code < 0) {
		(void)snprintf(ready.detail, sizeof(ready.detail), "%.231s", err.message);
		/* nothing of others while it waits to tell it */
		if (sbx_fds_keep(&setup->park_fd, 1) < 0 ||
			(!init.settled && tell_settled(&init, NULL) < 0))
			_exit(EXIT_FAILURE);
	}
	wait_for_control(&init);
	send_message(&init, &ready, -EBADF);
	if (ready.code < 0)
		_exit(EXIT_FAILURE);
	serve(&init);
	_exit(EXIT_FAILURE);
}
