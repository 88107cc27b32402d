/* SPDX-License-Identifier: MIT */
/* Rejects that are tried again or dropped: one thing at a time happens to a reject. */
#ifndef SBX_DAEMON_REJECT_OPS_H
#define SBX_DAEMON_REJECT_OPS_H

#include "client.h"

void op_reject_retry(struct request *request);
void op_reject_drop(struct request *request);
/* Forgets retries that are under way; their clients have gone. */
void retries_free(struct daemon *daemon);

#endif
