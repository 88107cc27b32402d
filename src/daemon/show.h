/* SPDX-License-Identifier: MIT */
/* What people ask sandboxd about itself: the sandbox, its sessions and its commands. */
#ifndef SBX_DAEMON_SHOW_H
#define SBX_DAEMON_SHOW_H

#include "client.h"

void op_inspect(struct request *request);
void op_session_create(struct request *request);
void op_session_list(struct request *request);
void op_session_show(struct request *request);
void op_session_diff(struct request *request);
void op_session_publish(struct request *request);
void op_session_discard(struct request *request);
void op_command_list(struct request *request);
void op_command_show(struct request *request);
void op_command_tail(struct request *request);
void op_command_kill(struct request *request);
void op_stop(struct request *request);

#endif
