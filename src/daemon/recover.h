/* SPDX-License-Identifier: MIT */
#ifndef SBX_DAEMON_RECOVER_H
#define SBX_DAEMON_RECOVER_H

#include "daemon.h"

/*
 * Takes up what the last sandboxd left, with the lock held and none of its processes alive:
 * publications that were under way are put back into their sessions, automatic sessions are
 * published (their commands learn the outcome), managed ones come back, and what nothing refers
 * to is removed. Clients are served when it is done; the publications go on meanwhile.
 */
int recover(struct daemon *daemon, struct sbx_err *err);

#endif
