/* SPDX-License-Identifier: MIT */
/* The session's side of its network: what is set in the calling process's fresh namespace, which
 * belongs to the initial user namespace, where a session's root holds no capability at all. */
#ifndef SBX_SESSION_NET_H
#define SBX_SESSION_NET_H

#include <sys/types.h>

#include "sbx/err.h"

/* The loopback interface up, every port free to bind and ICMP echo sockets allowed for the
 * sandbox's groups. */
int sbx_net_ready(int proc_fd, gid_t id_base, struct sbx_err *err);

/* Interfaces that are made from now on have no IPv6. */
int sbx_net_disable_ipv6(int proc_fd, struct sbx_err *err);
/* Brings an interface up, with this address alone, all else being behind the gateway: there are no
 * neighbours to be asked for. Addresses are in host order. */
int sbx_net_join(const char *interface, uint32_t address, uint32_t gateway, struct sbx_err *err);

#endif
