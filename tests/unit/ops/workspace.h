/* SPDX-License-Identifier: MIT */
/*
 * A sandbox without its daemon: sessions are real overlay mounts in a mount namespace of their own,
 * commands are shell scripts run by root in them, publications are the jobs. Needs root.
 */
#ifndef TEST_OPS_WORKSPACE_H
#define TEST_OPS_WORKSPACE_H

#include "fixture.h"

struct workspace {
	struct fixture f;
	struct sbx_stack head;
	int version;
	int n_ids;
};

/* Skips the test when overlays cannot be mounted here. */
void workspace_init(struct workspace *w);
void workspace_done(struct workspace *w);
#define WORKSPACE SBX_CLEANUP(workspace_done)

/* A session on the present head. */
struct session {
	char name[32];
	struct sbx_stack base;
	int base_version;
};
void session_begin(struct workspace *w, struct session *s, const char *name);
void session_done(struct session *s);
#define SESSION SBX_CLEANUP(session_done)

/* Runs a script in the session's overlay; it must exit 0. */
void session_run(struct workspace *w, const struct session *s, const char *script);
/* Publishes; what was published is the new head. */
struct outcome session_publish(struct workspace *w, const struct session *s);
/* The same, with the job's arguments changed before: {"key": value} or NULL. */
struct outcome session_job(
	struct workspace *w, const struct session *s, const char *job, const char *more);
/* Puts a prepared layer on the head. */
void workspace_commit(struct workspace *w, const struct outcome *o);

/* begin, run, publish in one; asserts the outcome. */
void workspace_do(struct workspace *w, const char *name, const char *script);
/* What a script prints in a read-only mount of the head. Lives until the next call. */
const char *workspace_see(struct workspace *w, const char *script);
/* "1+2=A 3+1=B": start, count and owner without its prefix; "none": no record. */
const char *workspace_blame(struct workspace *w, const char *path);
/* Runs a script in the store's directory, outside of any mount; what it prints. */
const char *workspace_look(struct workspace *w, const char *script);

const char *outcome_text(const struct outcome *o, const char *key);
int64_t outcome_int(const struct outcome *o, const char *key);
/* "path:kind path:kind" of the conflicts, in order. */
const char *outcome_conflicts(const struct outcome *o);

#endif
