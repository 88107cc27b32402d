/* SPDX-License-Identifier: MIT */
#include "session_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sbx/fs.h"

#define SESSION_JSON     "session.json"
#define ROOT_NAME        "root"
#define SESSION_JSON_MAX (1u << 20)
#define DIR_FLAGS        (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define XATTR_LIST_MAX   65536
#define XATTR_VALUE_MAX  65536

/* What a session may set, and keeps; trusted.overlay.* belongs to the overlay of the layer. */
static bool is_kept(const char *name)
{
	if (!strncmp(name, "user.overlay.", 13))
		return false;
	return !strncmp(name, "user.", 5) || !strncmp(name, "system.posix_acl_", 17);
}

static int copy_xattrs(int from_fd, int to_fd)
{
	SBX_FREE char *names = malloc(XATTR_LIST_MAX);
	SBX_FREE char *value = malloc(XATTR_VALUE_MAX);
	ssize_t size, n;

	if (!names || !value)
		return -ENOMEM;
	size = flistxattr(from_fd, names, XATTR_LIST_MAX);
	if (size < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *name = names; name < names + size; name += strlen(name) + 1) {
		if (!is_kept(name))
			continue;
		n = fgetxattr(from_fd, name, value, XATTR_VALUE_MAX);
		if (n < 0 || fsetxattr(to_fd, name, value, (size_t)n, 0) < 0)
			return -errno;
	}
	return 0;
}

static int copy_root_attributes(int from_fd, int upper_fd)
{
	struct timespec times[2];
	struct stat st;
	int r;

	if (fstat(from_fd, &st) < 0 || fchown(upper_fd, st.st_uid, st.st_gid) < 0 ||
		fchmod(upper_fd, st.st_mode & 07777) < 0)
		return -errno;
	r = copy_xattrs(from_fd, upper_fd);
	if (r < 0)
		return r;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	return futimens(upper_fd, times) < 0 ? -errno : 0;
}

static int make_upper(int dir_fd, int layers_fd, const struct sbx_head *base)
{
	SBX_CLOSE int layer_fd = -EBADF, tree_fd = -EBADF, upper_fd = -EBADF;
	int r = sbx_fs_ensure_dir(dir_fd, "upper", 0755, &upper_fd);

	if (r < 0 || base->stack.n == 0)
		return r;
	layer_fd = openat(layers_fd, base->stack.ids[base->stack.n - 1], DIR_FLAGS);
	if (layer_fd < 0)
		return -errno;
	tree_fd = openat(layer_fd, SBX_LAYER_TREE, DIR_FLAGS);
	if (tree_fd < 0)
		return -errno;
	return copy_root_attributes(tree_fd, upper_fd);
}

static int write_json(int dir_fd, bool managed, const struct sbx_head *base)
{
	SBX_JSON struct json_object *o = json_object_new_object();
	struct json_object *layers = json_object_new_array();
	const char *text;
	size_t size;

	if (!o || !layers)
		return -ENOMEM;
	sbx_json_add_int(o, "format", 1);
	sbx_json_add_string(o, "kind", managed ? "managed" : "automatic");
	sbx_json_add_int(o, "version", (int64_t)base->version);
	for (size_t i = 0; i < base->stack.n; i++)
		(void)json_object_array_add(layers, json_object_new_string(base->stack.ids[i]));
	sbx_json_add(o, "base", layers);
	text = sbx_json_text(o, &size);
	return sbx_fs_write_at(dir_fd, SESSION_JSON, 0600, text, size, 0);
}

int session_dir_make(int sessions_fd, int layers_fd, const char *id, bool managed,
	const struct sbx_head *base, struct sbx_err *err)
{
	SBX_CLOSE int dir_fd = -EBADF, work_fd = -EBADF;
	int r = sbx_fs_ensure_dir(sessions_fd, id, 0700, &dir_fd);

	if (r == 0)
		r = make_upper(dir_fd, layers_fd, base);
	if (r == 0)
		r = sbx_fs_ensure_dir(dir_fd, "work", 0700, &work_fd);
	if (r == 0)
		r = write_json(dir_fd, managed, base);
	return r < 0 ? sbx_err_set(err, -r, "make the directory of session %s: %m", id) : 0;
}

int session_dir_make_root(int sessions_fd, const char *id, struct sbx_err *err)
{
	SBX_CLOSE int dir_fd = openat(sessions_fd, id, DIR_FLAGS);
	SBX_CLOSE int root_fd = -EBADF, upper_fd = -EBADF, work_fd = -EBADF;
	int r = dir_fd < 0 ? -errno : sbx_fs_ensure_dir(dir_fd, ROOT_NAME, 0700, &root_fd);

	if (r == 0)
		r = sbx_fs_ensure_dir(root_fd, "upper", 0755, &upper_fd);
	if (r == 0)
		r = sbx_fs_ensure_dir(root_fd, "work", 0700, &work_fd);
	return r < 0 ? sbx_err_set(err, -r, "make the root directory of session %s: %m", id) : 0;
}

static int parse_base(struct json_object *o, struct sbx_head *ret)
{
	struct json_object *layers = sbx_json_member(o, "base");
	int r = 0;

	if (!json_object_is_type(layers, json_type_array))
		return -EBADMSG;
	ret->version = (uint64_t)sbx_json_int(o, "version", 0);
	for (size_t i = 0; r == 0 && i < json_object_array_length(layers); i++) {
		const char *id = json_object_get_string(json_object_array_get_idx(layers, i));

		r = id && sbx_id_valid(id) ? sbx_stack_add(&ret->stack, id) : -EBADMSG;
	}
	return r;
}

int session_dir_load(int sessions_fd, const char *id, bool *ret_managed, struct sbx_head *ret_base,
	struct sbx_err *err)
{
	SBX_CLOSE int dir_fd = openat(sessions_fd, id, DIR_FLAGS);
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_JSON struct json_object *o = NULL;
	struct sbx_head base = {0};
	int r;

	if (dir_fd < 0)
		return sbx_err_set(err, errno, "open session %s: %m", id);
	r = sbx_fs_read_at(dir_fd, SESSION_JSON, SESSION_JSON_MAX, &text);
	if (r < 0)
		return sbx_err_set(err, -r, "read session.json of session %s: %m", id);
	r = sbx_json_parse(text.data ? text.data : "", text.size, &o, err);
	if (r == 0)
		r = parse_base(o, &base);
	if (r < 0) {
		sbx_head_done(&base);
		return sbx_err_set(err, EBADMSG, "session.json of session %s is damaged", id);
	}
	*ret_managed = !strcmp(sbx_json_string(o, "kind", ""), "managed");
	*ret_base = base;
	return 0;
}

uint64_t session_dir_made_ns(int sessions_fd, const char *id)
{
	char path[SBX_ID_SIZE + sizeof("/" SESSION_JSON)];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/" SESSION_JSON, id); /* ids fit */
	if (fstatat(sessions_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * SBX_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
}

static int renew(int dir_fd)
{
	SBX_CLOSE int work_fd = -EBADF;
	int r = sbx_fs_remove_tree(dir_fd, "work");

	return r < 0 ? r : sbx_fs_ensure_dir(dir_fd, "work", 0700, &work_fd);
}

int session_dir_renew_work(int sessions_fd, const char *id)
{
	SBX_CLOSE int dir_fd = openat(sessions_fd, id, DIR_FLAGS);
	SBX_CLOSE int root_fd = -EBADF;
	int r;

	if (dir_fd < 0)
		return -errno;
	r = renew(dir_fd);
	if (r < 0)
		return r;
	root_fd = openat(dir_fd, ROOT_NAME, DIR_FLAGS);
	if (root_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return renew(root_fd);
}

static int look_at_upper(int sessions_fd, const char *path, struct stat *ret_stat, bool *ret_empty)
{
	struct dirent *entry;
	bool empty = true;
	DIR *dir;
	int fd;

	fd = sbx_fs_open_beneath(sessions_fd, path, O_RDONLY | O_DIRECTORY, 0, 0);
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		sbx_fd_close(&fd);
		return -ENOMEM;
	}
	while (empty && (entry = readdir(dir)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	*ret_empty = empty;
	if (fstat(fd, ret_stat) < 0) {
		(void)closedir(dir); /* read-only */
		return -errno;
	}
	(void)closedir(dir);
	return 0;
}

int session_dir_upper(int sessions_fd, const char *id, struct stat *ret_stat, bool *ret_empty)
{
	char path[SBX_ID_SIZE + sizeof("/upper")];

	(void)snprintf(path, sizeof(path), "%s/upper", id); /* ids fit */
	return look_at_upper(sessions_fd, path, ret_stat, ret_empty);
}

int session_dir_root_upper(int sessions_fd, const char *id, struct stat *ret_stat, bool *ret_empty)
{
	char path[SBX_ID_SIZE + sizeof("/" ROOT_NAME "/upper")];

	(void)snprintf(path, sizeof(path), "%s/" ROOT_NAME "/upper", id); /* ids fit */
	return look_at_upper(sessions_fd, path, ret_stat, ret_empty);
}

int session_dir_bury(int sessions_fd, const char *id, char ret_name[static SBX_ID_SIZE + 8])
{
	(void)snprintf(ret_name, SBX_ID_SIZE + 8, SESSION_DEAD_PREFIX "%s", id); /* ids fit */
	return renameat(sessions_fd, id, sessions_fd, ret_name) < 0 ? -errno : 0;
}
