/* SPDX-License-Identifier: MIT */
#include "userns.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "sbx/fs.h"
#include "sbx/sys.h"

static int write_map(int proc_fd, pid_t pid, const char *name, uid_t id_base, struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	char path[64], text[64];
	int r;

	(void)snprintf(path, sizeof(path), "%d/%s", pid, name);
	(void)snprintf(text, sizeof(text), "0 %u %u\n", id_base, SBX_USERNS_IDS);
	fd = openat(proc_fd, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open %s of the user namespace: %m", name);
	r = sbx_fs_write_all(fd, text, strlen(text));
	if (r < 0)
		return sbx_err_set(err, -r, "write %s of the user namespace: %m", name);
	return 0;
}

static int map_and_open(int proc_fd, pid_t pid, uid_t id_base, int *ret_fd, struct sbx_err *err)
{
	char path[64];
	int r;

	r = write_map(proc_fd, pid, "uid_map", id_base, err);
	if (r < 0)
		return r;
	r = write_map(proc_fd, pid, "gid_map", id_base, err);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%d/ns/user", pid);
	r = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (r < 0)
		return sbx_err_set(err, errno, "open the user namespace: %m");
	*ret_fd = r;
	return 0;
}

int sbx_userns_new(int proc_fd, uid_t id_base, int *ret_fd, struct sbx_err *err)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	SBX_CLOSE int gate_read = -EBADF, gate_write = -EBADF;
	int gate[2], r;
	pid_t pid;

	if (id_base < SBX_USERNS_IDS || id_base > UINT32_MAX - SBX_USERNS_IDS)
		return sbx_err_set(err, ERANGE,
			"id range %u.. overlaps the host's own ids or ends beyond 2^32: choose "
			"another base",
			id_base);
	if (pipe2(gate, O_CLOEXEC) < 0)
		return sbx_err_set(err, errno, "make a pipe: %m");
	gate_read = gate[0];
	gate_write = gate[1];
	pid = sbx_sys_clone3(&args);
	if (pid < 0)
		return sbx_err_set(err, -pid,
			"make a user namespace: %m (is user.max_user_namespaces 0 here?)");
	if (pid == 0) {
		char byte;

		/* The namespace needs a process until its descriptor is open: until then, wait. */
		sbx_fd_close(&gate_write);
		_exit(read(gate_read, &byte, 1) == 0 ? 0 : 1);
	}
	r = map_and_open(proc_fd, pid, id_base, ret_fd, err);
	sbx_fd_close(&gate_write);
	(void)waitpid(pid, NULL, 0); /* it has nothing to tell */
	return r;
}
