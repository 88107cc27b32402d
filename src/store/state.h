/* SPDX-License-Identifier: MIT */
/* The state root as a whole: sandboxes being made, and who has which host ids. */
#ifndef SBX_STORE_STATE_H
#define SBX_STORE_STATE_H

#include "sbx/store.h"

/* "a/b/.new-<id>": a sandbox that is not complete; whoever makes it holds its flock(2). */
#define STATE_NEW_PREFIX ".new-"
#define STATE_NAME_SIZE  (sizeof(STATE_NEW_PREFIX) + SBX_ID_MAX)

/* Opens the state root, making it (mode 0711) and its parents when they are missing. */
int state_open(const char *path, int *ret_fd, struct sbx_err *err);
/*
 * Makes <state>/.new-<id> with sandbox.json in it and a free id range, which it notes in sandbox;
 * *ret_fd holds its lock. -EEXIST: another create has that id under way; -ENOSPC: no range left.
 */
int state_reserve(int state_fd, struct sbx_sandbox *sandbox, int *ret_fd, struct sbx_err *err);
/* Removes what creates that died left behind. */
int state_sweep(int state_fd, struct sbx_err *err);
/* -EINVAL when one of the two directories contains the other or they are the same. */
int state_check_apart(int state_fd, int source_fd, struct sbx_err *err);

#endif
