/* SPDX-License-Identifier: MIT */
/* The network of a session. The one home of libmnl. */
#ifndef SBX_SESSION_NET_H
#define SBX_SESSION_NET_H

#include <sys/types.h>

#include "sbx/err.h"

/*
 * Readies the calling process's fresh network namespace: the loopback interface up, every port
 * free to bind and ICMP echo sockets allowed for the sandbox's groups. The namespace belongs to
 * the initial user namespace, where a session's root holds no capability at all.
 */
int sbx_net_ready(int proc_fd, gid_t id_base, struct sbx_err *err);

#endif
