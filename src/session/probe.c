/* SPDX-License-Identifier: MIT */
#include "sbx/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "probe_try.h"
#include "sbx/fs.h"
#include "sbx/id.h"

#define WALL(name) (1u << SBX_WALL_##name)

/* In this order: a later row may use what an earlier one has found. */
static const struct row {
	const char *feature;
	int (*try)(struct sbx_probe_context *context, struct sbx_err *err);
	const char *why;
	const char *instead;
	uint32_t walls;
} rows[] = {
	{"kernel 6.1 or later", sbx_try_kernel, "idmapped overlay layers", NULL, 0},
	{"capabilities of root", sbx_try_capabilities, "mounts and namespaces", NULL,
		WALL(IDS) | WALL(NAMESPACES) | WALL(ROOT) | WALL(DEVICES)},
	{"user namespaces", sbx_try_user_namespace, "a private range of ids for each sandbox", NULL,
		WALL(IDS)},
	{"mount namespaces", sbx_try_mount_namespace, "a view of its own for each session", NULL,
		WALL(NAMESPACES) | WALL(ROOT)},
	{"pid, ipc, uts and cgroup namespaces", sbx_try_other_namespaces,
		"sessions that cannot see each other", NULL, WALL(NAMESPACES)},
	/* before the probe leaves the host's network */
	{"IPv4 forwarding", sbx_try_forwarding, "network bridge",
		"sandboxes with network bridge do not start", 0},
	{"name servers", sbx_try_resolver, "names inside sandboxes with network bridge",
		"names are not resolved there; addresses can be reached", 0},
	{"network namespaces", sbx_try_network, "network none and bridge",
		"only sandboxes with network host can start", WALL(NETWORK)},
	{"bridge, veth and nftables", sbx_try_bridge, "network bridge",
		"sandboxes with network bridge do not start", WALL(BRIDGE)},
	{"mount descriptors (fsopen, open_tree)", sbx_try_mount_descriptors,
		"building a root file system out of sight", NULL, WALL(ROOT)},
	{"/proc of a pid namespace", sbx_try_proc, "processes that see only their own session",
		NULL, WALL(DEVICES)},
	{"overlayfs", sbx_try_overlay, "sessions on shared layers", NULL, 0},
	{"overlayfs option lowerdir+", sbx_try_lowerdir_plus, "layer stacks of any length",
		"the classic option string, which holds as many layers as fit a page", 0},
	{"idmapped mounts of the state directory", sbx_try_idmap,
		"files on disk keep the ids that they have inside", NULL, WALL(IDS)},
	{"overlays of idmapped directories", sbx_try_idmapped_overlay,
		"sessions whose root is nobody on the host; root file systems of their own", NULL,
		WALL(IDS)},
	{"trusted attributes on the state directory", sbx_try_trusted,
		"overlay marks that a session cannot forge", NULL, WALL(MARKS)},
	{"reflinks on the state directory", sbx_try_reflink, "importing a project without copying",
		"files are copied", 0},
	{"clone3 with pidfd", sbx_try_clone3, "waiting for a session without a race", NULL,
		WALL(INIT)},
	{"openat2", sbx_try_openat2, "opening what a command made without following links", NULL,
		WALL(FILES)},
	{"giving up capabilities", sbx_try_drop_capabilities,
		"sessions whose root administers nothing", NULL, WALL(CAPABILITIES) | WALL(INIT)},
	{"system call filters", sbx_try_seccomp, "keeping sessions from most of the kernel", NULL,
		WALL(CALLS)},
	{"the system call policy", sbx_try_policy, "what sessions may ask of the kernel", NULL,
		WALL(CALLS)},
	{"sealed memory files", sbx_try_sealing, "handing command texts to sessions", NULL,
		WALL(INIT)},
	{"private devpts", sbx_try_devpts, "terminals of commands", NULL, WALL(DEVICES)},
	{"/bin/bash", sbx_try_bash, "running commands", "/bin/sh runs them", 0},
	{"limits of memory, processes and CPU", sbx_try_limits,
		"sessions that leave something to others",
		"sessions run without; a sandbox created with a missing limit does not start",
		WALL(LIMITS)},
	{"cgroup v2", sbx_try_cgroup2, "control groups that processes are born into",
		"the controllers of cgroup v1, where they are mounted", 0},
	{"cgroup.kill", sbx_try_cgroup_kill, "emptying a control group before it is removed",
		"one that is not empty is removed later", 0},
	{"security modules (LSM)", sbx_try_lsm, "nothing: sbx builds its walls itself",
		"none is told of; none is needed", 0},
};
_Static_assert(SBX_N_ELEMENTS(rows) <= SBX_PROBES_MAX, "each row has its place in the answer");

const char *sbx_probe_state_name(enum sbx_probe_state state)
{
	static const char *const names[] = {
		[SBX_PROBE_PRESENT] = "present",
		[SBX_PROBE_INSTEAD] = "instead",
		[SBX_PROBE_MISSING] = "missing",
	};

	return (size_t)state < SBX_N_ELEMENTS(names) ? names[state] : "missing";
}

static void try_row(const struct row *row, struct sbx_probe_context *context, struct sbx_probe *ret)
{
	struct sbx_err err = SBX_ERR_INIT;
	int r;

	context->detail[0] = '\0';
	r = row->try(context, &err);
	(void)snprintf(
		ret->detail, sizeof(ret->detail), "%.199s", r < 0 ? err.message : context->detail);
	if (r >= 0)
		ret->state = SBX_PROBE_PRESENT;
}

/* A scratch directory with everything that the rows want to find in it. */
static int make_scratch(int state_fd, const char *name, int *ret_fd, struct sbx_err *err)
{
	static const char *const directories[] = {
		"lower", "upper", "work", "merged", "mapped", "mapped/upper", "mapped/work"};
	SBX_CLOSE int fd = -EBADF;

	if (mkdirat(state_fd, name, 0700) < 0)
		return sbx_err_set(err, errno, "make a scratch directory: %m");
	fd = openat(state_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open the scratch directory: %m");
	for (size_t i = 0; i < SBX_N_ELEMENTS(directories); i++)
		if (mkdirat(fd, directories[i], 0755) < 0)
			return sbx_err_set(err, errno, "make %s: %m", directories[i]);
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

static _Noreturn void try_all(
	int state_fd, const char *scratch, const char *policy, struct sbx_probe *ret)
{
	struct sbx_probe_context context = {
		.state_fd = state_fd,
		.scratch_fd = openat(state_fd, scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.user_ns = -EBADF,
		.policy = policy,
	};

	(void)signal(SIGCHLD, SIG_DFL); /* rows wait for children of theirs */
	if (fchdir(context.scratch_fd) < 0)
		_exit(EXIT_FAILURE);
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++)
		try_row(&rows[i], &context, &ret[i]);
	_exit(EXIT_SUCCESS);
}

static int run_child(int state_fd, const char *scratch, const char *policy,
	struct sbx_probe *shared, struct sbx_err *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return sbx_err_set(err, errno, "fork: %m");
	if (pid == 0)
		try_all(state_fd, scratch, policy, shared);
	while (waitpid(pid, NULL, 0) < 0)
		if (errno != EINTR)
			return sbx_err_set(err, errno, "wait for the probe: %m");
	return 0; /* rows that a dying child did not reach stay as they were set up */
}

static void set_up_rows(struct sbx_probe *ret)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(rows); i++)
		ret[i] = (struct sbx_probe){
			.feature = rows[i].feature,
			.why = rows[i].why,
			.instead = rows[i].instead,
			.walls = rows[i].walls,
			.state = rows[i].instead ? SBX_PROBE_INSTEAD : SBX_PROBE_MISSING,
			.detail = "could not be tried",
		};
}

int sbx_probe_all(int state_fd, const char *policy, struct sbx_probe ret[static SBX_PROBES_MAX],
	size_t *ret_n, struct sbx_err *err)
{
	const size_t size = SBX_PROBES_MAX * sizeof(ret[0]);
	char scratch[SBX_ID_SIZE];
	struct sbx_probe *shared;
	SBX_CLOSE int fd = -EBADF;
	int r, removed;

	r = sbx_id_new("probe", scratch);
	if (r < 0)
		return sbx_err_set(err, -r, "name a scratch directory: %m");
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return sbx_err_set(err, errno, "share memory with the probe: %m");
	set_up_rows(shared);
	r = make_scratch(state_fd, scratch, &fd, err);
	if (r >= 0)
		r = run_child(state_fd, scratch, policy, shared, err);
	removed = sbx_fs_remove_tree(state_fd, scratch);
	if (r >= 0 && removed < 0)
		r = sbx_err_set(err, -removed, "remove %s: %m", scratch);
	if (r >= 0) {
		memcpy(ret, shared, size);
		*ret_n = SBX_N_ELEMENTS(rows);
	}
	(void)munmap(shared, size); /* cannot fail for a mapping of ours */
	return r;
}
