/* SPDX-License-Identifier: MIT */
/* What commit.c, the sequencer, and commit_write.c, the writer, share. */
#ifndef SBX_DAEMON_COMMIT_INTERNAL_H
#define SBX_DAEMON_COMMIT_INTERNAL_H

#include <sys/queue.h>
#include <sys/types.h>

#include "commit.h"

enum kind {
	KIND_SESSION,   /* job publish, then reresolve */
	KIND_REJECT,    /* job reject_retry, then reresolve */
	KIND_OPERATION, /* a file job, run again when the head moved */
	KIND_SQUASH,    /* job squash: only needs its layers to be still there, in one run */
};

struct publication {
	TAILQ_ENTRY(publication) entry;
	TAILQ_ENTRY(publication) in_all;
	struct commits *commits;
	enum kind kind;
	const char *job;          /* the one that prepares it */
	struct json_object *args; /* of that job, without what depends on the head */
	int aside_fd;             /* borrowed; 0: none */
	char layer_id[SBX_ID_SIZE];
	char operation_id[SBX_ID_SIZE];
	struct sbx_head prepared; /* the head it fits on */
	struct sbx_stack remove;  /* squash */
	uint64_t version;         /* planned */
	struct json_object *result;
	commit_done_fn done;
	void *data;
};
TAILQ_HEAD(publication_list, publication);

struct commits {
	struct daemon *daemon;
	struct sbx_head planned; /* the head once everything accepted is written */
	struct publication_list
		queue; /* prepared, in the sequencer; the first is in hand if busy */
	bool sequencing;
	struct publication_list accepted; /* planned, waiting for the writer */
	struct publication_list writing;
	bool is_writing;
	struct sbx_buf batch;
	off_t log_size;  /* before the batch */
	uint64_t oldest; /* the versions before it are to be forgotten */
	bool paused;
	void (*begin)(void *data); /* once what was under way has ended; NULL: called already */
	void *begin_data;
	struct publication_list paused_list; /* not even begun */
	size_t n_paused;
	struct publication_list all; /* that are not done */
	size_t n;
};

/* The end of a publication, for whoever waits for it; frees it. */
void publication_finish(
	struct publication *p, const struct sbx_err *err, struct json_object *details);
/* Goes on with what is prepared. */
void commits_sequence(struct commits *commits);
/* Writes what is accepted, unless a batch is being written: its end comes back here. */
void commits_write(struct commits *commits);
/* Plans from the head that is durable. */
int commits_replan(struct commits *commits);

#endif
