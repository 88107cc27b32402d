/* SPDX-License-Identifier: MIT */
/*
 * Interfaces, addresses and routes of the namespace that a route netlink socket belongs to.
 * IPv4 addresses are in host order. All return 0 or -errno, as the kernel answers.
 */
#ifndef SBX_SESSION_LINK_H
#define SBX_SESSION_LINK_H

#include <linux/if_ether.h>
#include <net/if.h>

#include "netlink.h"

struct sbx_link {
	int index;
	char name[IFNAMSIZ];
	char kind[16]; /* "bridge", "veth"; "" of a real one */
	uint8_t mac[ETH_ALEN];
};

/* -ENODEV: there is none of that name. */
int sbx_link_find(struct sbx_netlink *nl, const char *name, struct sbx_link *ret);
typedef int (*sbx_link_fn)(const struct sbx_link *link, void *data);
int sbx_link_list(struct sbx_netlink *nl, sbx_link_fn found, void *data);

/* Both are down and without addresses. */
int sbx_link_new_bridge(struct sbx_netlink *nl, const char *name, const uint8_t mac[ETH_ALEN]);
struct sbx_link_pair {
	const char *name, *peer_name;
	int bridge; /* index; the first end becomes its port */
	int peer_ns;
	const uint8_t *peer_mac;
};
int sbx_link_new_pair(struct sbx_netlink *nl, const struct sbx_link_pair *pair);
/* The port carries frames of that address only, and none to or from others that are so shut. */
int sbx_link_shut_port(struct sbx_netlink *nl, int index, const uint8_t mac[ETH_ALEN]);
int sbx_link_up(struct sbx_netlink *nl, int index);
/* No IPv6 address comes by itself when it is brought up. */
int sbx_link_without_ipv6(struct sbx_netlink *nl, int index);
int sbx_link_delete(struct sbx_netlink *nl, int index);

int sbx_link_add_address(struct sbx_netlink *nl, int index, uint32_t address, uint8_t prefix);
/* The oldest address of an interface; -ENOENT: it has none. */
int sbx_link_address(struct sbx_netlink *nl, int index, uint32_t *ret_address, uint8_t *ret_prefix);
/* The gateway need not be in a network of the interface's. */
int sbx_link_default_route(struct sbx_netlink *nl, int index, uint32_t gateway);
/* Every IPv4 route of every table, those of local addresses included, but default routes. */
typedef void (*sbx_route_fn)(uint32_t address, uint8_t prefix, int index, void *data);
int sbx_link_routes(struct sbx_netlink *nl, sbx_route_fn found, void *data);

#endif
