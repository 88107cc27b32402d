/* SPDX-License-Identifier: MIT */
/*
 * Copies single entries of a tree into another: contents (shared blocks where the file system can,
 * holes kept), mode, owner by a mapping, times, the kept extended attributes, hard links. The
 * source is only read, without touching its access times where we may.
 */
#ifndef SBX_STORE_COPY_H
#define SBX_STORE_COPY_H

#include <sys/stat.h>

#include "sbx/err.h"
#include "xattr.h"

/* On-disk owner of what had this owner in the source; returns whether it lost its number. */
typedef bool (*copy_map_fn)(const void *data, uid_t *uid, gid_t *gid);

struct copier;
/* root_fd (borrowed): where the paths given to copier_entry() start. */
int copier_new(int root_fd, copy_map_fn map, const void *map_data, xattr_filter filter,
	struct copier **ret);
void copier_free(struct copier *copier);
static inline void copier_freep(struct copier **copier)
{
	copier_free(*copier);
}
#define COPIER SBX_CLEANUP(copier_freep)

struct copy_from {
	int dir_fd; /* for a directory that is finished: itself */
	const char *name;
	const struct stat *st;
};

struct copy_to {
	int dir_fd;
	const char *name;
	const char *path; /* from root_fd, for hard links to it */
};

enum copy_result {
	COPY_DONE,
	COPY_LINKED,   /* became a hard link */
	COPY_VANISHED, /* is gone or became something else since it was looked at */
	COPY_NOT_KEPT, /* a socket or device */
};

/* Makes to the like of from: enum copy_result or -errno. Directories are made empty, mode 0700. */
int copier_entry(struct copier *copier, const struct copy_from *from, const struct copy_to *to,
	struct sbx_err *err);
/* Gives a directory its metadata, after all that is in it. */
int copier_finish_directory(
	struct copier *copier, int from_fd, const struct stat *st, int to_fd, struct sbx_err *err);

struct copy_stats {
	uint64_t n_bytes;          /* of file contents, holes included */
	uint64_t n_reflinked;      /* files that share their blocks with the source */
	uint64_t n_ids_lost;       /* entries whose owner had no place in the mapping */
	uint64_t n_xattrs_dropped; /* attributes that are not kept */
};
const struct copy_stats *copier_stats(const struct copier *copier);

#endif
