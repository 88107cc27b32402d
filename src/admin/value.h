/* SPDX-License-Identifier: MIT */
/* How one value looks, by the name that it has in a result. */
#ifndef SBX_ADMIN_VALUE_H
#define SBX_ADMIN_VALUE_H

#include "sbx/json.h"

/* Whether values of this name line up at their beginning although they are numbers (times). */
bool sbx_value_is_text(const char *key);

/* 1536 → "1.5 KiB" */
int sbx_value_bytes(struct sbx_buf *out, uint64_t n_bytes);

#endif
