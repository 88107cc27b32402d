/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sbx/json.h"

int sbx_target_init(struct sbx_target *target, struct sbx_job *job, struct sbx_err *err)
{
	int r;

	r = sbx_job_path(job, target->path, err);
	if (r < 0)
		return r;
	if (job->fd >= 0) {
		target->session_fd = job->fd;
		return 0;
	}
	return sbx_job_view(job, "head", &target->view, err);
}

void sbx_target_done(struct sbx_target *target)
{
	sbx_view_free(target->view);
	target->view = NULL;
}

static const char *shown(const char *path)
{
	return *path ? path : ".";
}

int sbx_target_explain(const char *path, int r, struct sbx_err *err)
{
	path = shown(path);
	switch (-r) {
	case ENOENT:
	case ENOTDIR:
		return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
			"there is no file '%s' in the workspace; look for it with exec_command "
			"\"ls\" or \"find\"",
			path);
	case ELOOP:
		return sbx_err_kind(err, SBX_KIND_INVALID, ELOOP,
			"path '%s' goes through a symbolic link, which file tools do not follow; "
			"give the path that the link leads to",
			path);
	case EXDEV:
		return sbx_err_kind(err, SBX_KIND_INVALID, EXDEV,
			"path '%s' lies on another mount than the workspace; use exec_command",
			path);
	case ENAMETOOLONG:
		return sbx_err_kind(
			err, SBX_KIND_INVALID, ENAMETOOLONG, "path '%s' is too long", path);
	case EAGAIN:
		return sbx_err_kind(err, SBX_KIND_BUSY, EAGAIN,
			"a command holds a lease on '%s'; try again when it is done with the file",
			path);
	default:
		return sbx_err_set(err, -r, "open '%s': %m", path);
	}
}

static int refuse_link(const char *path, int path_fd, struct sbx_err *err)
{
	char to[256];
	ssize_t n = readlinkat(path_fd, "", to, sizeof(to));
	bool tell = n > 0 && (size_t)n < sizeof(to) && sbx_utf8_valid(to, (size_t)n) &&
		    !memchr(to, '\n', (size_t)n);

	return sbx_err_kind(err, SBX_KIND_INVALID, ELOOP,
		"path '%s' is a symbolic link%s%.*s%s, which file tools do not follow; give the "
		"path that it leads to",
		path, tell ? " to '" : "", tell ? (int)n : 0, to, tell ? "'" : "");
}

int sbx_target_refuse(const char *path, int path_fd, mode_t mode, struct sbx_err *err)
{
	const char *kind = sbx_fs_kind_name(mode);

	path = shown(path);
	if (S_ISLNK(mode))
		return refuse_link(path, path_fd, err);
	if (S_ISDIR(mode))
		return sbx_err_kind(err, SBX_KIND_INVALID, EISDIR,
			"path '%s' is a directory, not a regular file; name a file in it", path);
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
		"path '%s' is %s, not a regular file; use exec_command for it", path, kind);
}

/*
 * O_PATH opens nothing: no FIFO waits, no device stirs, no lease breaks, and a symbolic link at
 * the end is held as itself.
 */
static int open_path(const struct sbx_target *target)
{
	if (target->view)
		return sbx_view_openat(target->view, target->path, O_PATH);
	return sbx_fs_open_beneath(target->session_fd, target->path, O_PATH, 0, 0);
}

/* Opens the very file that path_fd holds. */
static int reopen(int path_fd)
{
	char name[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	int fd;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int sbx_target_open(
	const struct sbx_target *target, int *ret_fd, struct stat *ret_st, struct sbx_err *err)
{
	SBX_CLOSE int path_fd = open_path(target);
	struct stat st;
	int fd;

	if (path_fd < 0)
		return sbx_target_explain(target->path, path_fd, err);
	if (fstat(path_fd, &st) < 0)
		return sbx_err_set(err, errno, "stat '%s': %m", target->path);
	if (!S_ISREG(st.st_mode))
		return sbx_target_refuse(target->path, path_fd, st.st_mode, err);
	fd = reopen(path_fd);
	if (fd < 0)
		return sbx_target_explain(target->path, fd, err);
	*ret_fd = fd;
	*ret_st = st;
	return 0;
}
