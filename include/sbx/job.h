/* SPDX-License-Identifier: MIT */
/*
 * Jobs: what workers do for sandboxd, one at a time, each a pure function of its arguments and the
 * store. Arguments and results are JSON objects; layers are named bottom first. sandboxd never
 * touches the files itself. A job that fails leaves the store as it was but for unreferenced
 * directories, which the next sweep removes.
 *
 *   publish    {"session_dir", "base": [...], "head": [...], "version", "owner", "command",
 *               "layer_id", "reject_id", "base_version"}
 *              Captures sessions/<session_dir>/upper against base, resolves against head, computes
 *              ownership, makes layers/<layer_id> durable.
 *              → {"outcome": "published", "layer_id", "added", "modified", "deleted", "merged",
 *                 "ignored", "dropped": [{"path", "kind"}]}
 *              → {"outcome": "no_op", "dropped"}
 *              → {"outcome": "rejected", "class", "conflicts": [...], "reject_id"}:
 *              the changeset is in rejects/<reject_id>
 *   reresolve  {"layer_id", "base" (the head it was prepared against), "head", ...}: the same
 *              outcomes for a prepared layer when the head moved before its commit.
 *   commit     {"batch"}: appends to head.log and syncs (descriptor: head.log)
 *   preview    {"session_dir", "base"}: what a publication would hold, changing nothing
 *   measure    {"session_dir", "pid_ns" (inode of its init's pid namespace; 0: no process)}
 *              → {"bytes", "inodes", "complete"}: what the session takes of the disk now
 *   intake     a request frame as memfd: see aside.h
 *   file_read, file_write, file_edit, file_blame, and those of sbx-admin (job_table)
 *
 * The file jobs take "args" as the tool's caller gave them (checked against the schema already),
 * "root_at", "head" or, for a live session, the descriptor of its overlay's root and "id_base".
 */
#ifndef SBX_JOB_H
#define SBX_JOB_H

#include "sbx/json.h"
#include "sbx/view.h"

/* What a worker holds: opened before it takes the first job. */
struct sbx_job_context {
	int sandbox_fd;  /* <state>/<id> */
	int store_fd;    /* <state>/<id>/store */
	int layers_fd;   /* .../store/layers */
	int rejects_fd;  /* .../store/rejects */
	int sessions_fd; /* <state>/<id>/sessions */
	int commands_fd; /* <state>/<id>/commands */
	int lock_fd;     /* sandboxd.lock: the next sandboxd waits until the last worker is gone */
	struct sbx_view *head; /* of the last job that looked at one, for the next; NULL at first */
	/* for jobs whose answer is long: sends raw bytes that belong to this job (cat, tail) */
	int (*chunk)(void *data, const void *bytes, size_t size);
	void *chunk_data;
};

struct sbx_job {
	struct sbx_job_context *context;
	struct json_object *args;    /* borrowed */
	int fd;                      /* the descriptor that came along, or -EBADF (borrowed) */
	struct json_object *result;  /* filled by the job */
	struct json_object *details; /* of a failure; may stay NULL */
};

typedef int (*sbx_job_fn)(struct sbx_job *job, struct sbx_err *err);

struct sbx_job_entry {
	const char *name;
	sbx_job_fn run;
};

/* NULL when there is no such job. */
const struct sbx_job_entry *sbx_job_find(const char *name);

#endif
