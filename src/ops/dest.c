/* SPDX-License-Identifier: MIT */
#include "dest.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "identity.h"
#include "job_args.h"

/* Supplementary groups count beside the file system ids: root's must not help the caller. */
struct groups {
	gid_t *ids;
	int n;
	bool dropped;
};

static void groups_restore(struct groups *groups)
{
	if (groups->dropped && setgroups((size_t)groups->n, groups->ids) < 0)
		abort(); /* half a root is none */
	sbx_free_pointer(&groups->ids);
}

static int groups_drop(struct groups *groups)
{
	groups->n = getgroups(0, NULL);
	if (groups->n < 0)
		return -errno;
	groups->ids = calloc((size_t)groups->n + 1, sizeof(*groups->ids));
	if (!groups->ids)
		return -ENOMEM;
	groups->n = getgroups(groups->n, groups->ids);
	if (groups->n < 0 || setgroups(0, NULL) < 0)
		return -errno;
	groups->dropped = true;
	return 0;
}

/* What the caller is while one of these is held. */
struct caller {
	struct sbx_identity identity;
	struct groups groups;
};

static void caller_done(struct caller *caller)
{
	sbx_identity_restore(&caller->identity);
	groups_restore(&caller->groups);
}
#define CALLER SBX_CLEANUP(caller_done)

static int caller_init(struct caller *caller, const struct sbx_dest *dest, struct sbx_err *err)
{
	int r;

	if (dest->uid == 0)
		return 0;
	r = groups_drop(&caller->groups);
	if (r < 0)
		return sbx_err_set(err, -r, "drop supplementary groups: %m");
	return sbx_identity_assume(&caller->identity, dest->uid, dest->gid, 0, err);
}

void sbx_dest_done(struct sbx_dest *dest)
{
	sbx_fd_close(&dest->parent_fd);
}

static int open_parent(struct sbx_dest *dest, struct sbx_err *err)
{
	CALLER struct caller caller = {0};
	char parent[PATH_MAX];
	size_t size = (size_t)(dest->name - dest->path);
	int r;

	if (size >= sizeof(parent))
		return sbx_err_kind(err, SBX_KIND_INVALID, ENAMETOOLONG,
			"argument \"dest\" is longer than %d bytes", PATH_MAX - 1);
	memcpy(parent, dest->path, size);
	parent[size] = '\0';
	r = caller_init(&caller, dest, err);
	if (r < 0)
		return r;
	dest->parent_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dest->parent_fd < 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, errno,
			"cannot write into '%s': %m; choose a directory that you may write",
			parent);
	return 0;
}

int sbx_dest_init(struct sbx_dest *dest, const struct sbx_job *job,
	const struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	const char *path = sbx_json_string(sbx_job_tool_args(job), "dest", "");
	const char *slash = strrchr(path, '/');

	if (*path != '/' || !slash[1] || !strcmp(slash, "/.") || !strcmp(slash, "/.."))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"argument \"dest\": expected an absolute path of something new, got "
			"'%.200s'",
			path);
	dest->path = path;
	dest->name = slash + 1;
	dest->uid = (uid_t)sbx_json_int(job->args, "uid", (int64_t)sandbox->owner_uid);
	/* a user's own group is not known here; nobody's gives no rights */
	dest->gid = dest->uid == sandbox->source_uid ? sandbox->source_gid : (gid_t)65534;
	return open_parent(dest, err);
}

static int refuse(const struct sbx_dest *dest, int code, struct sbx_err *err)
{
	if (code == EEXIST)
		return sbx_err_kind(err, SBX_KIND_INVALID, EEXIST,
			"'%s' exists already; choose a path where nothing is", dest->path);
	return sbx_err_kind(err, SBX_KIND_INVALID, code,
		"cannot make '%s': %m; choose a directory that you may write", dest->path);
}

int sbx_dest_make_dir(const struct sbx_dest *dest, int *ret_fd, struct sbx_err *err)
{
	CALLER struct caller caller = {0};
	SBX_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	r = caller_init(&caller, dest, err);
	if (r < 0)
		return r;
	if (mkdirat(dest->parent_fd, dest->name, 0755) < 0)
		return refuse(dest, errno, err);
	fd = openat(dest->parent_fd, dest->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(dest, errno, err);
	/* whoever may write there may have put another directory in its place */
	if (st.st_uid != dest->uid)
		return refuse(dest, EEXIST, err);
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int sbx_dest_make_file(const struct sbx_dest *dest, int *ret_fd, struct sbx_err *err)
{
	CALLER struct caller caller = {0};
	int fd;
	int r;

	r = caller_init(&caller, dest, err);
	if (r < 0)
		return r;
	fd = openat(dest->parent_fd, dest->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0644);
	if (fd < 0)
		return refuse(dest, errno, err);
	*ret_fd = fd;
	return 0;
}

void sbx_dest_unmake_file(const struct sbx_dest *dest)
{
	CALLER struct caller caller = {0};

	if (caller_init(&caller, dest, NULL) == 0)
		(void)unlinkat(dest->parent_fd, dest->name, 0); /* the failure itself is told */
}
