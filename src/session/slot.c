/* SPDX-License-Identifier: MIT */
/*
 * Slots: sessions as descriptors. A slot goes PREPARED -> RUNNING -> (init is dead) and then back
 * to PREPARED by RENEW or away by DROP.
 *
 * The spawner enters the namespaces that it makes and comes back. If it cannot come back it is of
 * no use to anybody and exits: sandboxd sees that.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "init.h"
#include "mount.h"
#include "net.h"
#include "overlay.h"
#include "sbx/fs.h"
#include "sbx/sys.h"
#include "spawn.h"

#define TTY_GROUP 5 /* "tty" in every distribution's /etc/group */

struct sbx_slot {
	uint32_t number;
	bool mounted; /* /o/<number> is there */
	struct sbx_ns_set ns;
	int init_pidfd; /* -EBADF while PREPARED */
	uint32_t *layers;
	size_t n_layers; /* whose users count this slot */
};

static const struct {
	const char *path;
	mode_t mode;
} private_tmpfs[] = {
	{"/tmp", 01777},
	{"/var/tmp", 01777},
	{"/run", 0755},
	{"/dev/shm", 01777},
	{"/root", 0700},
};

static void ns_set_done(struct sbx_ns_set *set)
{
	sbx_fd_close(&set->mnt);
	sbx_fd_close(&set->ipc);
	sbx_fd_close(&set->uts);
	sbx_fd_close(&set->net);
}

static void slot_free(struct sbx_spawn *spawn, struct sbx_slot *slot)
{
	for (size_t i = 0; i < slot->n_layers; i++)
		spawn->layer_users[slot->layers[i]]--;
	ns_set_done(&slot->ns);
	sbx_fd_close(&slot->init_pidfd);
	free(slot->layers);
	free(slot);
}

static int attach_tmpfs(const struct sbx_spawn *spawn, struct sbx_err *err)
{
	const struct sbx_spawner_config *config = spawn->config;

	for (size_t i = 0; i < SBX_N_ELEMENTS(private_tmpfs); i++) {
		SBX_CLOSE int tree = -EBADF;
		int r;

		r = sbx_mount_tmpfs(config->tmp_bytes, private_tmpfs[i].mode, config->id_base,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree, err);
		if (r >= 0)
			r = sbx_mount_attach(tree, AT_FDCWD, private_tmpfs[i].path, err);
		if (r < 0)
			return sbx_err_wrap(err, r, "%s", private_tmpfs[i].path);
	}
	return 0;
}

static int attach_devpts(const struct sbx_spawn *spawn, struct sbx_err *err)
{
	SBX_CLOSE int tree = -EBADF;
	char gid[16], max[16];
	const struct sbx_mount_option options[] = {
		{"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", gid},
		{"max", max}, /* all sessions of the host share kernel.pty.max */
	};
	int r;

	(void)snprintf(gid, sizeof(gid), "%u", spawn->config->id_base + TTY_GROUP);
	(void)snprintf(max, sizeof(max), "%d", 2 * SBX_INIT_COMMANDS_MAX);
	r = sbx_mount_new("devpts", options, SBX_N_ELEMENTS(options),
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &tree, err);
	if (r < 0)
		return r;
	return sbx_mount_attach(tree, AT_FDCWD, "/dev/pts", err);
}

/* root_at is in the template, unless one of the private tmpfs covers it. */
static int attach_workspace(const struct sbx_spawn *spawn, int overlay, struct sbx_err *err)
{
	const char *root_at = spawn->config->root_at;
	int r;

	if (faccessat(AT_FDCWD, root_at, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
		SBX_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (root < 0)
			return sbx_err_set(err, errno, "open the session's root: %m");
		r = sbx_mount_make_dirs(root, root_at, err);
		if (r < 0)
			return r;
	}
	return sbx_mount_attach(overlay, AT_FDCWD, root_at, err);
}

/* In the session's new namespaces. */
static int fill_namespaces(struct sbx_spawn *spawn, int overlay, struct sbx_err *err)
{
	const struct sbx_spawner_config *config = spawn->config;
	int r;

	r = attach_tmpfs(spawn, err);
	if (r >= 0)
		r = attach_devpts(spawn, err);
	if (r >= 0)
		r = attach_workspace(spawn, overlay, err);
	if (r < 0)
		return r;
	if (sethostname(config->sandbox_id, strlen(config->sandbox_id)) < 0)
		return sbx_err_set(err, errno, "set the host name: %m");
	if (config->network != SBX_NETWORK_HOST)
		return sbx_net_ready(spawn->proc_fd, config->id_base, err);
	return 0;
}

static int open_namespaces(
	const struct sbx_spawn *spawn, struct sbx_ns_set *ret, struct sbx_err *err)
{
	int r;

	r = sbx_spawn_open_ns(spawn, "mnt", &ret->mnt, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "ipc", &ret->ipc, err);
	if (r >= 0)
		r = sbx_spawn_open_ns(spawn, "uts", &ret->uts, err);
	if (r >= 0 && spawn->config->network != SBX_NETWORK_HOST)
		r = sbx_spawn_open_ns(spawn, "net", &ret->net, err);
	return r;
}

static void come_home(const struct sbx_spawn *spawn)
{
	if (setns(spawn->home.mnt, CLONE_NEWNS) < 0 || setns(spawn->home.ipc, CLONE_NEWIPC) < 0 ||
		setns(spawn->home.uts, CLONE_NEWUTS) < 0 ||
		setns(spawn->home.net, CLONE_NEWNET) < 0)
		_exit(EXIT_FAILURE);
}

static int make_namespaces(struct sbx_spawn *spawn, struct sbx_slot *slot, struct sbx_err *err)
{
	int flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	SBX_CLOSE int overlay = -EBADF;
	char path[SBX_OVERLAY_PATH_SIZE];
	int r;

	if (spawn->config->network != SBX_NETWORK_HOST)
		flags |= CLONE_NEWNET;
	sbx_overlay_path(slot->number, path);
	r = sbx_mount_clone(AT_FDCWD, path, 0, &overlay, err);
	if (r < 0)
		return r;
	if (setns(spawn->template_ns, CLONE_NEWNS) < 0)
		return sbx_err_set(err, errno, "enter the template namespace: %m");
	if (unshare(flags) < 0)
		r = sbx_err_set(err, errno, "make the session's namespaces: %m");
	if (r >= 0)
		r = fill_namespaces(spawn, overlay, err);
	if (r >= 0)
		r = open_namespaces(spawn, &slot->ns, err);
	come_home(spawn);
	return r;
}

static int slot_new(struct sbx_spawn *spawn, uint32_t number, const uint32_t *layers,
	size_t n_layers, struct sbx_slot **ret, struct sbx_err *err)
{
	struct sbx_slot *slot;

	for (size_t i = 0; i < n_layers; i++)
		if (layers[i] >= SBX_SPAWN_NAMES_MAX || !spawn->layer_users[layers[i]])
			return sbx_err_set(
				err, ENOENT, "layer number %u is not attached", layers[i]);
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return sbx_err_set(err, ENOMEM, "slot %u: %m", number);
	slot->number = number;
	slot->ns = SBX_NS_SET_EMPTY;
	slot->init_pidfd = -EBADF;
	slot->layers = calloc(n_layers, sizeof(layers[0]));
	if (!slot->layers) {
		slot_free(spawn, slot);
		return sbx_err_set(err, ENOMEM, "slot %u: %m", number);
	}
	memcpy(slot->layers, layers, n_layers * sizeof(layers[0]));
	slot->n_layers = n_layers;
	for (size_t i = 0; i < n_layers; i++)
		spawn->layer_users[layers[i]]++;
	*ret = slot;
	return 0;
}

static int slot_fill(struct sbx_spawn *spawn, struct sbx_slot *slot, const char *session_dir,
	int *ret_fd, struct sbx_err *err)
{
	char path[SBX_OVERLAY_PATH_SIZE];
	int r, fd;

	r = sbx_overlay_mount(spawn, slot->number, session_dir, slot->layers, slot->n_layers, err);
	if (r < 0)
		return r;
	slot->mounted = true;
	r = make_namespaces(spawn, slot, err);
	if (r < 0)
		return r;
	sbx_overlay_path(slot->number, path);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open the session's root: %m");
	*ret_fd = fd;
	return 0;
}

int sbx_slot_prepare(struct sbx_spawn *spawn, uint32_t number, const char *session_dir,
	const uint32_t *layers, size_t n_layers, int *ret_fd, struct sbx_err *err)
{
	struct sbx_slot *slot = NULL;
	int r;

	if (number >= SBX_SPAWN_SLOTS_MAX || !sbx_id_valid(session_dir) || n_layers < 1 ||
		n_layers > SBX_SPAWN_LAYERS_MAX)
		return sbx_err_set(err, EINVAL, "slot %u: bad number, directory or layers", number);
	if (spawn->slots[number])
		return sbx_err_set(err, EEXIST, "slot %u is in use", number);
	r = slot_new(spawn, number, layers, n_layers, &slot, err);
	if (r < 0)
		return r;
	r = slot_fill(spawn, slot, session_dir, ret_fd, err);
	if (r < 0) {
		ns_set_done(&slot->ns);
		if (slot->mounted)
			(void)sbx_overlay_unmount(number, NULL); /* the first failure is told */
		slot_free(spawn, slot);
		return sbx_err_wrap(err, r, "session %s", session_dir);
	}
	spawn->slots[number] = slot;
	return 0;
}

/* The slot, unless there is none or its init still lives. */
static int find_idle(
	struct sbx_spawn *spawn, uint32_t number, struct sbx_slot **ret, struct sbx_err *err)
{
	struct sbx_slot *slot = number < SBX_SPAWN_SLOTS_MAX ? spawn->slots[number] : NULL;

	if (!slot)
		return sbx_err_set(err, ENOENT, "there is no slot %u", number);
	if (slot->init_pidfd >= 0) {
		struct pollfd dead = {.fd = slot->init_pidfd, .events = POLLIN};

		if (poll(&dead, 1, 0) != 1)
			return sbx_err_set(err, EBUSY, "the init of slot %u still lives", number);
	}
	*ret = slot;
	return 0;
}

int sbx_slot_run(struct sbx_spawn *spawn, uint32_t number, int control_fd, int cgroup_fd,
	int *ret_pidfd, struct sbx_err *err)
{
	int pidfd = -EBADF, copy;
	struct clone_args args = {
		.flags = CLONE_NEWPID | CLONE_PIDFD,
		.exit_signal = SIGCHLD,
		.pidfd = (uintptr_t)&pidfd,
	};
	struct sbx_slot *slot;
	pid_t pid;
	int r;

	r = find_idle(spawn, number, &slot, err);
	if (r < 0)
		return r;
	if (slot->init_pidfd >= 0 || slot->ns.mnt < 0)
		return sbx_err_set(err, EALREADY, "slot %u has run and was not renewed", number);
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	pid = sbx_sys_clone3(&args);
	if (pid < 0)
		return sbx_err_set(err, -pid, "start the session's init: %m");
	if (pid == 0)
		sbx_init_main(&(struct sbx_init_setup){
			.ns = slot->ns,
			.user_ns = spawn->user_ns,
			.control_fd = control_fd,
			.lock_fd = spawn->config->lock_fd,
			.id_base = spawn->config->id_base,
			.root_at = spawn->config->root_at,
			.filter = spawn->filter,
		});
	slot->init_pidfd = pidfd;
	copy = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0) {
		r = sbx_err_set(err, errno, "duplicate init's descriptor: %m");
		(void)sbx_sys_pidfd_signal(pidfd, SIGKILL); /* nobody would know of it */
		return r;
	}
	*ret_pidfd = copy;
	return 0;
}

int sbx_slot_renew(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err)
{
	struct sbx_slot *slot;
	int r;

	r = find_idle(spawn, number, &slot, err);
	if (r < 0)
		return r;
	ns_set_done(&slot->ns);
	sbx_fd_close(&slot->init_pidfd);
	r = make_namespaces(spawn, slot, err);
	if (r < 0)
		ns_set_done(&slot->ns); /* RUN refuses it then */
	return r;
}

int sbx_slot_drop(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err)
{
	struct sbx_slot *slot;
	int r;

	r = find_idle(spawn, number, &slot, err);
	if (r < 0)
		return r;
	ns_set_done(&slot->ns);
	r = sbx_overlay_unmount(number, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "slot %u", number);
	slot_free(spawn, slot);
	spawn->slots[number] = NULL;
	return 0;
}
