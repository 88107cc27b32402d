/* SPDX-License-Identifier: MIT */
#ifndef SBX_DAEMON_FILEOP_H
#define SBX_DAEMON_FILEOP_H

#include "client.h"

/* file_read, file_blame: a job on the head, or in a live session. */
void op_file_read(struct request *request);
/* file_write, file_edit: a publication of one path, or a change in a live session. */
void op_file_change(struct request *request);
/* Any job that only reads the store: gets "args", "root_at", "head", "version". */
void op_read_job(struct request *request);

#endif
