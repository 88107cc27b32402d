/* SPDX-License-Identifier: MIT */
/*
 * log: which layers of the head changed a path, newest first. A layer is looked at closely only
 * when its tree has the path or replaces a directory above it.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "filediff.h"
#include "job_args.h"
#include "jobs.h"
#include "sbx/store.h"

/*
 * Whether a layer's tree can change path: it has the path, or on the way to it something that
 * ends the lower layers' part in it (a whiteout, a file, an opaque directory). -errno.
 */
static int touches(int layer_fd, const char *path)
{
	SBX_CLOSE int fd =
		openat(layer_fd, SBX_LAYER_TREE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *rest = path;

	if (fd < 0)
		return -errno;
	while (*rest) {
		size_t size = strcspn(rest, "/");
		char name[NAME_MAX + 1];
		struct stat st;
		int next, r;

		(void)snprintf(name, sizeof(name), "%.*s", (int)size, rest);
		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (!S_ISDIR(st.st_mode) || !rest[size])
			return 1;
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		sbx_fd_close(&fd);
		fd = next;
		r = sbx_is_opaque(fd);
		if (r != 0)
			return r;
		rest += size + 1;
	}
	return 1;
}

/* One path in the view of the lowest n layers. */
struct sight {
	struct sbx_view *view;
	struct sbx_view_dir *dir;
	struct sbx_place place;
	bool exists;
};

static void sight_done(struct sight *sight)
{
	sbx_view_dir_free(sight->dir);
	sbx_view_free(sight->view);
}
#define SIGHT SBX_CLEANUP(sight_done)

static int look(const struct sbx_job *job, const struct sbx_stack *stack, size_t n,
	const char *path, struct sight *ret, struct sbx_err *err)
{
	const struct sbx_stack lowest = {.ids = stack->ids, .n = n};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char parent[SBX_PATH_MAX + 1];
	struct sbx_node node;
	int fd = -EBADF;
	int r;

	(void)snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path);
	r = sbx_view_open(job->context->layers_fd, &lowest, &ret->view, err);
	if (r < 0)
		return r;
	r = sbx_view_dir_open(ret->view, parent, &ret->dir);
	if (r == 0)
		r = sbx_view_dir_lookup(ret->dir, name, &node);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == 0)
		r = sbx_view_dir_fd_of(ret->dir, name, &fd);
	if (r < 0)
		return sbx_err_set(err, -r, "look at '%s': %m", path);
	ret->place = (struct sbx_place){.dir_fd = fd, .name = name, .st = node.st};
	ret->exists = true;
	return 0;
}

/* What layer i of the stack did to path: an enum sbx_change or -errno. */
static int change_in(const struct sbx_job *job, const struct sbx_stack *stack, size_t i,
	const char *path, struct sbx_err *err)
{
	SIGHT struct sight old = {0}, new = {0};
	int r;

	if (!*path)
		return i ? SBX_CHANGE_MODIFY : SBX_CHANGE_ADD; /* the root is always there */
	r = look(job, stack, i, path, &old, err);
	if (r == 0)
		r = look(job, stack, i + 1, path, &new, err);
	if (r < 0 || (!old.exists && !new.exists))
		return r;
	r = sbx_filediff_change(old.exists ? &old.place : NULL, new.exists ? &new.place : NULL);
	if (r < 0)
		return sbx_err_set(err, -r, "compare '%s': %m", path);
	/* a directory that is the same itself is in the layer for what is in it */
	if (r == SBX_CHANGE_NONE && S_ISDIR(new.place.st.st_mode))
		return SBX_CHANGE_MODIFY;
	return r;
}

static void add_version(
	const struct sbx_layer_info *info, enum sbx_change change, struct json_object *versions)
{
	struct json_object *o = json_object_new_object();

	sbx_json_add_int(o, "version", (int64_t)info->parent_version + 1);
	sbx_json_add_string(o, "layer_id", info->id);
	sbx_json_add_string(o, "owner", info->owner);
	sbx_json_add_string(o, "command", info->command);
	sbx_json_add_int(o, "created_ns", (int64_t)info->created_ns);
	sbx_json_add_string(o, "change", sbx_change_name(change));
	sbx_answer_push(versions, o);
}

static int add_layer(const struct sbx_job *job, const struct sbx_stack *stack, size_t i,
	const char *path, struct json_object *versions, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	SBX_CLOSE int layer_fd = openat(job->context->layers_fd, stack->ids[i],
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = layer_fd < 0 ? -errno : touches(layer_fd, path);
	int change;

	if (r < 0)
		return sbx_err_set(err, -r, "look at layer %s: %m", stack->ids[i]);
	if (r == 0)
		return 0;
	change = change_in(job, stack, i, path, err);
	if (change <= 0)
		return change;
	r = sbx_layer_info_load(layer_fd, &info, err);
	if (r == 0)
		add_version(&info, (enum sbx_change)change, versions);
	return r;
}

int sbx_job_log(struct sbx_job *job, struct sbx_err *err)
{
	struct json_object *versions = json_object_new_array();
	SBX_STACK struct sbx_stack head = SBX_STACK_INIT;
	char path[SBX_PATH_MAX + 1];
	int r;

	sbx_json_add(job->result, "versions", versions);
	r = sbx_job_path(job, path, err);
	if (r == 0)
		r = sbx_job_stack(job, "head", &head, err);
	for (size_t i = head.n; r == 0 && i-- > 0;)
		r = add_layer(job, &head, i, path, versions, err);
	if (r < 0)
		return r;
	if (!json_object_array_length(versions))
		return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
			"no layer of the head has ever had a '%s'", path);
	sbx_json_add_path(job->result, "path", *path ? path : ".");
	return 0;
}
