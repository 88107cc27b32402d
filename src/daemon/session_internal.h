/* SPDX-License-Identifier: MIT */
/* Between session.c (what sessions there are), session_run.c (init and its messages) and
 * session_end.c (stopping, releasing, publishing). */
#ifndef SBX_DAEMON_SESSION_INTERNAL_H
#define SBX_DAEMON_SESSION_INTERNAL_H

#include "command.h"
#include "commit.h"
#include "session.h"
#include "session_dir.h"
#include "slots.h"

/* A session object without slot and directory. */
int session_alloc(struct daemon *daemon, const char *id, bool managed, struct session **ret);
/* Asks for a slot; the state becomes PREPARING, then READY. */
int session_prepare_slot(struct session *session, struct sbx_err *err);
/* In READY: starts init when commands wait, or goes on to the end that was asked for. */
void session_advance(struct session *session);
/* Starts an init and sends it the waiting commands. On failure the session is as before. */
int session_start_init(struct session *session, struct sbx_err *err);
/* Kills init, and with it everything in the session: the state becomes STOPPING. */
void session_kill_init(struct session *session);
/* It was to be the next automatic session and cannot be: an exec makes another and tells why. */
void session_give_up_standby(struct session *session);
void session_close_init(struct session *session);
/* No process is left but init. */
void session_emptied(struct session *session);
/* Init is dead and everything in the session with it. */
void session_stopped(struct session *session);
/* Its directory's work is done, or never began. */
void session_bury_dir(struct session *session);
/* Publishes what its upper holds; no process and no mount uses it any more. */
void session_publish_now(struct session *session);
/* Fails every command of the session and ends it: it could not be prepared or started. */
void session_fail(struct session *session, const struct sbx_err *err);
/* Takes an untouched automatic session's slot and directory for the next one. False: it cannot. */
bool session_become_standby(struct session *session);

#endif
