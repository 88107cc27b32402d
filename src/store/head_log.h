/* SPDX-License-Identifier: MIT */
/* What create.c needs of head_log.c. */
#ifndef SBX_STORE_HEAD_LOG_H
#define SBX_STORE_HEAD_LOG_H

#include "sbx/store.h"

#define HEAD_LOG "head.log"

/* Writes a log with version 1, the base layer alone. */
int head_log_create(int store_fd, const char *base_layer, uint64_t time_ns, struct sbx_err *err);

#endif
