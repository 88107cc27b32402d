/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"
#include "sbx/loop.h"
#include "sbx/network.h"
#include "sbx/policy.h"
#include "sbx/rootfs.h"
#include "sbx/store.h"

#include "local.h"
#include "value.h"

#define PROGRESS_INTERVAL_NS (100 * SBX_NSEC_PER_MSEC)

/* One line on standard error, rewritten in place; only on a terminal. */
struct progress {
	bool shown; /* the line is there and has to be ended */
	uint64_t next_ns;
};

static void show_progress(void *data, uint64_t n_entries, uint64_t n_bytes)
{
	SBX_BUF struct sbx_buf size = SBX_BUF_INIT;
	struct progress *progress = data;
	uint64_t now = sbx_now_ns();

	if (now < progress->next_ns || sbx_value_bytes(&size, n_bytes) < 0)
		return;
	progress->next_ns = now + PROGRESS_INTERVAL_NS;
	progress->shown = true;
	(void)fprintf(
		stderr, "\rimporting: %ju entries, %s\033[K", (uintmax_t)n_entries, size.data);
}

static void end_progress(const struct progress *progress)
{
	if (progress->shown)
		(void)fputs("\r\033[K", stderr);
}

/* A directory that the caller named: opened once, and its name without links for people. */
static int open_workspace(
	const char *path, int *ret_fd, char ret_real[static PATH_MAX], struct sbx_err *err)
{
	SBX_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return sbx_err_kind(
			err, SBX_KIND_INVALID, errno, "open the workspace %s: %m", path);
	if (!realpath(path, ret_real))
		return sbx_err_set(err, errno, "resolve the workspace %s: %m", path);
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

static int copy_string(struct json_object *args, const char *key, const char *fallback, char **ret)
{
	*ret = strdup(sbx_json_string(args, key, fallback));
	return *ret ? 0 : -ENOMEM;
}

/* Who ran this: under sudo(8) the person, not root, since it is the person's agents that will use
 * the sandbox. A value that is no uid is not sudo's: then it is root's. */
static uid_t caller(void)
{
	const char *text = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	unsigned long uid;
	char *end;

	if (!text || !*text)
		return getuid();
	errno = 0;
	uid = strtoul(text, &end, 10);
	return errno || *end || uid >= UINT32_MAX ? getuid() : (uid_t)uid;
}

static int fill_sandbox(struct json_object *args, struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	const char *id = sbx_json_string(args, "id", NULL);
	int r;

	if (id && !sbx_id_valid(id))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"'%.64s' cannot be an id: use up to %d of a-z, 0-9, '_', '-' and '.', "
			"not beginning with '-' or '.'",
			id, SBX_ID_MAX);
	if (id)
		(void)strcpy(sandbox->id, id); /* a valid id fits */
	else if ((r = sbx_id_new(SBX_ID_SANDBOX, sandbox->id)) < 0)
		return sbx_err_set(err, -r, "make an id: %m");
	r = copy_string(args, "root_at", "/workspace", &sandbox->root_at);
	if (r == 0)
		r = copy_string(args, "rootfs", SBX_ROOTFS_HOST, &sandbox->rootfs);
	if (r == 0)
		r = copy_string(args, "network", "none", &sandbox->network);
	if (r < 0)
		return sbx_err_set(err, -r, "create %s: %m", sandbox->id);
	sandbox->allow = json_object_get(sbx_json_member(args, "allow"));
	sandbox->owner_uid = caller();
	sandbox->memory_max = (uint64_t)sbx_json_int(args, "memory_max", 0);
	sandbox->pids_max = (uint64_t)sbx_json_int(args, "pids_max", 0);
	sandbox->cpu_max = (uint64_t)sbx_json_int(args, "cpu_max", 0);
	sandbox->disk_max = (uint64_t)sbx_json_int(args, "disk_max", 0);
	sandbox->inodes_max = (uint64_t)sbx_json_int(args, "inodes_max", 0);
	sandbox->history_max = (uint64_t)sbx_json_int(args, "history_max", 0);
	return 0;
}

/* What this version cannot give is refused here, before anything is imported, and not given in
 * part. */
static int check_walls(const struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	int r;

	if (!strcmp(sandbox->network, "bridge")) {
		r = sbx_network_check_forwarding(err);
		if (r < 0)
			return r;
	} else if (sandbox->allow) {
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"--allow goes with --network bridge: with '%s' there is no firewall that "
			"it could open",
			sandbox->network);
	}
	return 0;
}

/* As sandboxd will look at it again. Others than root cannot try its file system; sandboxd does. */
static int check_rootfs(struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	SBX_CLOSE int state_fd = -EBADF, fd = -EBADF;
	SBX_BUF struct sbx_buf state = SBX_BUF_INIT;
	enum sbx_rootfs_flags flags = 0;
	SBX_FREE char *real = NULL;
	int r = 0;

	if (!strcmp(sandbox->rootfs, SBX_ROOTFS_HOST))
		return 0;
	if (sbx_admin_open_state(&state, &state_fd, NULL) < 0) {
		r = sbx_admin_open_nearest_state(&state_fd, err); /* create will make it there */
		flags = SBX_ROOTFS_STATE_ABOVE;
	}
	if (r == 0)
		r = sbx_rootfs_open(sandbox->rootfs, state_fd, flags, &fd, err);
	if (r == 0 && geteuid() == 0)
		r = sbx_rootfs_try(fd, sandbox->rootfs, err);
	if (r < 0)
		return r;
	real = realpath(sandbox->rootfs, NULL); /* no links are left in it, but maybe ".." */
	if (!real)
		return sbx_err_set(err, errno, "resolve %s: %m", sandbox->rootfs);
	free(sandbox->rootfs);
	sandbox->rootfs = sbx_take(&real);
	return 0;
}

/* Copied, so that what becomes of the file later does not matter. */
static int read_policy(struct json_object *args, struct sbx_sandbox *sandbox, struct sbx_buf *ret,
	struct sbx_err *err)
{
	const char *path = sbx_json_string(args, "seccomp", NULL);
	SBX_CLOSE int fd = -EBADF;
	int r;

	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	r = fd < 0 ? -errno : sbx_fs_read_fd(fd, SBX_POLICY_MAX, ret);
	if (r < 0)
		return sbx_err_kind(
			err, SBX_KIND_INVALID, -r, "read the seccomp policy %s: %m", path);
	r = sbx_policy_check(ret->data ? ret->data : "", ret->size, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "seccomp policy %s", path);
	sandbox->seccomp_policy = ret;
	sandbox->seccomp_profile = strdup(path);
	return sandbox->seccomp_profile ? 0 : sbx_err_set(err, ENOMEM, "create: %m");
}

int sbx_admin_create(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox sandbox = {0};
	SBX_JSON struct json_object *report = json_object_new_object();
	SBX_BUF struct sbx_buf state = SBX_BUF_INIT, policy = SBX_BUF_INIT;
	struct progress progress = {.shown = false};
	SBX_CLOSE int source_fd = -EBADF;
	char source[PATH_MAX];
	int r;

	(void)ret_details;
	if (!report)
		return sbx_err_set(err, ENOMEM, "create: %m");
	r = sbx_state_root(&state);
	if (r < 0)
		return sbx_err_set(err, -r, "no place for sandboxes: set SBX_STATE_DIR or HOME");
	r = fill_sandbox(call->args, &sandbox, err);
	if (r == 0)
		r = check_walls(&sandbox, err);
	if (r == 0)
		r = check_rootfs(&sandbox, err);
	if (r == 0)
		r = read_policy(call->args, &sandbox, &policy, err);
	if (r == 0)
		r = open_workspace(
			sbx_json_string(call->args, "workspace", ""), &source_fd, source, err);
	if (r < 0)
		return r;
	sandbox.source = strdup(source);
	if (!sandbox.source)
		return sbx_err_set(err, ENOMEM, "create %s: %m", sandbox.id);
	r = sbx_sandbox_create(state.data, &sandbox, source_fd,
		isatty(STDERR_FILENO) ? show_progress : NULL, &progress, report, err);
	end_progress(&progress);
	if (r == -EEXIST)
		return sbx_err_kind(err, SBX_KIND_CONFLICT, EEXIST,
			"there is a sandbox '%s' already; choose another --id", sandbox.id);
	if (r < 0)
		return r;
	sbx_sandbox_to_json(&sandbox, report);
	*ret_result = sbx_take(&report);
	return 0;
}
