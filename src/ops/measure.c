/* SPDX-License-Identifier: MIT */
/*
 * The job "measure": what a session that runs takes of the disk. Its directory is walked while
 * commands write to it; files that are deleted and still open are in no directory and are found
 * by the descriptors of the session's processes, those in init's pid namespace.
 */
#include "measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sbx/id.h"
#include "sbx/store.h"

#ifndef OVERLAYFS_SUPER_MAGIC
#define OVERLAYFS_SUPER_MAGIC 0x794c7630
#endif

#define WALKS_MAX 4    /* a tree that keeps moving away under the walk: then it is told */
#define SEEN_MAX  4096 /* deleted files that are told apart; more count as often as they are open  \
			*/

/* Deleted files that were counted: several descriptors may hold one. */
struct seen {
	size_t n;
	struct {
		dev_t dev;
		ino_t ino;
	} files[SEEN_MAX];
};

static void close_dirp(DIR **dirp)
{
	if (*dirp)
		(void)closedir(*dirp); /* only read from */
}
#define DIRP SBX_CLEANUP(close_dirp)

static DIR *open_dir(int parent_fd, const char *path)
{
	int fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dirp = fd < 0 ? NULL : fdopendir(fd);

	if (!dirp)
		sbx_fd_close(&fd);
	return dirp;
}

static bool is_new(struct seen *seen, const struct stat *st)
{
	for (size_t i = 0; i < seen->n; i++)
		if (seen->files[i].dev == st->st_dev && seen->files[i].ino == st->st_ino)
			return false;
	if (seen->n < SEEN_MAX) {
		seen->files[seen->n].dev = st->st_dev;
		seen->files[seen->n++].ino = st->st_ino;
	}
	return true;
}

/* In a tmpfs they count as memory, and are no concern of the disk's. */
static bool is_on_overlay(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* A process that ends meanwhile has nothing any more. */
static void count_process(const char *pid, struct seen *seen, struct sbx_usage *usage)
{
	char path[64];
	DIRP DIR *dirp = NULL;
	struct dirent *entry;

	(void)snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dirp = open_dir(AT_FDCWD, path);
	while (dirp && (entry = readdir(dirp))) {
		struct stat st;

		if (fstatat(dirfd(dirp), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode) ||
			st.st_nlink > 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s", pid, entry->d_name);
		if (!is_on_overlay(path) || !is_new(seen, &st))
			continue;
		usage->n_bytes += (uint64_t)st.st_blocks * 512;
		usage->n_inodes++;
	}
}

static int count_deleted(ino_t pid_ns, struct sbx_usage *usage)
{
	SBX_FREE struct seen *seen = calloc(1, sizeof(*seen));
	DIRP DIR *dirp = open_dir(AT_FDCWD, "/proc");
	struct dirent *entry;

	if (!seen || !dirp)
		return -ENOMEM;
	while ((entry = readdir(dirp))) {
		char path[64];
		struct stat st;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "%.16s/ns/pid", entry->d_name);
		if (fstatat(dirfd(dirp), path, &st, 0) == 0 && st.st_ino == pid_ns)
			count_process(entry->d_name, seen, usage);
	}
	return 0;
}

int sbx_job_measure(struct sbx_job *job, struct sbx_err *err)
{
	const char *name = sbx_json_string(job->args, "session_dir", "");
	ino_t pid_ns = (ino_t)sbx_json_int(job->args, "pid_ns", 0);
	struct sbx_usage usage = {0};
	SBX_CLOSE int fd = -EBADF;
	int r = 0;

	if (!sbx_id_valid(name))
		return sbx_err_set(err, EINVAL, "measure: '%.64s' is no session's", name);
	fd = openat(
		job->context->sessions_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open session %s: %m", name);
	for (int i = 0; r == 0 && !usage.complete && i < WALKS_MAX; i++)
		r = sbx_store_usage(fd, &usage, err);
	if (r == 0 && pid_ns) {
		r = count_deleted(pid_ns, &usage);
		if (r < 0)
			(void)sbx_err_set(err, -r, "look at the processes of %s: %m", name);
	}
	if (r < 0)
		return r;
	sbx_json_add_int(job->result, "bytes", (int64_t)usage.n_bytes);
	sbx_json_add_int(job->result, "inodes", (int64_t)usage.n_inodes);
	sbx_json_add_bool(job->result, "complete", usage.complete);
	return 0;
}
