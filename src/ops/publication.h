/* SPDX-License-Identifier: MIT */
/*
 * One publication on its way from a tree to a layer or a reject: what the jobs publish, reresolve
 * and reject_retry have in common. In this order:
 *
 *   begin → capture → resolve → seal, or keep as a reject
 *
 * Until seal or reject the tree stays at home (moved.h), and is our side's whole work all the time.
 */
#ifndef SBX_OPS_PUBLICATION_H
#define SBX_OPS_PUBLICATION_H

#include "changeset.h"
#include "conflict.h"
#include "moved.h"
#include "resolve.h"
#include "sbx/job.h"
#include "sbx/owners.h"
#include "sbx/view.h"

/* Up to so many entries each file and directory is synced; more are synced with the file system. */
#define SBX_PUBLISH_SYNC_EACH_MAX 32

struct sbx_publication {
	struct sbx_job *job;
	int home_fd;           /* where the tree is and goes back to */
	const char *tree_name; /* in it */
	int tree_fd;
	int stage_fd; /* home/staging: merged files, while it is resolved */

	/* borrowed from the job's arguments or from texts below */
	const char *owner;
	const char *command; /* or NULL */
	const char *layer_id;
	const char *reject_id;
	uint64_t base_version;
	uint64_t version; /* of the head that it is resolved against */

	struct sbx_stack base_stack;
	struct sbx_stack head_stack;
	struct sbx_view *base;
	struct sbx_view *head;
	struct sbx_changeset set;
	bool is_captured; /* set is complete */
	struct sbx_conflicts conflicts;
	struct sbx_counts counts;
};

void sbx_publication_done(struct sbx_publication *p);
#define SBX_PUBLICATION SBX_CLEANUP(sbx_publication_done)

/* Opens the tree and the views; home_fd (taken), the names and the stacks are set. */
int sbx_publication_begin(struct sbx_publication *p, struct sbx_err *err);
int sbx_publication_capture(struct sbx_publication *p, struct sbx_err *err);

enum sbx_publication_outcome {
	SBX_PUBLICATION_NO_OP,
	SBX_PUBLICATION_READY, /* to be sealed */
	SBX_PUBLICATION_CONFLICT,
};
/* Against the head, if that is another one than the base; fills in counts or conflicts. */
int sbx_publication_resolve(
	struct sbx_publication *p, enum sbx_publication_outcome *ret, struct sbx_err *err);

/*
 * Makes layers/<layer_id> of it, complete and durable, and fills in the job's result. prior: see
 * ownership.h. On failure the tree is at home again.
 */
int sbx_publication_seal(
	struct sbx_publication *p, const struct sbx_owners *prior, struct sbx_err *err);
/* The same in place, for a layer whose home is the layer. */
int sbx_publication_seal_again(
	struct sbx_publication *p, const struct sbx_owners *prior, struct sbx_err *err);

/* The job's result when there is nothing to publish. */
void sbx_publication_no_op(struct sbx_publication *p);

/*
 * Each phase for all files before the next one begins: then a journaling file system needs a single
 * commit, that of the first fsync. (ext4 notes a block as written only when its I/O has ended,
 * hence the wait.)
 */
enum sbx_sync_phase {
	SBX_SYNC_START, /* begins to write out */
	SBX_SYNC_WAIT,  /* until the data are there */
	SBX_SYNC_DONE,  /* fsync(2), directories too */
	SBX_SYNC_N_PHASES,
};
int sbx_publish_sync_each(const struct sbx_changeset *set, int tree_fd, enum sbx_sync_phase phase,
	struct sbx_err *err);
int sbx_publish_sync_phase(
	int dir_fd, const char *name, enum sbx_sync_phase phase, struct sbx_err *err);
/* fsync(2) alone, of a file or directory. */
static inline int sbx_publish_sync_name(int dir_fd, const char *name, struct sbx_err *err)
{
	return sbx_publish_sync_phase(dir_fd, name, SBX_SYNC_DONE, err);
}
/* The whole file system of fd at once. */
int sbx_publish_sync_all(int fd, struct sbx_err *err);

#endif
