/* SPDX-License-Identifier: MIT */
/*
 * What walking a tree (walk.h) and walking a view (view_walk.h) have in common: the directories
 * from the root down to where the walk is, each with its names, the path, a mirror in step, and a
 * bounded number of descriptors: upper directories give theirs up when the way is long, and find
 * them again through ".." of the one below.
 */
#ifndef SBX_STORE_DESCENT_H
#define SBX_STORE_DESCENT_H

#include "sbx/buf.h"
#include "sbx/err.h"

/* A kind of directory. */
struct descent_kind {
	size_t fds_max; /* of all directories on the way; then upper ones give up */
	void (*free)(void *dir);
	size_t (*n_fds)(const void *dir);
	/* Closes what find_again() can open through below, the directory in it. */
	int (*give_up)(void *dir, const void *below);
	int (*find_again)(void *dir, const void *below);
};

struct descent;
int descent_new(const struct descent_kind *kind, bool has_mirror, struct descent **ret);
void descent_free(struct descent *descent);

/*
 * Goes into dir, whose names (n of them, in order) stay as long as it does; mirror_fd is its mirror
 * or -EBADF. Takes both, also on failure.
 */
int descent_push(
	struct descent *descent, void *dir, const char *const *names, size_t n, int mirror_fd);
/* The directory that the walk is in; NULL at the end. */
void *descent_dir(const struct descent *descent);

struct descent_at {
	void *dir;
	int mirror_fd;
	const char *name; /* of the entry; of a directory that is left, or "" for the root */
	const char *path;
};
/* WALK_ENTRY, WALK_LEAVE, WALK_END or -errno. Valid until the next call. */
int descent_next(struct descent *descent, struct descent_at *ret);
const char *descent_path(const struct descent *descent); /* of the last event */

/* The last entry is a directory: its name can be taken once, to go into it. */
void descent_may_enter(struct descent *descent);
const char *descent_take_entry(struct descent *descent); /* NULL: it cannot be entered */
/* Opens the mirror of a directory in the present one; -EBADF without mirror. */
int descent_open_mirror(const struct descent *descent, const char *name, int *ret_fd);

#endif
