/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "sbx/store.h"
#include "walk.h"

#define BLOCK 512u /* the unit of st_blocks, whatever the file system's is */

/* A file with two names is met twice, since all its names are in here: half of it each time, and
 * each name as an entry, which is what costs time later. */
static void count(struct sbx_usage *usage, const struct stat *st)
{
	uint64_t n = S_ISDIR(st->st_mode) ? 1 : SBX_MAX((uint64_t)st->st_nlink, UINT64_C(1));

	usage->n_bytes += (uint64_t)st->st_blocks * BLOCK / n;
	usage->n_inodes++;
}

int sbx_store_usage(int dir_fd, struct sbx_usage *ret, struct sbx_err *err)
{
	struct sbx_usage usage = {.complete = true};
	WALK struct walk *walk = NULL;
	struct walk_item item;
	int r = walk_new(dir_fd, -EBADF, &walk, err);

	while (r >= 0 && (r = walk_next(walk, &item, err)) > 0) {
		if (r != WALK_ENTRY)
			continue;
		count(&usage, &item.st);
		if (!S_ISDIR(item.st.st_mode))
			continue;
		r = walk_enter(walk, err);
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV)
			r = 0; /* exchanged or removed meanwhile: whoever uses it goes on */
	}
	if (r == -ESTALE) {
		usage.complete = false;
		r = 0;
	}
	if (r < 0)
		return r;
	*ret = usage;
	return 0;
}
