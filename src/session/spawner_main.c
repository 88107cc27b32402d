/* SPDX-License-Identifier: MIT */
/*
 * Phases of the spawner, and what each holds:
 *   1. as forked: sandboxd's descriptors and namespaces. Lets go of all but its own descriptors.
 *   2. in a private copy of the host's mount namespace: builds the template out of it.
 *   3. in the store namespace: nothing of the host is mounted but the sandbox's layers and
 *      sessions. Here it serves requests until sandboxd closes its end.
 * It keeps the host's capabilities throughout: making mounts and namespaces needs them.
 */
#include "spawner_main.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "bridge.h"
#include "init.h"
#include "mount.h"
#include "netpool.h"
#include "rootfs.h"
#include "sbx/fs.h"
#include "sbx/sock.h"
#include "spawn.h"
#include "spawner_proto.h"
#include "template.h"
#include "title.h"
#include "userns.h"

#define STORE_ROOT_BYTES (64u << 20) /* directories only: as many as layers and slots */

struct request_fds {
	int fds[SBX_SOCK_FDS_MAX];
	size_t n;
};

static void request_fds_done(struct request_fds *fds)
{
	while (fds->n)
		sbx_fd_close(&fds->fds[--fds->n]);
}

static int handle_layer(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
	SBX_UNUSED const struct request_fds *fds, SBX_UNUSED int *ret_fd, struct sbx_err *err)
{
	return sbx_spawn_layer(spawn, q->number, q->name, err);
}

static int handle_unlayer(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
	SBX_UNUSED const struct request_fds *fds, SBX_UNUSED int *ret_fd, struct sbx_err *err)
{
	return sbx_spawn_unlayer(spawn, q->number, err);
}

static int handle_prepare(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
	SBX_UNUSED const struct request_fds *fds, int *ret_fd, struct sbx_err *err)
{
	return sbx_slot_prepare(spawn, q->number, q->name, q->layers, q->n_layers, ret_fd, err);
}

static int handle_run(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
	const struct request_fds *fds, int *ret_fd, struct sbx_err *err)
{
	return sbx_slot_run(spawn, q->number, fds->fds[0], ret_fd, err);
}

static int handle_renew(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
	SBX_UNUSED const struct request_fds *fds, SBX_UNUSED int *ret_fd, struct sbx_err *err)
{
	return sbx_slot_renew(spawn, q->number, err);
}

static int handle_drop(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
	SBX_UNUSED const struct request_fds *fds, SBX_UNUSED int *ret_fd, struct sbx_err *err)
{
	return sbx_slot_drop(spawn, q->number, err);
}

static int handle_seat(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
	const struct request_fds *fds, SBX_UNUSED int *ret_fd, struct sbx_err *err)
{
	struct sbx_cgroup_entry entry = {.unified_fd = -EBADF};

	if (q->n_unified > 1 || q->n_unified > fds->n)
		return sbx_err_set(err, EPROTO, "request %u is not well-formed", q->op);
	if (q->n_unified)
		entry.unified_fd = fds->fds[0];
	for (size_t i = q->n_unified; i < fds->n; i++)
		entry.procs_fds[entry.n_procs++] = fds->fds[i];
	return sbx_slot_seat(spawn, q->number, &entry, err);
}

static const struct handler {
	int (*handle)(struct sbx_spawn *spawn, const struct sbx_spawn_request *q,
		const struct request_fds *fds, int *ret_fd, struct sbx_err *err);
	size_t min_fds, max_fds;
} handlers[] = {
	[SBX_SPAWN_LAYER] = {handle_layer, 0, 0},
	[SBX_SPAWN_UNLAYER] = {handle_unlayer, 0, 0},
	[SBX_SPAWN_PREPARE] = {handle_prepare, 0, 0},
	[SBX_SPAWN_RUN] = {handle_run, 1, 1},
	[SBX_SPAWN_RENEW] = {handle_renew, 0, 0},
	[SBX_SPAWN_DROP] = {handle_drop, 0, 0},
	[SBX_SPAWN_SEAT] = {handle_seat, 0, SBX_CGROUP_PLACES_MAX},
};

static int handle(struct sbx_spawn *spawn, const struct sbx_spawn_request *q, size_t size,
	const struct request_fds *fds, int *ret_fd, struct sbx_err *err)
{
	const struct handler *h;

	if (size != sizeof(*q) || q->op >= SBX_N_ELEMENTS(handlers) || !handlers[q->op].handle)
		return sbx_err_set(err, EPROTO, "not a request");
	h = &handlers[q->op];
	if (fds->n < h->min_fds || fds->n > h->max_fds || q->n_layers > SBX_SPAWN_LAYERS_MAX ||
		!memchr(q->name, '\0', sizeof(q->name)))
		return sbx_err_set(err, EPROTO, "request %u is not well-formed", q->op);
	return h->handle(spawn, q, fds, ret_fd, err);
}

static int reply(int sock_fd, uint64_t tag, int code, const struct sbx_err *err, int fd)
{
	struct sbx_spawn_answer answer = {.tag = tag, .code = code};

	if (code < 0)
		(void)snprintf(answer.message, sizeof(answer.message), "%.255s", err->message);
	return sbx_sock_send(sock_fd, &answer, sizeof(answer), &fd, fd >= 0);
}

/* One request; false when sandboxd is gone. */
static bool serve_one(struct sbx_spawn *spawn)
{
	SBX_CLEANUP(request_fds_done) struct request_fds fds = {0};
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_spawn_request q;
	SBX_CLOSE int fd = -EBADF;
	ssize_t n;
	int r;

	n = sbx_sock_recv(spawn->sock_fd, &q, sizeof(q), fds.fds, &fds.n);
	if (n <= 0)
		return false;
	r = handle(spawn, &q, (size_t)n, &fds, &fd, &err);
	if (reply(spawn->sock_fd, q.tag, r, &err, fd) < 0)
		return false;
	if (q.op == SBX_SPAWN_RUN) /* a command begins: nobody needs us until it has ended */
		sbx_netpool_fill(spawn);
	return true;
}

int sbx_spawn_open_ns(
	const struct sbx_spawn *spawn, const char *name, int *ret_fd, struct sbx_err *err)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "self/ns/%s", name);
	fd = openat(spawn->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open the %s namespace: %m", name);
	*ret_fd = fd;
	return 0;
}

static int become_spawner(pid_t parent, struct sbx_err *err)
{
	int null, r;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return sbx_err_set(err, errno, "prctl: %m");
	if (getppid() != parent)
		_exit(EXIT_FAILURE); /* it died before we could ask to be told */
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL); /* refused for SIGKILL, SIGSTOP and glibc's own */
	r = sbx_title_set("sbx-spawner", err);
	if (r < 0)
		return r;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return sbx_err_set(err, errno, "open /dev/null: %m");
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return sbx_err_set(err, errno, "dup2: %m");
	(void)umask(0);
	return 0;
}

/* What is attached in the store namespace; -EBADF: there is no such thing. */
struct trees {
	int layers, sessions;
	int rootfs, places; /* of a root file system other than the host's */
};
#define TREES_EMPTY ((struct trees){-EBADF, -EBADF, -EBADF, -EBADF})

static void trees_done(struct trees *trees)
{
	sbx_fd_close(&trees->layers);
	sbx_fd_close(&trees->sessions);
	sbx_fd_close(&trees->rootfs);
	sbx_fd_close(&trees->places);
}

static int keep_descriptors(
	const struct sbx_spawn *spawn, const struct trees *trees, struct sbx_err *err)
{
	int keep[] = {spawn->sock_fd, spawn->config->lock_fd, trees->layers, trees->sessions,
		spawn->proc_fd, trees->rootfs};
	size_t n = SBX_N_ELEMENTS(keep);
	int r = sbx_fds_keep(keep, trees->rootfs < 0 ? n - 1 : n);

	return r < 0 ? sbx_err_set(err, -r, "close descriptors: %m") : 0;
}

/* Phase 1. Trees are cloned here, in the namespace that their descriptors belong to. */
static int let_go(struct sbx_spawn *spawn, pid_t parent, struct trees *ret, struct sbx_err *err)
{
	const struct sbx_spawner_config *config = spawn->config;
	int r;

	r = become_spawner(parent, err);
	if (r < 0)
		return r;
	r = sbx_mount_clone(config->layers_fd, "", 0, &ret->layers, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "layers");
	r = sbx_mount_clone(config->sessions_fd, "", 0, &ret->sessions, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "sessions");
	if (config->rootfs_fd >= 0) /* without what is mounted below it */
		r = sbx_mount_clone(config->rootfs_fd, "", 0, &ret->rootfs, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "root file system");
	spawn->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (spawn->proc_fd < 0)
		return sbx_err_set(err, errno, "open /proc: %m");
	return keep_descriptors(spawn, ret, err);
}

static int new_mount_namespace(struct sbx_err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return sbx_err_set(err, errno, "make a mount namespace: %m");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return sbx_err_set(err, errno, "make mounts private: %m");
	return 0;
}

static int attach_store(int root, int tree, const char *name, int *ret_fd, struct sbx_err *err)
{
	int r, fd;

	r = sbx_mount_set(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, -EBADF, 0, err);
	if (r < 0)
		return r;
	if (mkdirat(root, name, 0700) < 0)
		return sbx_err_set(err, errno, "make /%s: %m", name);
	r = sbx_mount_attach(tree, root, name, err);
	if (r < 0)
		return r;
	fd = openat(root, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open /%s: %m", name);
	*ret_fd = fd;
	return 0;
}

/* As lower layers of the sessions' roots, beside those of the workspace. */
static int attach_rootfs(
	const struct sbx_spawn *spawn, const struct trees *trees, int root, struct sbx_err *err)
{
	int r;

	if (trees->rootfs < 0)
		return 0;
	r = sbx_mount_set(trees->rootfs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		spawn->user_ns, 0, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "root file system");
	if (mkdirat(root, "l/" SBX_ROOTFS_LAYER, 0700) < 0 ||
		mkdirat(root, "l/" SBX_ROOTFS_PLACES, 0700) < 0)
		return sbx_err_set(err, errno, "make a directory for the root file system: %m");
	r = sbx_mount_attach(trees->rootfs, root, "l/" SBX_ROOTFS_LAYER, err);
	return r < 0 ? r : sbx_mount_attach(trees->places, root, "l/" SBX_ROOTFS_PLACES, err);
}

/* Phase 3: the store namespace (spawn.h). */
static int enter_store(struct sbx_spawn *spawn, const struct trees *trees, struct sbx_err *err)
{
	static const char *const directories[] = {"l", "s", "o", "r"};
	SBX_CLOSE int root = -EBADF;
	int r;

	r = new_mount_namespace(err);
	if (r >= 0)
		r = sbx_mount_tmpfs(STORE_ROOT_BYTES, 0700, 0,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &root, err);
	if (r >= 0)
		r = sbx_mount_attach(root, AT_FDCWD, SBX_MOUNT_STAGE, err);
	for (size_t i = 0; i < SBX_N_ELEMENTS(directories) && r >= 0; i++)
		if (mkdirat(root, directories[i], 0700) < 0)
			r = sbx_err_set(err, errno, "make /%s: %m", directories[i]);
	if (r >= 0)
		r = attach_store(root, trees->layers, "layers", &spawn->layers_fd, err);
	if (r >= 0)
		r = attach_store(root, trees->sessions, "sessions", &spawn->sessions_fd, err);
	if (r >= 0)
		r = attach_rootfs(spawn, trees, root, err);
	if (r >= 0)
		r = sbx_mount_enter_root(root, err);
	return r < 0 ? sbx_err_wrap(err, r, "the store namespace") : 0;
}

static int open_home(struct sbx_spawn *spawn, struct sbx_err *err)
{
	int r;

	r = sbx_spawn_open_ns(spawn, "mnt", &spawn->home.mnt, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "ipc", &spawn->home.ipc, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "uts", &spawn->home.uts, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "net", &spawn->home.net, err);
	return r;
}

static int open_bridge(struct sbx_spawn *spawn, struct sbx_err *err)
{
	const struct sbx_spawner_config *config = spawn->config;

	return sbx_bridge_open(
		config->allow, config->n_allow, config->resolver, &spawn->bridge, err);
}

static int set_up(struct sbx_spawn *spawn, pid_t parent, struct sbx_err *err)
{
	SBX_CLEANUP(trees_done) struct trees trees = TREES_EMPTY;
	int r;

	r = let_go(spawn, parent, &trees, err);
	if (r >= 0)
		r = sbx_userns_new(spawn->proc_fd, spawn->config->id_base, &spawn->user_ns, err);
	if (r >= 0)
		r = new_mount_namespace(err);
	if (r >= 0)
		r = sbx_template_build(spawn->config, trees.rootfs, &trees.places, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "mnt", &spawn->template_ns, err);
	if (r >= 0)
		r = enter_store(spawn, &trees, err);
	if (r >= 0)
		r = open_home(spawn, err);
	if (r >= 0 && spawn->config->network == SBX_NETWORK_BRIDGE)
		r = open_bridge(spawn, err);
	/* the kernel reaps inits: what is left of one is seen by its pidfd */
	if (r >= 0 && signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		r = sbx_err_set(err, errno, "ignore SIGCHLD: %m");
	return r;
}

void sbx_spawner_main(const struct sbx_spawner_config *config, const struct sbx_filter *filter,
	int sock_fd, pid_t parent)
{
	struct sbx_spawn *spawn = calloc(1, sizeof(*spawn));
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	if (!spawn)
		_exit(EXIT_FAILURE);
	spawn->config = config;
	spawn->filter = filter;
	spawn->sock_fd = sock_fd;
	spawn->home = SBX_NS_SET_EMPTY;
	spawn->ready_net = -EBADF;
	r = set_up(spawn, parent, &err);
	if (reply(sock_fd, 0, r, &err, -EBADF) < 0 || r < 0)
		_exit(EXIT_FAILURE);
	while (serve_one(spawn))
		;
	_exit(EXIT_SUCCESS); /* the inits die with us: PR_SET_PDEATHSIG */
}
