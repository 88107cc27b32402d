/* SPDX-License-Identifier: MIT */
/* Operations on the stack of layers: other versions than the head, squash, gc. */
#ifndef SBX_DAEMON_STACK_OPS_H
#define SBX_DAEMON_STACK_OPS_H

#include "client.h"

/* Beyond this many layers runs of them are squashed by themselves. */
#define STACK_SQUASH_ABOVE 40
#define STACK_SQUASH_RUN   16 /* least layers that are worth it */
#define STACK_SQUASH_ACROSS 60 /* longer than this it is squashed across the pins of sessions too */

void op_at_version(struct request *request);
void op_diff(struct request *request);
void op_squash(struct request *request);
void op_gc(struct request *request);
/* Begins a gc that waits. Call when what barred it may have ended. */
void stack_serve_gc(struct daemon *daemon);
/* Squashes when the stack has grown long. Call after the head moved. */
void stack_maybe_squash(struct daemon *daemon);

#endif
