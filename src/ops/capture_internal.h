/* SPDX-License-Identifier: MIT */
#ifndef SBX_OPS_CAPTURE_INTERNAL_H
#define SBX_OPS_CAPTURE_INTERNAL_H

#include "capture.h"
#include "dirlist.h"
#include "meta.h"
#include "place.h"
#include "trail.h"

/* A directory that the walk is in. */
struct sbx_capture_frame {
	struct sbx_dirlist names;
	size_t next;
	uint32_t index;        /* its entry */
	struct timespec mtime; /* to put back, since cleaning changes it */
	bool in_base;          /* the base has a directory at this path */
	bool hidden;           /* nothing of the base shows through here */
	bool xattr_whiteouts;  /* its opaque mark is "x": whiteouts may be files with a mark */
	bool renamed;          /* it or one above it came from elsewhere */
	bool ignored;
	bool dirty; /* an entry of it was removed or made */
};

struct sbx_capture {
	int tree_fd;
	int scratch_fd;
	struct sbx_view *base;
	bool read_only;
	dev_t dev;
	struct sbx_trail *trail;
	bool has_ignore;
	struct sbx_capture_frame *frames;
	size_t n_frames;
	size_t capacity;
	struct sbx_changeset *set;
	struct sbx_buf path;
	struct sbx_err *err;
};

static inline struct sbx_capture_frame *sbx_capture_top(struct sbx_capture *c)
{
	return &c->frames[c->n_frames - 1];
}

/* Fails with the path of name (NULL: the present directory) and what could not be done. */
int sbx_capture_fail(struct sbx_capture *c, int r, const char *what, const char *name);

/* capture_file.c: an entry of the present directory that is no directory. */
int sbx_capture_file(struct sbx_capture *c, const char *name);
/* A name that only the base has, below an opaque directory. */
int sbx_capture_absent(struct sbx_capture *c, const char *name);
/* Whether the entry at this name is ignored. */
bool sbx_capture_is_ignored(struct sbx_capture *c, const char *name, bool is_dir);

/* capture_rename.c: whether a directory has a redirect mark, and which: 1, 0 or -errno. */
int sbx_capture_redirect(int dir_fd, struct sbx_buf *ret_value);
/* The origin that a mark's value means for a directory of the present one. */
int sbx_capture_origin(
	const struct sbx_trail *trail, const char *value, struct sbx_buf *ret_origin);
/* The origin of a directory that was made whole earlier: 1, 0 for none, or -errno. */
int sbx_capture_known_origin(int dir_fd, struct sbx_view *base, struct sbx_buf *ret_origin);
/* Makes the present directory, whose mark says origin, whole and takes its mark away. */
int sbx_capture_make_whole(struct sbx_capture *c, const char *origin);

#endif
