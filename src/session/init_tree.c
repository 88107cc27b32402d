/* SPDX-License-Identifier: MIT */
/*
 * One command's processes, by looking at /proc: those in the terminal session that its shell
 * leads, and descendants of any of these (setsid(2) leaves the session, not the parent). What a
 * signal has met is remembered, so that the next one finds it also as an orphan. What had left
 * both before the first signal is out of reach; it ends with the session.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "init.h"

#define PROCESSES_MAX 65536 /* looked at in one go; more than RLIMIT_NPROC lets a session have */
#define FREEZE_ROUNDS 64    /* each meets only children that were forked during the one before */

struct process {
	pid_t pid, parent, session;
	uint64_t started; /* clock ticks since boot */
	bool member, frozen;
};

struct snapshot {
	struct process *list;
	size_t n;
};

/* proc_pid_stat(5): "pid (comm) state ppid pgrp session ... starttime(22)"; comm may hold
 * anything. Zombies only wait to be reaped: they count as gone. */
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
	return end &&
	       sscanf(end + 1,
		       " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		       "%" SCNu64,
		       &state, &ret->parent, &ret->session, &ret->started) == 4 &&
	       state != 'Z' && state != 'X' && ret->pid != 1;
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

/* The shell's number may be a later session's once it is gone: then only in its own name. */
static bool in_terminal_session(
	const struct snapshot *s, const struct sbx_init_tree *tree, const struct process *p)
{
	const struct process *leader = find(s, tree->leader);

	if (p->session != tree->leader)
		return false;
	return !leader || !tree->n || leader->started == tree->members[0].started;
}

static void mark_roots(struct snapshot *s, const struct sbx_init_tree *tree)
{
	for (size_t i = 0; i < s->n; i++)
		s->list[i].member = in_terminal_session(s, tree, &s->list[i]);
	for (size_t i = 0; i < tree->n; i++) {
		struct process *p = find(s, tree->members[i].pid);

		if (p && p->started == tree->members[i].started)
			p->member = true;
	}
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

/* The shell first, if it still is there: in_terminal_session() looks at it. */
static void remember(struct sbx_init_tree *tree, const struct snapshot *s)
{
	struct sbx_init_member *members = calloc(s->n + 1, sizeof(*members));
	size_t n = 1;

	if (!members)
		return; /* the list from before still is good for something */
	if (tree->n)
		members[0] = tree->members[0];
	for (size_t i = 0; i < s->n; i++) {
		const struct process *p = &s->list[i];

		if (p->member && p->pid == tree->leader)
			members[0] = (struct sbx_init_member){p->pid, p->started};
		else if (p->member)
			members[n++] = (struct sbx_init_member){p->pid, p->started};
	}
	free(tree->members);
	tree->members = members;
	tree->n = n;
}

static int meet(struct sbx_init_tree *tree, struct snapshot *ret)
{
	int r = snapshot_take(ret);

	if (r < 0)
		return r;
	mark_roots(ret, tree);
	mark_descendants(ret);
	remember(tree, ret);
	return 0;
}

/* A stopped process does not fork: when a round meets nobody new, all are there. */
static void freeze(struct sbx_init_tree *tree)
{
	size_t n_before = 0;

	for (int round = 0; round < FREEZE_ROUNDS; round++) {
		struct snapshot s;
		size_t n = 0;

		if (meet(tree, &s) < 0)
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

void sbx_init_tree_signal(struct sbx_init_tree *tree, int sig)
{
	struct snapshot s;

	if (sig == SIGKILL)
		freeze(tree);
	if (meet(tree, &s) < 0) {
		(void)kill(-tree->leader, sig); /* no memory: the shell's own group at least */
		return;
	}
	for (size_t i = 0; i < s.n; i++)
		if (s.list[i].member)
			(void)kill(s.list[i].pid, sig);
	free(s.list);
}

bool sbx_init_tree_gone(struct sbx_init_tree *tree)
{
	struct snapshot s;
	bool gone = true;

	if (snapshot_take(&s) < 0)
		return false; /* then the grace is waited for */
	mark_roots(&s, tree);
	for (size_t i = 0; i < s.n; i++)
		gone = gone && !s.list[i].member;
	free(s.list);
	return gone;
}

void sbx_init_tree_done(struct sbx_init_tree *tree)
{
	free(tree->members);
	*tree = (struct sbx_init_tree){0};
}
