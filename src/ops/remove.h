/* SPDX-License-Identifier: MIT */
#ifndef SBX_OPS_REMOVE_H
#define SBX_OPS_REMOVE_H

#include "sbx/job.h"

int sbx_job_remove(struct sbx_job *job, struct sbx_err *err);

#endif
