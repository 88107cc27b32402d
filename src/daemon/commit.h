/* SPDX-License-Identifier: MIT */
/*
 * Publications. A worker prepares each against a snapshot of the head, many at once; then they
 * pass one at a time through the *sequencer*: one that was prepared against an older head is first
 * resolved again, touching only what changed in between. Its layer is then planned on top of the
 * head and waits for the *writer*, which appends all records that are waiting to head.log with one
 * fdatasync. Only then does the head that clients see move, and is anybody told.
 */
#ifndef SBX_DAEMON_COMMIT_H
#define SBX_DAEMON_COMMIT_H

#include "daemon.h"

/*
 * The end of a publication. result (borrowed) is the job's result with "outcome" and, when
 * published, "version"; NULL with err when it could not be done: then the session's upper is still
 * where it was (the job moves it back), the head is as before, and the work can be published again.
 */
typedef void (*commit_done_fn)(void *data, struct json_object *result, const struct sbx_err *err,
	struct json_object *details);

int commits_new(struct daemon *daemon, struct commits **ret);
void commits_free(struct commits *commits);
size_t commits_pending(const struct commits *commits);

/* New publications wait from now on; begin is called as soon as those under way have ended, perhaps
 * at once. Not while paused. */
void commits_pause(struct commits *commits, void (*begin)(void *data), void *data);
void commits_resume(struct commits *commits);

/* Forgets the versions before oldest as soon as head.log is not being written. */
void commits_forget(struct commits *commits, uint64_t oldest);
/* Adds the layers that publications under way were prepared against to the set ret. */
int commits_pinned_layers(const struct commits *commits, struct sbx_stack *ret);

/* Publishes sessions/<session_dir> that started from base. command: what made it, or NULL. */
int commit_session(struct commits *commits, const char *session_dir, const struct sbx_head *base,
	const char *owner, const char *command, commit_done_fn done, void *data);
/* Retries a reject: resolves its changeset against the head. */
int commit_reject(struct commits *commits, const char *reject_id, commit_done_fn done, void *data);
/* Publishes what a file job makes: job_name gets args (taken) and "head", "version", "layer_id",
 * "operation_id", and is run again when the head moves. aside_fd: as of pool.h; stays the caller's
 * until done. */
int commit_operation(struct commits *commits, const char *job_name, struct json_object *args,
	int aside_fd, commit_done_fn done, void *data);
/* Replaces layers of the head by what the job squash made of them. */
int commit_squash(
	struct commits *commits, const struct sbx_stack *remove, commit_done_fn done, void *data);

#endif
