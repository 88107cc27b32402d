/* SPDX-License-Identifier: MIT */
/*
 * The networks of sessions. "bridge" in short (docs/security.md has the walls): every session has
 * one end of a veth pair, the bridge sbx0 the other; the host routes and masquerades, and lets
 * nothing through to itself, other sessions and closed networks but what was allowed.
 */
#ifndef SBX_NETWORK_H
#define SBX_NETWORK_H

#include "sbx/err.h"

enum sbx_network {
	SBX_NETWORK_NONE, /* own namespace, loopback up */
	SBX_NETWORK_HOST,
	SBX_NETWORK_BRIDGE,
};
/* "none", "host", "bridge"; -EINVAL. */
int sbx_network_parse(const char *word, enum sbx_network *ret);

/* An exception from what is closed. Addresses are in host order. */
struct sbx_allow {
	uint32_t address; /* no bit set beyond the prefix */
	uint8_t prefix;
	uint16_t port; /* of TCP and UDP; 0: everything */
};
#define SBX_ALLOW_MAX 64 /* exceptions of one sandbox */

/* "10.1.2.3", "10.1.2.0/24", either with ":PORT". */
int sbx_allow_parse(const char *text, struct sbx_allow *ret, struct sbx_err *err);

/* What resolv.conf says inside, and the name servers that it names. */
#define SBX_NAME_SERVERS_MAX 3 /* MAXNS: no resolver asks more */
struct sbx_resolver {
	uint32_t servers[SBX_NAME_SERVERS_MAX];
	size_t n_servers;
	char *text;
};
/*
 * Taken from the host's resolv.conf. Name servers on the host's loopback, and IPv6 ones, cannot be
 * reached from inside: where the host has the stub of systemd-resolved, those that it asks are
 * taken instead. Without any the text says why, and n_servers is 0. root_fd: the host's root.
 */
int sbx_resolver_load(int root_fd, struct sbx_resolver *ret, struct sbx_err *err);
void sbx_resolver_done(struct sbx_resolver *resolver);

/* Whether the host forwards IPv4 packets, which "bridge" needs; the message says what to do. */
int sbx_network_check_forwarding(struct sbx_err *err);
/* Removes from the caller's network namespace what sandboxes left that are gone: their rules, and
 * the bridge when nobody uses it. Needs root. */
int sbx_network_sweep(struct sbx_err *err);

#endif
