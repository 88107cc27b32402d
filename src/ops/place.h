/* SPDX-License-Identifier: MIT */
/* One thing by the directory that holds it, in a tree or in a layer, and two of them compared. */
#ifndef SBX_OPS_PLACE_H
#define SBX_OPS_PLACE_H

#include "sbx/ignore.h"
#include "trail.h"

struct sbx_place {
	int dir_fd; /* borrowed: ends with the next step of the trail that it came from */
	const char *name;
	struct stat st;
	size_t layer; /* of a view: which one shows it */
};

/* What a view shows at the trail's present directory under name: 1, 0 for nothing, or -errno. */
int sbx_place_in_view(struct sbx_trail *trail, enum sbx_trail_column column, const char *name,
	struct sbx_place *ret);
/* What the tree has there. -ENOENT when it has nothing. */
int sbx_place_in_tree(struct sbx_trail *trail, const char *name, struct sbx_place *ret);

enum sbx_difference {
	SBX_DIFFERS_KIND = 1 << 0, /* then nothing else is looked at */
	SBX_DIFFERS_CONTENT = 1 << 1,
	SBX_DIFFERS_META = 1 << 2, /* mode, owner, xattrs */
	SBX_DIFFERS_MTIME = 1 << 3,
};
/* The differences as a set of flags, or -errno. The same inode does not differ from itself. */
int sbx_place_compare(const struct sbx_place *a, const struct sbx_place *b);
/* For regular files, links and FIFOs of one kind: 1 when they hold the same, 0 or -errno. */
int sbx_place_same_content(const struct sbx_place *a, const struct sbx_place *b);
/* A whole regular file: -EFBIG over max bytes. */
int sbx_place_read(const struct sbx_place *place, size_t max, struct sbx_buf *ret);

/* Adds the .gitignore that the base has in the trail's present directory, if any. *ret: it has. */
int sbx_ignore_load(struct sbx_ignore *ignore, struct sbx_trail *trail, bool *ret_found);

#endif
