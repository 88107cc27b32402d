/* SPDX-License-Identifier: MIT */
/*
 * The file that a file tool works on: in the head's view, or beneath the root of a live session,
 * where a command may swap anything at any moment. What is there is decided on a descriptor that
 * is then used, never on a name; nothing but a regular file is ever opened for more than that.
 */
#ifndef SBX_OPS_TARGET_H
#define SBX_OPS_TARGET_H

#include "job_args.h"

struct sbx_target {
	char path[SBX_PATH_MAX + 1]; /* relative to the workspace root */
	int session_fd;              /* borrowed; -EBADF: the head's view */
	struct sbx_view *view;       /* NULL in a session */
};

#define SBX_TARGET_INIT ((struct sbx_target){.session_fd = -EBADF})

/* Takes path and place from the job's arguments. */
int sbx_target_init(struct sbx_target *target, struct sbx_job *job, struct sbx_err *err);
void sbx_target_done(struct sbx_target *target);
#define SBX_TARGET SBX_CLEANUP(sbx_target_done)

/*
 * Opens the target for reading. SBX_KIND_NOT_FOUND (-ENOENT) when there is nothing of that name,
 * SBX_KIND_INVALID with what it is when it is no regular file.
 */
int sbx_target_open(
	const struct sbx_target *target, int *ret_fd, struct stat *ret_st, struct sbx_err *err);

/* Answers with the owners of the target's lines; never in a session. */
int sbx_target_blame(const struct sbx_target *target, struct sbx_job *job, struct sbx_err *err);

/* Records why opening path failed with -r: "is a symbolic link", "no such file", ... Returns r. */
int sbx_target_explain(const char *path, int r, struct sbx_err *err);
/* Refuses path for being something else than a regular file. path_fd: its O_PATH descriptor. */
int sbx_target_refuse(const char *path, int path_fd, mode_t mode, struct sbx_err *err);

#endif
