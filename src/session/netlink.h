/* SPDX-License-Identifier: MIT */
/*
 * Netlink messages, sent and answered. The one home of libmnl. A socket belongs to the network
 * namespace in which it was opened, wherever its owner goes later.
 */
#ifndef SBX_SESSION_NETLINK_H
#define SBX_SESSION_NETLINK_H

#include <linux/netlink.h>

#include "sbx/err.h"

struct sbx_netlink;

/* bus: NETLINK_ROUTE or NETLINK_NETFILTER. */
int sbx_netlink_open(int bus, struct sbx_netlink **ret, struct sbx_err *err);
void sbx_netlink_close(struct sbx_netlink *nl); /* NULL is fine */
static inline void sbx_netlink_close_pointer(struct sbx_netlink **nl)
{
	sbx_netlink_close(*nl);
}
#define SBX_NETLINK SBX_CLEANUP(sbx_netlink_close_pointer)

/* A message being built. What is put into one is ours and small: too much is our own mistake. */
struct sbx_netlink_message {
	struct nlmsghdr *header; /* into data */
	_Alignas(8) char data[1024];
};

/* Returns the family's header of that size, zeroed. */
void *sbx_netlink_begin(
	struct sbx_netlink_message *m, uint16_t type, uint16_t flags, size_t family_size);
void sbx_netlink_put(
	struct sbx_netlink_message *m, uint16_t attribute, const void *data, size_t size);
void sbx_netlink_put_u8(struct sbx_netlink_message *m, uint16_t attribute, uint8_t value);
void sbx_netlink_put_u32(struct sbx_netlink_message *m, uint16_t attribute, uint32_t value);
void sbx_netlink_put_string(struct sbx_netlink_message *m, uint16_t attribute, const char *value);
/* Room for the header of a nested family. */
void *sbx_netlink_put_room(struct sbx_netlink_message *m, size_t size);
struct nlattr *sbx_netlink_nest(struct sbx_netlink_message *m, uint16_t attribute);
void sbx_netlink_nest_end(struct sbx_netlink_message *m, struct nlattr *nest);

/*
 * The kernel does what is asked while it is sent, and its answers are there when that returns:
 * nothing here waits. Messages of the kernel with content go to found (NULL: nobody wants them),
 * which returns 0 to go on or -errno.
 */
typedef int (*sbx_netlink_fn)(const struct nlmsghdr *message, void *data);
/* One request: 0, or -errno as the kernel or found answered. */
int sbx_netlink_ask(
	struct sbx_netlink *nl, struct sbx_netlink_message *m, sbx_netlink_fn found, void *data);
/* Finished messages, also several in a row: 0, or the first -errno among the answers. */
int sbx_netlink_send(struct sbx_netlink *nl, const void *messages, size_t size,
	sbx_netlink_fn found, void *data);

/* The attributes behind the family's header by number; table[n] may be NULL afterwards. */
void sbx_netlink_parse(
	const struct nlmsghdr *message, size_t family_size, const struct nlattr *table[], size_t n);
void sbx_netlink_parse_nested(const struct nlattr *nest, const struct nlattr *table[], size_t n);
/* NULL, or an attribute of another size, reads as 0 or "". */
uint32_t sbx_netlink_u32(const struct nlattr *attribute);
const char *sbx_netlink_string(const struct nlattr *attribute);

#endif
