/* SPDX-License-Identifier: MIT */
#include "state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "sandbox.h"
#include "sbx/fs.h"

#define LOCK_NAME      ".lock"
#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* mkdir -p: existing ones keep their mode. */
static int make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = '\0';
		r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

int state_open(const char *path, int *ret_fd, struct sbx_err *err)
{
	SBX_FREE char *copy = *path ? strdup(path) : NULL;
	bool made;
	int fd, r;

	if (!copy)
		return sbx_err_set(
			err, *path ? ENOMEM : ENOENT, "open the state root \"%s\": %m", path);
	r = make_parents(copy);
	if (r < 0)
		return sbx_err_set(err, -r, "make the directories above %s: %m", path);
	made = mkdir(path, 0711) == 0;
	if (!made && errno != EEXIST)
		return sbx_err_set(err, errno, "make the state root %s: %m", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open the state root %s: %m", path);
	if (made)
		(void)fchmod(fd, 0711); /* against the umask; ours, just made */
	*ret_fd = fd;
	return 0;
}

static void close_dirp(DIR **dirp)
{
	int saved = errno;

	if (*dirp)
		(void)closedir(*dirp); /* only read from */
	errno = saved;
}

static int open_dirp(int fd, DIR **ret)
{
	SBX_CLOSE int own = openat(fd, ".", OPEN_DIR_FLAGS);

	if (own < 0)
		return -errno;
	*ret = fdopendir(own);
	if (!*ret)
		return -errno;
	(void)sbx_fd_take(&own); /* *ret's now */
	return 0;
}

static bool is_new_name(const char *name)
{
	return !strncmp(name, STATE_NEW_PREFIX, sizeof(STATE_NEW_PREFIX) - 1);
}

static bool is_sandbox_name(const char *name)
{
	return sbx_id_valid(name) || is_new_name(name);
}

/* Marks the range of one directory of the state root. */
static int mark_range(int state_fd, const char *name, bool *taken, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox other = {0};
	SBX_CLOSE int fd = openat(state_fd, name, OPEN_DIR_FLAGS);
	int r;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : sbx_err_set(err, errno, "open sandbox %s: %m", name);
	r = sbx_sandbox_load(fd, &other, err);
	if (r == -ENOENT) /* being removed, or made by a create that died early */
		return 0;
	if (r < 0)
		return sbx_err_wrap(err, r,
			"which host ids sandbox %s has is unknown, so none can be given out", name);
	taken[(other.id_base - SANDBOX_ID_FIRST) / SANDBOX_ID_RANGE] = true;
	return 0;
}

static int mark_ranges(int state_fd, bool *taken, struct sbx_err *err)
{
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	struct dirent *entry;
	int r = open_dirp(state_fd, &dirp);

	if (r < 0)
		return sbx_err_set(err, -r, "list the state root: %m");
	while (errno = 0, (entry = readdir(dirp))) {
		if (!is_sandbox_name(entry->d_name))
			continue;
		r = mark_range(state_fd, entry->d_name, taken, err);
		if (r < 0)
			return r;
	}
	return errno ? sbx_err_set(err, errno, "list the state root: %m") : 0;
}

static int choose_range(int state_fd, uid_t *ret_id_base, struct sbx_err *err)
{
	SBX_FREE bool *taken = calloc(SANDBOX_ID_N_RANGES, sizeof(*taken));
	int r;

	if (!taken)
		return sbx_err_set(err, ENOMEM, "choose host ids: %m");
	r = mark_ranges(state_fd, taken, err);
	if (r < 0)
		return r;
	for (uint32_t k = 0; k < SANDBOX_ID_N_RANGES; k++) {
		if (taken[k])
			continue;
		*ret_id_base = SANDBOX_ID_FIRST + k * SANDBOX_ID_RANGE;
		return 0;
	}
	return sbx_err_set(err, ENOSPC,
		"no range of host ids is left under this state root: destroy a sandbox first");
}

/* The state root's lock, held until *ret_fd is closed. Waits: nobody holds it for long. */
static int lock_state(int state_fd, int *ret_fd)
{
	SBX_CLOSE int fd =
		openat(state_fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

static int make_new(int state_fd, const char *name, int *ret_fd)
{
	SBX_CLOSE int fd = -EBADF;

	if (mkdirat(state_fd, name, 0711) < 0)
		return -errno;
	fd = openat(state_fd, name, OPEN_DIR_FLAGS);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fchmod(fd, 0711) < 0) {
		int r = -errno;

		(void)unlinkat(state_fd, name, AT_REMOVEDIR); /* else the next sweep's */
		return r;
	}
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int state_reserve(int state_fd, struct sbx_sandbox *sandbox, int *ret_fd, struct sbx_err *err)
{
	SBX_CLOSE int lock = -EBADF, fd = -EBADF;
	char name[STATE_NAME_SIZE];
	int r;

	(void)snprintf(name, sizeof(name), STATE_NEW_PREFIX "%s", sandbox->id); /* fits */
	r = lock_state(state_fd, &lock);
	if (r < 0)
		return sbx_err_set(err, -r, "lock the state root: %m");
	r = choose_range(state_fd, &sandbox->id_base, err);
	if (r < 0)
		return r;
	r = make_new(state_fd, name, &fd);
	if (r < 0)
		return sbx_err_set(err, -r, "make the directory of sandbox %s: %m", sandbox->id);
	r = sandbox_save(fd, sandbox, err);
	if (r < 0) {
		(void)sbx_fs_remove_tree(state_fd, name); /* else the next sweep's */
		return r;
	}
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

static int sweep_one(int state_fd, const char *name)
{
	SBX_CLOSE int fd = openat(state_fd, name, OPEN_DIR_FLAGS);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno; /* somebody is making it */
	return sbx_fs_remove_tree(state_fd, name);
}

int state_sweep(int state_fd, struct sbx_err *err)
{
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	SBX_CLOSE int lock = -EBADF;
	struct dirent *entry;
	int r;

	/* under the lock, since a new directory is not locked yet when it becomes visible */
	r = lock_state(state_fd, &lock);
	if (r < 0)
		return sbx_err_set(err, -r, "lock the state root: %m");
	r = open_dirp(state_fd, &dirp);
	if (r < 0)
		return sbx_err_set(err, -r, "list the state root: %m");
	while (errno = 0, (entry = readdir(dirp))) {
		if (!is_new_name(entry->d_name))
			continue;
		r = sweep_one(state_fd, entry->d_name);
		if (r < 0)
			return sbx_err_set(err, -r, "remove %s, left by a create that died: %m",
				entry->d_name);
	}
	return errno ? sbx_err_set(err, errno, "list the state root: %m") : 0;
}

int state_check_apart(int state_fd, int source_fd, struct sbx_err *err)
{
	int r = sbx_fs_holds(source_fd, state_fd);

	if (r > 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"the directory to import holds the state root: set %s to a place outside "
			"of it",
			SBX_STATE_DIR_ENV);
	if (r == 0)
		r = sbx_fs_holds(state_fd, source_fd);
	if (r > 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"the directory to import is inside the state root: choose one outside of "
			"it");
	return r < 0 ? sbx_err_set(err, -r, "look above the directory to import: %m") : 0;
}
