/* SPDX-License-Identifier: MIT */
#ifndef SBX_DAEMON_DISPATCH_H
#define SBX_DAEMON_DISPATCH_H

#include "client.h"

/* Hands a checked request to the one who answers it. */
void dispatch(struct request *request);

#endif
