/* SPDX-License-Identifier: MIT */
/* One command's processes, by looking at /proc: all that descend from its keeper (init.h). */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "init.h"

#define PROCESSES_MAX 65536 /* looked at in one go; more than RLIMIT_NPROC lets a session have */
#define FREEZE_ROUNDS 64    /* each meets only children that were forked during the one before */

struct process {
	pid_t pid, parent;
	bool member;
};

struct snapshot {
	struct process *list;
	size_t n;
};

/* proc_pid_stat(5): "pid (comm) state ppid ..."; comm may hold anything. Zombies only wait to be
 * reaped: they count as gone. */
static bool read_process(int proc_fd, const char *name, struct process *ret)
{
	char path[64], text[512], state;
	SBX_CLOSE int fd = -EBADF;
	const char *end;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.32s/stat", name);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	end = strrchr(text, ')');
	*ret = (struct process){.pid = (pid_t)strtol(text, NULL, 10)};
	return end && sscanf(end + 1, " %c %d", &state, &ret->parent) == 2 && state != 'Z' &&
	       state != 'X' && ret->pid != 1;
}

static int snapshot_take(struct snapshot *ret)
{
	struct process *list = calloc(PROCESSES_MAX, sizeof(*list)); /* pages come when touched */
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;

	if (!list || !proc) {
		free(list);
		if (proc)
			(void)closedir(proc); /* only read from */
		return -ENOMEM;
	}
	while (n < PROCESSES_MAX && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			read_process(dirfd(proc), entry->d_name, &list[n]))
			n++;
	(void)closedir(proc);
	*ret = (struct snapshot){list, n};
	return 0;
}

static struct process *find(const struct snapshot *s, pid_t pid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].pid == pid)
			return &s->list[i];
	return NULL;
}

static void mark_roots(struct snapshot *s, pid_t keeper, pid_t shell)
{
	for (size_t i = 0; i < s->n; i++)
		s->list[i].member = keeper ? s->list[i].parent == keeper : s->list[i].pid == shell;
}

/* Until nothing changes: a child may be listed before its parent. */
static void mark_descendants(struct snapshot *s)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < s->n; i++) {
			struct process *p = &s->list[i], *parent;

			if (p->member || p->parent == 1)
				continue;
			parent = find(s, p->parent);
			if (parent && parent->member)
				p->member = changed = true;
		}
	}
}

static int meet(pid_t keeper, pid_t shell, struct snapshot *ret)
{
	int r = snapshot_take(ret);

	if (r < 0)
		return r;
	mark_roots(ret, keeper, shell);
	mark_descendants(ret);
	return 0;
}

/* A stopped process does not fork: when a round meets nobody new, all are there. */
static void freeze(pid_t keeper, pid_t shell)
{
	size_t n_before = 0;

	for (int round = 0; round < FREEZE_ROUNDS; round++) {
		struct snapshot s;
		size_t n = 0;

		if (meet(keeper, shell, &s) < 0)
			return;
		for (size_t i = 0; i < s.n; i++)
			if (s.list[i].member) {
				n++;
				(void)kill(s.list[i].pid, SIGSTOP); /* it may be gone already */
			}
		free(s.list);
		if (n == n_before)
			return;
		n_before = n;
	}
}

void sbx_init_tree_signal(pid_t keeper, pid_t shell, int sig)
{
	struct snapshot s;

	if (sig == SIGKILL)
		freeze(keeper, shell);
	if (meet(keeper, shell, &s) < 0) {
		(void)kill(-shell, sig); /* no memory: the shell's own group at least */
		return;
	}
	for (size_t i = 0; i < s.n; i++)
		if (s.list[i].member)
			(void)kill(s.list[i].pid, sig);
	free(s.list);
}
