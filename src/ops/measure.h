/* SPDX-License-Identifier: MIT */
#ifndef SBX_OPS_MEASURE_H
#define SBX_OPS_MEASURE_H

#include "sbx/job.h"

int sbx_job_measure(struct sbx_job *job, struct sbx_err *err);

#endif
