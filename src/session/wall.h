/* SPDX-License-Identifier: MIT */
/* The nftables rules around the bridge: what they are, and when they are there. */
#ifndef SBX_SESSION_WALL_H
#define SBX_SESSION_WALL_H

#include <linux/if_ether.h>

#include "netlink.h"
#include "sbx/network.h"

#define SBX_BRIDGE_NAME "sbx0"

/* The pool is a /16; its address .0.1 is the bridge's. Each sandbox that runs has a block of it, a
 * /24, by number. */
#define SBX_POOL_PREFIX 16
#define SBX_BLOCKS_MAX  255 /* 1..254 are given out */
#define SBX_BLOCK_SIZE  256
/* Connections through the host that a sandbox has at a time: each takes one of the places of
 * nf_conntrack_max, of which small hosts have 16384. */
#define SBX_FLOWS_MAX 4096
static inline uint32_t sbx_pool_gateway(uint32_t pool)
{
	return pool | 1;
}
static inline uint32_t sbx_pool_address(uint32_t pool, unsigned int block, unsigned int index)
{
	return pool | block << 8 | index;
}
/* The hardware address that goes with each. */
void sbx_pool_mac(unsigned int block, unsigned int index, uint8_t ret[ETH_ALEN]);

struct sbx_wall {
	uint32_t pool;
	unsigned int block;
	const struct sbx_allow *allow;
	size_t n_allow;
	const struct sbx_resolver *resolver;
};

/*
 * Puts up, or replaces, the rules of one block and those that all share. nl stays open as long as
 * the block is used: the kernel frees it when it is closed. -EPERM: somebody else has the block.
 */
int sbx_wall_put_up(struct sbx_netlink *nl, const struct sbx_wall *wall);
/* Whether all of it is still there: 0, -ENOENT. */
int sbx_wall_check(struct sbx_netlink *nl, unsigned int block);
/* Which blocks are somebody's. */
int sbx_wall_blocks(struct sbx_netlink *nl, bool ret_used[static SBX_BLOCKS_MAX]);
/* Removes the rules of these blocks, unless they are somebody's now; then the shared ones too when
 * no block has any. *ret_empty says whether that was so. */
int sbx_wall_sweep(
	struct sbx_netlink *nl, const bool doomed[static SBX_BLOCKS_MAX], bool *ret_empty);

#endif
