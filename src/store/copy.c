/* SPDX-License-Identifier: MIT */
#include "copy.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "copy_data.h"
#include "link_map.h"
#include "sbx/fs.h"

#define OPEN_FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct copier {
	int root_fd; /* borrowed */
	copy_map_fn map;
	const void *map_data;
	xattr_filter filter;
	struct link_map *links;
	struct copy_data data;
	struct copy_stats stats;
};

int copier_new(int root_fd, copy_map_fn map, const void *map_data, xattr_filter filter,
	struct copier **ret)
{
	COPIER struct copier *copier = calloc(1, sizeof(*copier));
	int r;

	if (!copier)
		return -ENOMEM;
	copier->root_fd = root_fd;
	copier->map = map;
	copier->map_data = map_data;
	copier->filter = filter;
	r = link_map_new(&copier->links);
	if (r == 0)
		r = copy_data_init(&copier->data);
	if (r < 0)
		return r;
	*ret = sbx_take(&copier);
	return 0;
}

void copier_free(struct copier *copier)
{
	if (!copier)
		return;
	link_map_free(copier->links);
	copy_data_done(&copier->data);
	sbx_free_pointer(&copier);
}

const struct copy_stats *copier_stats(const struct copier *copier)
{
	return &copier->stats;
}

static void map_owner(struct copier *copier, const struct stat *st, uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = st->st_uid;
	*ret_gid = st->st_gid;
	copier->stats.n_ids_lost += copier->map(copier->map_data, ret_uid, ret_gid);
}

/* Owner before mode, since chown clears set-id bits; attributes last, since it clears capabilities.
 */
static int give_metadata(struct copier *copier, int from_fd, const struct stat *st, int to_fd)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	size_t n_dropped = 0;
	uid_t uid;
	gid_t gid;
	int r;

	map_owner(copier, st, &uid, &gid);
	if (fchown(to_fd, uid, gid) < 0 || fchmod(to_fd, st->st_mode & 07777) < 0)
		return -errno;
	r = xattr_copy(from_fd, to_fd, copier->filter, &n_dropped);
	if (r < 0)
		return r;
	copier->stats.n_xattrs_dropped += n_dropped;
	return futimens(to_fd, times) < 0 ? -errno : 0;
}

/* Opens what was just made to be sure, before it changes hands, that it is what was made. */
static int open_made(const struct copy_to *to, mode_t type)
{
	SBX_CLOSE int fd = openat(to->dir_fd, to->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return (st.st_mode & S_IFMT) == type ? sbx_fd_take(&fd) : -ESTALE;
}

/* The mode of what can only be held with O_PATH. */
static int chmod_path_fd(int fd, mode_t mode)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
	return chmod(path, mode) < 0 ? -errno : 0;
}

/* The same for symbolic links and FIFOs, which are not opened and whose attributes are not kept. */
static int give_metadata_unopened(
	struct copier *copier, const struct stat *st, const struct copy_to *to)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	SBX_CLOSE int fd = open_made(to, st->st_mode & S_IFMT);
	uid_t uid;
	gid_t gid;
	int r;

	if (fd < 0)
		return fd;
	map_owner(copier, st, &uid, &gid);
	if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
		return -errno;
	r = S_ISLNK(st->st_mode) ? 0 : chmod_path_fd(fd, st->st_mode & 07777);
	if (r < 0)
		return r;
	return utimensat(fd, "", times, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int open_source(const struct copy_from *from)
{
	int fd = openat(from->dir_fd, from->name, OPEN_FILE_FLAGS | O_NOATIME);

	if (fd < 0 && errno == EPERM) /* not ours: the access time moves */
		fd = openat(from->dir_fd, from->name, OPEN_FILE_FLAGS);
	return fd < 0 ? -errno : fd;
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ELOOP || r == -ENXIO || r == -ENOTDIR;
}

static int copy_regular(
	struct copier *copier, const struct copy_from *from, const struct copy_to *to)
{
	SBX_CLOSE int in = open_source(from), out = -EBADF;
	struct stat st;
	int r;

	if (in < 0)
		return is_gone(in) ? COPY_VANISHED : in;
	if (fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return COPY_VANISHED;
	out = openat(
		to->dir_fd, to->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	r = copy_data_run(&copier->data, in, out, &st);
	if (r < 0)
		return r;
	copier->stats.n_reflinked += r == COPY_DATA_SHARED;
	copier->stats.n_bytes += (uint64_t)st.st_size;
	r = give_metadata(copier, in, &st, out);
	return r < 0 ? r : COPY_DONE;
}

static int copy_directory(struct copier *copier SBX_UNUSED, const struct copy_from *from SBX_UNUSED,
	const struct copy_to *to)
{
	return mkdirat(to->dir_fd, to->name, 0700) < 0 ? -errno : COPY_DONE;
}

static int copy_symlink(
	struct copier *copier, const struct copy_from *from, const struct copy_to *to)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlinkat(from->dir_fd, from->name, target, sizeof(target) - 1);
	int r;

	if (n < 0)
		return errno == ENOENT || errno == EINVAL ? COPY_VANISHED : -errno;
	target[n] = '\0';
	if (symlinkat(target, to->dir_fd, to->name) < 0)
		return -errno;
	r = give_metadata_unopened(copier, from->st, to);
	return r < 0 ? r : COPY_DONE;
}

static int copy_fifo(struct copier *copier, const struct copy_from *from, const struct copy_to *to)
{
	int r;

	if (mkfifoat(to->dir_fd, to->name, 0600) < 0)
		return -errno;
	r = give_metadata_unopened(copier, from->st, to);
	return r < 0 ? r : COPY_DONE;
}

static const struct {
	mode_t type;
	int (*copy)(struct copier *copier, const struct copy_from *from, const struct copy_to *to);
} kinds[] = {
	{S_IFREG, copy_regular},
	{S_IFDIR, copy_directory},
	{S_IFLNK, copy_symlink},
	{S_IFIFO, copy_fifo},
};

static int copy_by_kind(
	struct copier *copier, const struct copy_from *from, const struct copy_to *to)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(kinds); i++)
		if ((from->st->st_mode & S_IFMT) == kinds[i].type)
			return kinds[i].copy(copier, from, to);
	return COPY_NOT_KEPT;
}

/* Opens the directory of path, which may be longer than the kernel takes, and points to its name.
 */
static int open_parent(int root_fd, const char *path, int *ret_fd, const char **ret_name)
{
	SBX_CLOSE int fd = openat(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *slash;

	if (fd < 0)
		return -errno;
	for (; (slash = strchr(path, '/')); path = slash + 1) {
		char name[NAME_MAX + 1];
		int next;

		if ((size_t)(slash - path) > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, (size_t)(slash - path));
		name[slash - path] = '\0';
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		sbx_fd_close(&fd);
		fd = next;
	}
	*ret_fd = sbx_fd_take(&fd);
	*ret_name = path;
	return 0;
}

static int make_link(struct copier *copier, const char *first, const struct copy_to *to)
{
	SBX_CLOSE int fd = -EBADF;
	const char *name;
	int r;

	r = open_parent(copier->root_fd, first, &fd, &name);
	if (r < 0)
		return r;
	return linkat(fd, name, to->dir_fd, to->name, 0) < 0 ? -errno : COPY_LINKED;
}

static int copy_linked(
	struct copier *copier, const struct copy_from *from, const struct copy_to *to)
{
	const char *first = link_map_find(copier->links, from->st);
	int r;

	if (!first) {
		r = copy_by_kind(copier, from, to);
		if (r == COPY_DONE)
			r = link_map_add(copier->links, from->st, to->path);
		return r;
	}
	r = make_link(copier, first, to);
	if (r == -EMLINK) /* the file system takes fewer links than the source's: a copy then */
		return copy_by_kind(copier, from, to);
	if (r == COPY_LINKED)
		link_map_seen(copier->links, from->st);
	return r;
}

int copier_entry(struct copier *copier, const struct copy_from *from, const struct copy_to *to,
	struct sbx_err *err)
{
	int r;

	if (!S_ISDIR(from->st->st_mode) && from->st->st_nlink > 1)
		r = copy_linked(copier, from, to);
	else
		r = copy_by_kind(copier, from, to);
	return r < 0 ? sbx_err_set(err, -r, "copy %s: %m", to->path) : r;
}

int copier_finish_directory(
	struct copier *copier, int from_fd, const struct stat *st, int to_fd, struct sbx_err *err)
{
	int r = give_metadata(copier, from_fd, st, to_fd);

	return r < 0 ? sbx_err_set(err, -r, "set the attributes of a copied directory: %m") : 0;
}
