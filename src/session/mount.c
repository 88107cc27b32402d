/* SPDX-License-Identifier: MIT */
#include "mount.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sbx/fs.h"
#include "sbx/sys.h"

#define BYTES_PER_INODE 4096 /* a tmpfs may hold one inode for each page that it may hold */

/* The kernel queues its reasons on the context: one line a read, after "e ", "w " or "i ". */
static void read_reason(int context_fd, char *ret, size_t size)
{
	char line[256];
	ssize_t n;

	ret[0] = '\0';
	while ((n = read(context_fd, line, sizeof(line) - 1)) > 2) {
		line[n] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'e')
			(void)snprintf(ret, size, " (%.200s)", line + 2);
	}
}

static int refuse(int context_fd, int code, const char *type, const char *what, struct sbx_err *err)
{
	char reason[256];

	read_reason(context_fd, reason, sizeof(reason));
	return sbx_err_set(err, code, "%s of a %s: %s%s", what, type, strerror(code), reason);
}

int sbx_mount_new(const char *type, const struct sbx_mount_option *options, size_t n_options,
	unsigned int attributes, int *ret_tree, struct sbx_err *err)
{
	SBX_CLOSE int context = fsopen(type, FSOPEN_CLOEXEC);
	int tree;

	if (context < 0)
		return sbx_err_set(err, errno, "open file system type %s: %m", type);
	/* only seen in /proc/mounts and df */
	if (fsconfig(context, FSCONFIG_SET_STRING, "source", type, 0) < 0)
		return refuse(context, errno, type, "source", err);
	for (size_t i = 0; i < n_options; i++)
		if (fsconfig(context, options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
			    options[i].key, options[i].value, 0) < 0)
			return refuse(context, errno, type, options[i].key, err);
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return refuse(context, errno, type, "creation", err);
	tree = fsmount(context, FSMOUNT_CLOEXEC, attributes);
	if (tree < 0)
		return refuse(context, errno, type, "mount", err);
	*ret_tree = tree;
	return 0;
}

int sbx_mount_tmpfs(uint64_t size_bytes, mode_t mode, uid_t id, unsigned int attributes,
	int *ret_tree, struct sbx_err *err)
{
	char size[32], inodes[32], mode_text[16], id_text[16];
	const struct sbx_mount_option options[] = {
		{"size", size},
		{"nr_inodes", inodes},
		{"mode", mode_text},
		{"uid", id_text},
		{"gid", id_text},
	};

	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)size_bytes);
	(void)snprintf(inodes, sizeof(inodes), "%llu",
		(unsigned long long)(size_bytes / BYTES_PER_INODE + 1));
	(void)snprintf(mode_text, sizeof(mode_text), "%o", mode);
	(void)snprintf(id_text, sizeof(id_text), "%u", id);
	return sbx_mount_new("tmpfs", options, SBX_N_ELEMENTS(options), attributes, ret_tree, err);
}

int sbx_mount_clone(int dir_fd, const char *path, enum sbx_mount_clone_flags flags, int *ret_tree,
	struct sbx_err *err)
{
	unsigned int how = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
	int tree;

	if (flags & SBX_MOUNT_RECURSIVE)
		how |= AT_RECURSIVE;
	tree = open_tree(dir_fd, path, how);
	if (tree < 0)
		return sbx_err_set(err, errno, "clone the mount at %s: %m", *path ? path : ".");
	*ret_tree = tree;
	return 0;
}

int sbx_mount_set(int tree, unsigned int attributes, int user_ns, enum sbx_mount_clone_flags flags,
	struct sbx_err *err)
{
	struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
	unsigned int how = AT_EMPTY_PATH;

	if (user_ns >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)user_ns;
	}
	if (flags & SBX_MOUNT_RECURSIVE)
		how |= AT_RECURSIVE;
	if (mount_setattr(tree, "", how, &attr, sizeof(attr)) < 0)
		return sbx_err_set(err, errno, "%s: %m",
			user_ns >= 0 ? "map the ids of a mount (does its file system support "
				       "idmapped mounts?)"
				     : "set the attributes of a mount");
	return 0;
}

int sbx_mount_attach(int tree, int dir_fd, const char *path, struct sbx_err *err)
{
	if (move_mount(tree, "", dir_fd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return sbx_err_set(err, errno, "attach a mount to %s: %m", path);
	return 0;
}

int sbx_mount_attach_beneath(int tree, int root_fd, const char *path, struct sbx_err *err)
{
	SBX_CLOSE int at = sbx_fs_open_beneath(
		root_fd, path + strspn(path, "/"), O_PATH | O_DIRECTORY, 0, SBX_FS_CROSS);

	if (at < 0)
		return sbx_err_set(err, -at, "open the mount point %s: %m", path);
	if (move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return sbx_err_set(err, errno, "attach a mount to %s: %m", path);
	return 0;
}

int sbx_mount_enter_root(int tree, struct sbx_err *err)
{
	int r;

	if (fchdir(tree) < 0)
		return sbx_err_set(err, errno, "enter the new root: %m");
	/* pivot_root(2), "pivot_root(".", ".")": the old root ends up stacked on the new one */
	r = sbx_sys_pivot_root(".", ".");
	if (r < 0)
		return sbx_err_set(err, -r, "pivot_root: %m");
	if (umount2(".", MNT_DETACH) < 0)
		return sbx_err_set(err, errno, "let go of the old root: %m");
	if (chdir("/") < 0)
		return sbx_err_set(err, errno, "go to the new root: %m");
	return 0;
}

int sbx_mount_make_dirs(int root_fd, const char *path, struct sbx_err *err)
{
	SBX_CLOSE int dir = -EBADF;
	const char *p = path;

	dir = openat(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return sbx_err_set(err, errno, "open the root of %s: %m", path);
	for (;;) {
		char name[NAME_MAX + 1];
		size_t n;
		int next;

		p += strspn(p, "/");
		n = strcspn(p, "/");
		if (!n)
			return 0;
		if (n > NAME_MAX)
			return sbx_err_set(err, ENAMETOOLONG, "make directory %s: %m", path);
		memcpy(name, p, n);
		name[n] = '\0';
		p += n;
		if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return sbx_err_set(err, errno, "make directory %s of %s: %m", name, path);
		next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return sbx_err_set(err, errno, "open directory %s of %s: %m", name, path);
		sbx_fd_close(&dir);
		dir = next;
	}
}
