/* SPDX-License-Identifier: MIT */
/*
 * sandboxd: one per sandbox. The order of the start is fixed and each step says why it stands
 * where it does; main() reads it out of the table below.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "command.h"
#include "commit.h"
#include "disk.h"
#include "recover.h"
#include "reject_ops.h"
#include "sbx/cgroup.h"
#include "sbx/fs.h"
#include "sbx/rootfs.h"
#include "sbx/sock.h"
#include "sbx/spawner.h"
#include "session.h"
#include "slots.h"

#define LOCK_NAME     "sandboxd.lock"
#define LOG_NAME      "sandboxd.log"
#define LOG_MAX       (4 << 20) /* a longer log is started anew, the old one kept as .old */
#define TMP_BYTES_MAX (UINT64_C(4) << 30) /* of each private tmpfs */
#define LOCK_WAIT_NS  (20 * SBX_NSEC_PER_SEC)
#define NOFILE_WANTED 65536

/* Set before the first step; steps leave what they made in the daemon. */
struct start {
	struct daemon daemon;
	const char *sandbox_id;
	int lock_fd;
	int ready_fd;
	struct sbx_spawner *spawner;
	struct sbx_allow allow[SBX_ALLOW_MAX];
	size_t n_allow;
	struct sbx_resolver resolver;
};

/* --- steps --- */

static int open_sandbox(struct start *start, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf root = SBX_BUF_INIT;
	SBX_CLOSE int root_fd = -EBADF;
	int r = sbx_state_root(&root);

	if (r < 0)
		return sbx_err_set(err, -r, "find the state directory: %m");
	root_fd = open(root.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return sbx_err_set(err, errno, "open state directory %s: %m", root.data);
	start->daemon.context.sandbox_fd =
		openat(root_fd, start->sandbox_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (start->daemon.context.sandbox_fd < 0)
		return sbx_err_kind(err, SBX_KIND_NOT_FOUND, errno, "open sandbox %s in %s: %m",
			start->sandbox_id, root.data);
	return sbx_sandbox_load(start->daemon.context.sandbox_fd, &start->daemon.sandbox, err);
}

/* Whether another sandboxd lives is decided by its lock; one that is starting or ending holds it
 * for a moment, and so do the last processes of one that was killed. */
static int take_lock(struct start *start, struct sbx_err *err)
{
	uint64_t deadline = sbx_now_ns() + LOCK_WAIT_NS;
	struct timespec pause = {.tv_nsec = 5 * (long)SBX_NSEC_PER_MSEC};
	int fd = openat(start->daemon.context.sandbox_fd, LOCK_NAME,
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return sbx_err_set(err, errno, "open %s: %m", LOCK_NAME);
	start->lock_fd = fd;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		SBX_CLOSE int peer = -EBADF;

		if (errno != EWOULDBLOCK && errno != EINTR)
			return sbx_err_set(err, errno, "lock %s: %m", LOCK_NAME);
		if (sbx_sock_connect(start->daemon.context.sandbox_fd, "sandboxd.sock", &peer) == 0)
			return -EALREADY; /* it runs: whoever started us can connect to it */
		if (sbx_now_ns() > deadline)
			return sbx_err_kind(err, SBX_KIND_BUSY, EBUSY,
				"processes of an earlier sandboxd of '%s' still hold its lock "
				"after "
				"%d s; 'fuser %s' names them",
				start->sandbox_id, (int)(LOCK_WAIT_NS / SBX_NSEC_PER_SEC),
				LOCK_NAME);
		(void)nanosleep(
			&pause, NULL); /* flock(2) has no descriptor to wait on with a deadline */
	}
	return 0;
}

/* stderr becomes the log unless a person started us in the foreground. */
static int open_log(struct start *start, struct sbx_err *err)
{
	int dir_fd = start->daemon.context.sandbox_fd;
	SBX_CLOSE int fd = -EBADF;
	struct stat st;

	if (start->ready_fd < 0)
		return 0;
	if (fstatat(dir_fd, LOG_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > LOG_MAX)
		(void)renameat(dir_fd, LOG_NAME, dir_fd, LOG_NAME ".old"); /* else it grows on */
	fd = openat(dir_fd, LOG_NAME, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		return sbx_err_set(err, errno, "open %s: %m", LOG_NAME);
	return 0;
}

static int open_directories(struct start *start, struct sbx_err *err)
{
	struct sbx_job_context *context = &start->daemon.context;
	const struct {
		int parent;
		const char *name;
		int *ret;
	} directories[] = {
		{context->sandbox_fd, "store", &context->store_fd},
		{context->sandbox_fd, "sessions", &context->sessions_fd},
		{context->sandbox_fd, "commands", &context->commands_fd},
	};
	int r = 0;

	context->lock_fd = start->lock_fd;
	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(directories); i++)
		r = sbx_fs_ensure_dir(
			directories[i].parent, directories[i].name, 0700, directories[i].ret);
	if (r == 0)
		r = sbx_fs_ensure_dir(context->store_fd, "layers", 0700, &context->layers_fd);
	if (r == 0)
		r = sbx_fs_ensure_dir(context->store_fd, "rejects", 0700, &context->rejects_fd);
	return r < 0 ? sbx_err_set(err, -r, "open the sandbox's directories: %m") : 0;
}

/* So that the caller's directory is not kept busy. Relative paths of the environment are used up.
 */
static int leave_directory(struct start *start SBX_UNUSED, struct sbx_err *err)
{
	return chdir("/") < 0 ? sbx_err_set(err, errno, "chdir: %m") : 0;
}

static int open_head_log(struct start *start, struct sbx_err *err)
{
	return sbx_head_log_open(start->daemon.context.store_fd, true, &start->daemon.log, err);
}

static int parse_allow(struct start *start, struct sbx_err *err)
{
	struct json_object *list = start->daemon.sandbox.allow;
	size_t n = list ? json_object_array_length(list) : 0;
	int r = 0;

	if (n > SBX_ALLOW_MAX)
		return sbx_err_set(
			err, E2BIG, "sandbox.json allows more than %d addresses", SBX_ALLOW_MAX);
	for (; r == 0 && start->n_allow < n; start->n_allow += r == 0)
		r = sbx_allow_parse(
			json_object_get_string(json_object_array_get_idx(list, start->n_allow)),
			&start->allow[start->n_allow], err);
	return sbx_err_wrap(err, r, "sandbox.json");
}

/* What text there is is read here: the spawner reads none. */
static int plan_network(struct start *start, struct sbx_spawner_config *config, struct sbx_err *err)
{
	const char *word = start->daemon.sandbox.network;
	SBX_CLOSE int root_fd = -EBADF;
	int r;

	if (sbx_network_parse(word, &config->network) < 0)
		return sbx_err_set(err, EINVAL, "sandbox.json names an unknown network '%s'", word);
	if (config->network != SBX_NETWORK_BRIDGE)
		return 0;
	r = sbx_network_check_forwarding(err);
	if (r == 0)
		r = parse_allow(start, err);
	if (r < 0)
		return r;
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return sbx_err_set(err, errno, "open /: %m");
	r = sbx_resolver_load(root_fd, &start->resolver, err);
	if (r == 0 && !start->resolver.n_servers)
		daemon_log("sessions resolve no names: the name servers of the host are on its "
			   "loopback or have IPv6 addresses only");
	config->allow = start->allow;
	config->n_allow = start->n_allow;
	config->resolver = &start->resolver;
	return r;
}

/* Before anything is forked: where control groups are delegated, sandboxd moves into another. */
static int open_cgroups(struct start *start, struct sbx_err *err)
{
	const struct sbx_sandbox *sandbox = &start->daemon.sandbox;
	const struct sbx_cgroup_limits asked = {
		.memory_max = sandbox->memory_max,
		.pids_max = sandbox->pids_max,
		.cpu_max = sandbox->cpu_max,
	};
	int r = sbx_cgroup_host_open(
		start->daemon.context.sandbox_fd, sandbox->id, &asked, &start->daemon.cgroups, err);

	for (size_t i = 0; r == 0 && i < SBX_CGROUP_RESOURCES; i++) {
		enum sbx_cgroup_resource resource = (enum sbx_cgroup_resource)i;
		const char *why = sbx_cgroup_host_missing(start->daemon.cgroups, resource);

		if (why)
			daemon_log("sessions run without a limit of %s: %s",
				sbx_cgroup_resource_name(resource), why);
	}
	return r;
}

/* A file in a tmpfs counts as memory, and outlives the command that made it: all five of a session
 * together must not use up the limit. */
static uint64_t tmp_bytes(const struct sbx_cgroup_host *cgroups)
{
	uint64_t memory = sbx_cgroup_host_limits(cgroups)->memory_max;

	return memory ? SBX_MIN(memory / 8, TMP_BYTES_MAX) : TMP_BYTES_MAX;
}

/* Looked at again at each start: it is not ours, and may have changed since create. */
static int open_rootfs(const struct start *start, int *ret_fd, struct sbx_err *err)
{
	SBX_CLOSE int state_fd = -EBADF;
	int r;

	if (!daemon_has_rootfs(&start->daemon))
		return 0;
	state_fd = openat(start->daemon.context.sandbox_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (state_fd < 0)
		return sbx_err_set(err, errno, "open the state directory: %m");
	r = sbx_rootfs_open(start->daemon.sandbox.rootfs, state_fd, 0, ret_fd, err);
	return r < 0 ? sbx_err_wrap(err, r, "this sandbox was created with --rootfs") : 0;
}

static int start_spawner(struct start *start, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf policy = SBX_BUF_INIT;
	SBX_CLOSE int rootfs_fd = -EBADF;
	const struct sbx_sandbox *sandbox = &start->daemon.sandbox;
	struct sbx_spawner_config config = {
		.sandbox_id = sandbox->id,
		.root_at = sandbox->root_at,
		.rootfs_fd = -EBADF,
		.id_base = sandbox->id_base,
		.tmp_bytes = tmp_bytes(start->daemon.cgroups),
		.file_max = sandbox->disk_max,
		.layers_fd = start->daemon.context.layers_fd,
		.sessions_fd = start->daemon.context.sessions_fd,
		.lock_fd = start->lock_fd,
	};
	int r = plan_network(start, &config, err);

	if (r == 0)
		r = open_rootfs(start, &rootfs_fd, err);
	config.rootfs_fd = rootfs_fd;
	if (r == 0)
		r = sbx_sandbox_policy(start->daemon.context.sandbox_fd, sandbox, &policy, err);
	if (sandbox->seccomp_digest)
		config.seccomp_policy = &policy;
	return r < 0 ? r : sbx_spawner_start(&config, &start->spawner, err);
}

static void on_signal(void *data, uint32_t events SBX_UNUSED)
{
	struct daemon *daemon = data;
	struct signalfd_siginfo info;

	if (read(daemon->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		daemon_log("ended by signal %u", info.ssi_signo);
		daemon_stop(daemon);
	}
}

static int watch_signals(struct daemon *daemon)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	daemon->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemon->signal_fd < 0)
		return -errno;
	return sbx_watch_new(
		daemon->loop, daemon->signal_fd, EPOLLIN, on_signal, daemon, &daemon->signal_watch);
}

static int start_loop(struct start *start, struct sbx_err *err)
{
	struct daemon *daemon = &start->daemon;
	int r = sbx_loop_new(&daemon->loop);

	TAILQ_INIT(&daemon->clients);
	TAILQ_INIT(&daemon->orphans);
	TAILQ_INIT(&daemon->sessions);
	TAILQ_INIT(&daemon->commands);
	TAILQ_INIT(&daemon->squash_waiting);
	TAILQ_INIT(&daemon->gc_waiting);
	TAILQ_INIT(&daemon->retries);
	if (r == 0)
		r = pool_new(daemon->loop, &daemon->context, &daemon->pool);
	if (r == 0)
		r = watch_signals(daemon);
	if (r == 0)
		r = slots_new(daemon, sbx_take(&start->spawner), &daemon->slots);
	if (r == 0)
		r = commits_new(daemon, &daemon->commits);
	if (r == 0)
		r = sbx_timer_new(daemon->loop, daemon_idle, daemon, &daemon->idle_timer);
	if (r == 0)
		r = disk_open(daemon);
	return r < 0 ? sbx_err_set(err, -r, "start the event loop: %m") : 0;
}

static int recover_work(struct start *start, struct sbx_err *err)
{
	int r = recover(&start->daemon, err);

	if (r == 0)
		r = commands_index_load(&start->daemon);
	return r < 0 && !err->code ? sbx_err_set(err, -r, "list the commands: %m") : r;
}

static int listen_for_clients(struct start *start, struct sbx_err *err)
{
	return clients_listen(&start->daemon, err);
}

/* In this order. */
static const struct {
	const char *what;
	int (*run)(struct start *start, struct sbx_err *err);
} steps[] = {
	{"open the sandbox", open_sandbox},
	{"take the lock", take_lock}, /* from here on we are the only writer */
	{"open the log", open_log}, {"open directories", open_directories},
	{"read head.log", open_head_log},
	{"open control groups", open_cgroups}, /* after the lock: it removes what is left over */
	{"start the spawner", start_spawner},  /* forked before any input is read */
	{"leave the caller's directory", leave_directory},
	{"start the event loop", start_loop}, /* the first worker is forked here too */
	{"recover", recover_work},            /* before anybody can ask for what is recovered */
	{"listen", listen_for_clients},       /* last: an answer means that all is there */
};

static void finish(struct start *start)
{
	struct daemon *daemon = &start->daemon;

	daemon->stopping = true;
	if (daemon->loop) {
		clients_free(daemon);
		sessions_kill(daemon);
	}
	while (daemon->loop && !TAILQ_EMPTY(&daemon->sessions))
		session_free(TAILQ_FIRST(&daemon->sessions));
	session_free(daemon->standby);
	if (daemon->loop)
		commands_free(daemon);
	commits_free(daemon->commits);
	slots_free(daemon->slots);
	sbx_spawner_free(start->spawner);
	sbx_cgroup_host_free(daemon->cgroups);
	pool_free(daemon->pool);
	if (daemon->loop) {
		retries_free(daemon);
		requests_free(daemon);
	}
	sbx_timer_free(daemon->idle_timer);
	sbx_timer_free(daemon->disk_timer);
	sbx_watch_free(daemon->signal_watch);
	sbx_fd_close(&daemon->signal_fd);
	sbx_loop_free(daemon->loop);
	sbx_head_log_free(daemon->log);
	sbx_stack_done(&daemon->garbage);
	sbx_json_put(&daemon->history_weights);
	sbx_sandbox_done(&daemon->sandbox);
	sbx_resolver_done(&start->resolver);
	free(daemon->command_index.entries);
}

/* More sessions than 1024 descriptors allow; a limit that cannot be raised is worked with. */
static void raise_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = SBX_MIN(limit.rlim_max, (rlim_t)NOFILE_WANTED);
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* refusals name the limit when it is reached */
}

static int run(struct start *start)
{
	struct sbx_err err = SBX_ERR_INIT;
	int r = 0;

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(steps); i++)
		r = steps[i].run(start, &err);
	if (r == -EALREADY)
		r = 0;
	else if (r < 0 && start->ready_fd >= 0)
		(void)dprintf(start->ready_fd, "%s", err.message);
	sbx_fd_close(&start->ready_fd);
	if (r < 0)
		daemon_log("%s", err.message);
	if (r == 0 && start->daemon.listen_watch) {
		session_prepare_standby(&start->daemon);
		daemon_touch(&start->daemon);
		r = sbx_loop_run(start->daemon.loop);
	}
	return r;
}

static void usage(FILE *out)
{
	(void)fputs(
		"Usage: sandboxd [--ready-fd FD] SANDBOX_ID\n"
		"Serves one sandbox of the state directory (SBX_STATE_DIR, or /var/lib/sbx).\n"
		"It is started when it is needed; running it by hand is for service managers.\n"
		"\n"
		"  --ready-fd FD  close FD once clients can connect, write there why they cannot\n"
		"  --version      print the version\n"
		"  --help         this text\n",
		out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"ready-fd", required_argument, NULL, 'r'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	static const int ignored[] = {SIGPIPE, SIGHUP, SIGUSR1, SIGUSR2};
	struct start start = {
		.lock_fd = -EBADF,
		.ready_fd = -EBADF,
		.daemon = {.listen_fd = -EBADF, .signal_fd = -EBADF, .started_ns = sbx_now_ns()},
	};
	int c, r;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			start.ready_fd = atoi(optarg);
			break;
		case 'v':
			(void)puts(PACKAGE_STRING);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind + 1 != argc || !sbx_id_valid(argv[optind])) {
		usage(stderr);
		return 2;
	}
	start.sandbox_id = argv[optind];
	/* a write to a peer that has gone says so by itself; the others ask for what there is not */
	for (size_t i = 0; i < SBX_N_ELEMENTS(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)umask(0077);
	raise_nofile();
	r = run(&start);
	finish(&start);
	return r < 0 ? 1 : 0;
}
