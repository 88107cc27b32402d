/* SPDX-License-Identifier: MIT */
/* What create.c shares with sandbox.c. */
#ifndef SBX_STORE_SANDBOX_H
#define SBX_STORE_SANDBOX_H

#include "sbx/store.h"

#define SANDBOX_JSON "sandbox.json"

/* Private host ids: ranges of 65536 from 2^30 on, up to what stays below the "no id" value. */
#define SANDBOX_ID_FIRST    UINT32_C(1073741824)
#define SANDBOX_ID_RANGE    UINT32_C(65536)
#define SANDBOX_ID_N_RANGES ((UINT32_MAX - SANDBOX_ID_FIRST) / SANDBOX_ID_RANGE)

static inline bool sandbox_id_base_valid(uid_t id_base)
{
	return id_base >= SANDBOX_ID_FIRST && id_base % SANDBOX_ID_RANGE == 0 &&
	       (id_base - SANDBOX_ID_FIRST) / SANDBOX_ID_RANGE < SANDBOX_ID_N_RANGES;
}

/* Writes sandbox.json durably. */
int sandbox_save(int sandbox_fd, const struct sbx_sandbox *sandbox, struct sbx_err *err);

#endif
