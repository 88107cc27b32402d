/* SPDX-License-Identifier: MIT */
/* The spawner process, from its fork to its end. */
#ifndef SBX_SESSION_SPAWNER_MAIN_H
#define SBX_SESSION_SPAWNER_MAIN_H

#include "sbx/spawner.h"

#include "filter.h"

/* sock_fd: the spawner's end. parent: sandboxd, as it was before the fork. */
_Noreturn void sbx_spawner_main(const struct sbx_spawner_config *config,
	const struct sbx_filter *filter, int sock_fd, pid_t parent);

#endif
