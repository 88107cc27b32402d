/* SPDX-License-Identifier: MIT */
/*
 * One command's processes, by looking at /proc: those in the terminal session that its shell
 * leads, and descendants of any of these (setsid(2) leaves the session, not the parent). What has
 * left both is out of reach of a signal; it ends with the session.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "init.h"

#define PROCESSES_MAX 65536 /* looked at in one go; more than RLIMIT_NPROC lets a session have */

struct process {
	pid_t pid, parent, session;
	bool member;
};

/* proc_pid_stat(5): "pid (comm) state ppid pgrp session ..."; comm may hold anything. */
static bool read_process(int proc_fd, const char *name, struct process *ret)
{
	char path[64], text[512];
	SBX_CLOSE int fd = -EBADF;
	const char *end;
	ssize_t n;
	int group;

	(void)snprintf(path, sizeof(path), "%.32s/stat", name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	end = strrchr(text, ')');
	ret->member = false;
	ret->pid = (pid_t)strtol(text, NULL, 10);
	return end && sscanf(end + 1, " %*c %d %d %d", &ret->parent, &group, &ret->session) == 3;
}

static size_t list_processes(struct process *ret, size_t max)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	if (!proc)
		return 0;
	while (n < max && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			read_process(dirfd(proc), entry->d_name, &ret[n]))
			n++;
	(void)closedir(proc); /* only read from */
	return n;
}

static bool is_member(const struct process *list, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].pid == pid)
			return list[i].member;
	return false;
}

/* Marks until nothing changes: a child may be listed before its parent. */
static void mark_members(struct process *list, size_t n, pid_t leader)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < n; i++) {
			struct process *p = &list[i];

			if (p->member || p->pid == 1)
				continue;
			if (p->pid == leader || p->session == leader ||
				(p->parent != 1 && is_member(list, n, p->parent)))
				p->member = changed = true;
		}
	}
}

void sbx_init_signal_tree(pid_t pid, int sig)
{
	struct process *list = calloc(PROCESSES_MAX, sizeof(*list));
	size_t n;

	if (!list) {
		(void)kill(-pid, sig); /* no memory: the shell's own group at least */
		return;
	}
	n = list_processes(list, PROCESSES_MAX);
	mark_members(list, n, pid);
	for (size_t i = 0; i < n; i++)
		if (list[i].member)
			(void)kill(list[i].pid, sig); /* it may be gone already */
	free(list);
}
