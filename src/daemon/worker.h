/* SPDX-License-Identifier: MIT */
#ifndef SBX_DAEMON_WORKER_H
#define SBX_DAEMON_WORKER_H

#include <sys/types.h>

#include "sbx/job.h"

/* The life of a worker process: reads job frames from fd until it closes, then exits. parent is
 * sandboxd's pid: the worker ends with it. */
_Noreturn void worker_main(int fd, pid_t parent, const struct sbx_job_context *context);

#endif
