/* SPDX-License-Identifier: MIT */
/*
 * What a crash or an ended lease leaves in the store: layers that nothing names, rejects that were
 * not finished (reject.json is written last), temporary files, and the trash, where directories
 * are renamed to so that removing them keeps nobody waiting.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "head_log.h"
#include "sbx/fs.h"
#include "sbx/store.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct sweep {
	const struct sbx_head_log *log;
	const struct sbx_stack *keep; /* or NULL */
	uint64_t n_removed;
};

/* Whether an entry of dir_fd stays: 1, 0 or -errno. */
typedef int (*stays_fn)(const struct sweep *sweep, int dir_fd, const char *name);

static int layer_stays(const struct sweep *sweep, int dir_fd SBX_UNUSED, const char *name)
{
	if (head_log_names(sweep->log, name))
		return 1;
	return sweep->keep && sbx_stack_find(sweep->keep, name) >= 0;
}

static int reject_stays(const struct sweep *sweep SBX_UNUSED, int dir_fd, const char *name)
{
	SBX_CLOSE int fd = -EBADF;
	struct stat st;

	if (name[0] == '.') /* dropped, and not yet gone */
		return 0;
	fd = openat(dir_fd, name, OPEN_DIR_FLAGS);
	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	if (fstatat(fd, SBX_REJECT_JSON, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 1;
}

static int trash_stays(
	const struct sweep *sweep SBX_UNUSED, int dir_fd SBX_UNUSED, const char *name SBX_UNUSED)
{
	return 0;
}

/* In the store itself only the temporary files go: their names begin with a dot. */
static int store_stays(
	const struct sweep *sweep SBX_UNUSED, int dir_fd SBX_UNUSED, const char *name)
{
	return name[0] != '.';
}

static const struct {
	const char *name;
	stays_fn stays;
} parts[] = {
	{"layers", layer_stays},
	{"rejects", reject_stays},
	{SBX_STORE_TRASH, trash_stays},
	{".", store_stays},
};

static void close_dirp(DIR **dirp)
{
	int saved = errno;

	if (*dirp)
		(void)closedir(*dirp); /* only read from */
	errno = saved;
}

static int sweep_entry(struct sweep *sweep, int dir_fd, stays_fn stays, const char *name)
{
	int r;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return 0;
	r = stays(sweep, dir_fd, name);
	if (r != 0)
		return r < 0 ? r : 0;
	r = sbx_fs_remove_tree(dir_fd, name);
	sweep->n_removed += r == 0;
	return r;
}

static int sweep_part(
	struct sweep *sweep, int store_fd, const char *part, stays_fn stays, struct sbx_err *err)
{
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	struct dirent *entry;
	int fd = openat(store_fd, part, OPEN_DIR_FLAGS);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return sbx_err_set(err, errno, "open store/%s: %m", part);
	dirp = fdopendir(fd);
	if (!dirp) {
		sbx_fd_close(&fd);
		return sbx_err_set(err, ENOMEM, "list store/%s: %m", part);
	}
	while (errno = 0, (entry = readdir(dirp))) {
		int r = sweep_entry(sweep, fd, stays, entry->d_name);

		if (r < 0)
			return sbx_err_set(err, -r, "sweep store/%s/%s: %m", part, entry->d_name);
	}
	return errno ? sbx_err_set(err, errno, "list store/%s: %m", part) : 0;
}

int sbx_store_sweep(int store_fd, const struct sbx_head_log *log, const struct sbx_stack *keep,
	uint64_t *ret_n_removed, struct sbx_err *err)
{
	struct sweep sweep = {.log = log, .keep = keep};

	for (size_t i = 0; i < SBX_N_ELEMENTS(parts); i++) {
		int r = sweep_part(&sweep, store_fd, parts[i].name, parts[i].stays, err);

		if (r < 0)
			return r;
	}
	*ret_n_removed = sweep.n_removed;
	return 0;
}
