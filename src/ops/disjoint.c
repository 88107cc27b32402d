/* SPDX-License-Identifier: MIT */
#include "disjoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "changeset.h"
#include "dirlist.h"
#include "meta.h"
#include "sbx/store.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Deeper than this nobody compares in step; the caller then resolves in full. */
#define DEPTH_MAX 64

#define LIST_FIRST 512 /* names read of a directory before the other one is tried */
#define LIST_MORE  4   /* times as many when both have more */

/* A directory that both trees have. What to do is the same from either side. */
struct pair {
	int ours_fd;
	int theirs_fd;
	struct sbx_dirlist names; /* of the smaller one */
	size_t next;
};

struct comparison {
	struct pair pairs[DEPTH_MAX];
	size_t n;
};

static void comparison_done(struct comparison *c)
{
	while (c->n) {
		struct pair *pair = &c->pairs[--c->n];

		sbx_fd_close(&pair->ours_fd);
		sbx_fd_close(&pair->theirs_fd);
		sbx_dirlist_done(&pair->names);
	}
}

static int open_tree(int layers_fd, const char *id)
{
	char path[SBX_ID_SIZE + sizeof("/" SBX_LAYER_TREE)];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/" SBX_LAYER_TREE, id); /* fits: ids are bounded */
	fd = openat(layers_fd, path, OPEN_DIR_FLAGS);
	return fd < 0 ? -errno : fd;
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Whether the directories themselves agree: same metadata, nothing hidden. 1, 0 or -errno. */
static int agree(const struct pair *pair)
{
	SBX_META struct sbx_meta ours = SBX_META_INIT;
	SBX_META struct sbx_meta theirs = SBX_META_INIT;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	int r = sbx_is_opaque(pair->ours_fd);

	if (r == 0)
		r = sbx_is_opaque(pair->theirs_fd);
	if (r != 0)
		return r < 0 ? r : 0;
	r = sbx_meta_read(pair->ours_fd, ".", NULL, 0, &ours);
	if (r == 0)
		r = sbx_meta_read(pair->theirs_fd, ".", NULL, 0, &theirs);
	if (r < 0)
		return r;
	if (!sbx_meta_equal(&ours, &theirs))
		return 0;
	times[1] = theirs.st.st_mtim;
	if (is_newer(&times[1], &ours.st.st_mtim) && futimens(pair->ours_fd, times) < 0)
		return -errno;
	return 1;
}

/* Lists whichever of the two has fewer names, reading not much more of the other. */
static int list_smaller(struct pair *pair)
{
	const int fds[] = {pair->ours_fd, pair->theirs_fd};

	for (size_t at_most = LIST_FIRST;; at_most *= LIST_MORE) {
		for (size_t i = 0; i < SBX_N_ELEMENTS(fds); i++) {
			int r = sbx_dirlist_read(fds[i], at_most, &pair->names);

			if (r < 0 || pair->names.n < at_most)
				return r;
			sbx_dirlist_done(&pair->names);
		}
	}
}

/* Takes the descriptors. 1, 0 when the two do not go together, or -errno. */
static int push(struct comparison *c, int ours_fd, int theirs_fd)
{
	struct pair pair = {.ours_fd = ours_fd, .theirs_fd = theirs_fd};
	int r = c->n < DEPTH_MAX ? agree(&pair) : 0;

	if (r > 0) {
		int listed = list_smaller(&pair);

		r = listed < 0 ? listed : 1;
	}
	if (r <= 0) {
		sbx_fd_close(&pair.ours_fd);
		sbx_fd_close(&pair.theirs_fd);
		return r;
	}
	c->pairs[c->n++] = pair;
	return 1;
}

/* A name of one of them: 1 when the other has nothing there, or only deeper; 0 or -errno. */
static int compare_name(struct comparison *c, const struct pair *pair, const char *name)
{
	SBX_CLOSE int ours_fd = -EBADF;
	SBX_CLOSE int theirs_fd = -EBADF;
	struct stat ours;
	struct stat theirs;

	if (fstatat(pair->ours_fd, name, &ours, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(pair->theirs_fd, name, &theirs, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 1 : -errno;
	if (!S_ISDIR(ours.st_mode) || !S_ISDIR(theirs.st_mode))
		return 0;
	theirs_fd = openat(pair->theirs_fd, name, OPEN_DIR_FLAGS);
	ours_fd = theirs_fd < 0 ? -EBADF : openat(pair->ours_fd, name, OPEN_DIR_FLAGS);
	if (ours_fd < 0)
		return -errno;
	return push(c, sbx_fd_take(&ours_fd), sbx_fd_take(&theirs_fd));
}

static void pop(struct comparison *c)
{
	struct pair *pair = &c->pairs[--c->n];

	sbx_fd_close(&pair->ours_fd);
	sbx_fd_close(&pair->theirs_fd);
	sbx_dirlist_done(&pair->names);
}

/* Takes the descriptors of the two trees. */
static int compare_trees(int ours_fd, int theirs_fd)
{
	SBX_CLEANUP(comparison_done) struct comparison c = {.n = 0};
	int r = push(&c, ours_fd, theirs_fd);

	while (r > 0 && c.n) {
		struct pair *pair = &c.pairs[c.n - 1];

		if (pair->next < pair->names.n) {
			size_t i = pair->next++;

			r = compare_name(&c, pair, sbx_dirlist_name(&pair->names, i));
		} else {
			pop(&c);
		}
	}
	return r;
}

static int compare_layers(int layers_fd, const char *ours, const char *theirs)
{
	SBX_CLOSE int ours_fd = open_tree(layers_fd, ours);
	SBX_CLOSE int theirs_fd = ours_fd < 0 ? ours_fd : open_tree(layers_fd, theirs);

	if (theirs_fd < 0)
		return theirs_fd;
	return compare_trees(sbx_fd_take(&ours_fd), sbx_fd_take(&theirs_fd));
}

int sbx_layers_disjoint(int layers_fd, const char *layer_id, const struct sbx_stack *base,
	const struct sbx_stack *head, struct sbx_err *err)
{
	int r = 1;

	for (size_t i = 0; r > 0 && i < head->n; i++) {
		if (sbx_stack_find(base, head->ids[i]) >= 0)
			continue;
		r = compare_layers(layers_fd, layer_id, head->ids[i]);
		if (r < 0)
			return sbx_err_set(
				err, -r, "compare layer %s with %s: %m", layer_id, head->ids[i]);
	}
	return r;
}
