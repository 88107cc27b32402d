/* SPDX-License-Identifier: MIT */
/* What other files of the store need of head_log.c. */
#ifndef SBX_STORE_HEAD_LOG_H
#define SBX_STORE_HEAD_LOG_H

#include "sbx/store.h"

#define HEAD_LOG "head.log"

/* Writes a log with version 1, the base layer alone. */
int head_log_create(int store_fd, const char *base_layer, uint64_t time_ns, struct sbx_err *err);

/* Whether the head or an older version that the log still knows has this layer. */
bool head_log_names(const struct sbx_head_log *log, const char *layer_id);

/* The i-th newest version that removed layers, and which; false when there are no more. */
bool head_log_removal(const struct sbx_head_log *log, size_t i, uint64_t *ret_version,
	const struct sbx_stack **ret_layers);

#endif
