/* SPDX-License-Identifier: MIT */
/*
 * Destroying a sandbox. The order matters:
 *   1. sandboxd is asked to end. It refuses while commands run or managed sessions exist, unless
 *      forced. It is started for that when it does not run: only it knows what a crash left.
 *   2. The lock that sandboxd, its spawner and every session hold is waited for: nothing of the
 *      sandbox is mounted any more.
 *   3. The directory is renamed to a hidden name: the id is free and no client finds it.
 *   4. It is removed. A removal that was interrupted is finished by the next destroy.
 *   5. What is shared by sandboxes on the bridge goes with the last of them.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>

#include "sbx/cgroup.h"
#include "sbx/client.h"
#include "sbx/fs.h"
#include "sbx/network.h"
#include "sbx/sock.h"
#include "sbx/store.h"

#include "local.h"

#define TRASH_PREFIX   ".destroyed-"
#define LOCK_TIMEOUT_S 30

static int call_stop(
	const char *id, bool force, struct json_object **ret_details, struct sbx_err *err)
{
	SBX_JSON struct json_object *args = json_object_new_object();
	SBX_JSON struct json_object *result = NULL;
	SBX_CLOSE int fd = -EBADF;
	int r;

	if (!args)
		return sbx_err_set(err, ENOMEM, "stop sandboxd: %m");
	sbx_json_add_string(args, "sandbox_id", id);
	if (force)
		sbx_json_add_bool(args, "force", true);
	r = sbx_client_connect(id, &fd, err);
	if (r < 0)
		return r;
	return sbx_client_call(fd, "stop", args, NULL, NULL, &result, ret_details, err);
}

static bool is_running(int sandbox_fd)
{
	SBX_CLOSE int fd = -EBADF;

	return sbx_sock_connect(sandbox_fd, SANDBOXD_SOCKET, &fd) == 0;
}

/* A forced destroy must also work on a sandbox whose daemon cannot start any more. */
static int stop_daemon(int sandbox_fd, const char *id, bool force, struct json_object **ret_details,
	struct sbx_err *err)
{
	int r;

	if (force && !is_running(sandbox_fd))
		return 0;
	r = call_stop(id, force, ret_details, err);
	if (r < 0 && err->kind == SBX_KIND_CONNECTION)
		return sbx_err_wrap(
			err, r, "cannot ask whether work is left (--force does not ask)");
	if (r < 0 && err->kind == SBX_KIND_CONFLICT)
		return sbx_err_wrap(err, r, "not destroyed (--force would)");
	return r;
}

static void on_alarm(int sig)
{
	(void)sig; /* it only interrupts flock() */
}

static int lock_for_good(int sandbox_fd, int *ret_fd, struct sbx_err *err)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval limit = {.it_value.tv_sec = LOCK_TIMEOUT_S, .it_interval.tv_sec = 1};
	struct itimerval none = {0};
	SBX_CLOSE int fd =
		openat(sandbox_fd, SANDBOXD_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return sbx_err_set(err, errno, "open " SANDBOXD_LOCK ": %m");
	if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &limit, NULL) < 0)
		return sbx_err_set(err, errno, "set a time limit: %m");
	r = flock(fd, LOCK_EX) < 0 ? -errno : 0;
	(void)setitimer(ITIMER_REAL, &none, NULL); /* cannot fail with a valid timer */
	if (r == -EINTR)
		return sbx_err_set(err, ETIMEDOUT,
			"processes of the sandbox still run after %d s; see /proc/locks for who "
			"holds "
			"its " SANDBOXD_LOCK,
			LOCK_TIMEOUT_S);
	if (r < 0)
		return sbx_err_set(err, -r, "lock the sandbox: %m");
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

static int hide(int state_fd, const char *id, struct sbx_err *err)
{
	char trash_id[SBX_ID_SIZE], name[sizeof(TRASH_PREFIX) + SBX_ID_SIZE];
	int r = sbx_id_new(SBX_ID_SANDBOX, trash_id);

	if (r < 0)
		return sbx_err_set(err, -r, "make a name: %m");
	(void)snprintf(name, sizeof(name), TRASH_PREFIX "%s", trash_id);
	if (renameat(state_fd, id, state_fd, name) < 0)
		return sbx_err_set(err, errno, "rename the sandbox %s: %m", id);
	return 0;
}

/* Removes what this and interrupted destroys have hidden. */
static int empty_trash(int state_fd, struct sbx_err *err)
{
	SBX_CLOSE int dir_fd = openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	int r = 0;

	if (!dir)
		return sbx_err_set(err, errno, "list the state directory: %m");
	(void)sbx_fd_take(&dir_fd); /* closedir() closes it */
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (strncmp(entry->d_name, TRASH_PREFIX, strlen(TRASH_PREFIX)) != 0)
			continue;
		r = sbx_fs_remove_tree(state_fd, entry->d_name);
		if (r == -ENOENT) /* another destroy is at it, too */
			r = 0;
		if (r < 0)
			(void)sbx_err_set(
				err, -r, "remove %s in the state directory: %m", entry->d_name);
	}
	(void)closedir(dir);
	return r;
}

static int open_sandbox(int state_fd, const char *id, int *ret_fd, struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;

	if (sbx_id_valid(id))
		fd = openat(state_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, SANDBOX_OWNER, R_OK, AT_EACCESS) < 0)
		return sbx_client_no_sandbox(id, err);
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int sbx_admin_destroy(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err)
{
	const char *id = sbx_json_string(call->args, "sandbox_id", "");
	SBX_JSON struct json_object *result = json_object_new_object();
	SBX_CLOSE int state_fd = -EBADF, sandbox_fd = -EBADF, lock_fd = -EBADF;
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	int r;

	if (!result)
		return sbx_err_set(err, ENOMEM, "destroy: %m");
	r = sbx_admin_open_state(&path, &state_fd, err);
	if (r == -ENOENT)
		return sbx_client_no_sandbox(id, err);
	if (r == 0)
		r = open_sandbox(state_fd, id, &sandbox_fd, err);
	if (r == 0)
		r = stop_daemon(sandbox_fd, id, sbx_json_bool(call->args, "force", false),
			ret_details, err);
	if (r == 0)
		r = lock_for_good(sandbox_fd, &lock_fd, err);
	if (r == 0)
		sbx_cgroup_sweep(sandbox_fd, id);
	if (r == 0)
		r = hide(state_fd, id, err);
	if (r == 0)
		r = empty_trash(state_fd, err);
	if (r == 0)
		r = sbx_network_sweep(err);
	if (r < 0)
		return r;
	sbx_json_add_string(result, "sandbox_id", id);
	sbx_json_add_bool(result, "destroyed", true);
	*ret_result = sbx_take(&result);
	return 0;
}
