/* SPDX-License-Identifier: MIT */
/* The sandbox's user namespace: ids 0..65535 inside are id_base.. on the host. */
#ifndef SBX_SESSION_USERNS_H
#define SBX_SESSION_USERNS_H

#include <sys/types.h>

#include "sbx/err.h"

#define SBX_USERNS_IDS 65536u /* how many ids a sandbox has */

/* proc_fd: /proc. The namespace lives as long as its descriptor or a process in it. */
int sbx_userns_new(int proc_fd, uid_t id_base, int *ret_fd, struct sbx_err *err);

#endif
