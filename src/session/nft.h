/* SPDX-License-Identifier: MIT */
/*
 * nftables: batches of changes that come into force together or not at all. The one home of
 * libnftnl. A batch is built call by call; what goes wrong meanwhile (there is no memory) is told
 * by its commit.
 */
#ifndef SBX_SESSION_NFT_H
#define SBX_SESSION_NFT_H

#include <linux/netfilter/nf_tables.h>

#include "netlink.h"

enum { SBX_NFT_NAME_SIZE = 32 }; /* of our tables, chains and sets */

struct sbx_nft;

int sbx_nft_new(struct sbx_nft **ret);
void sbx_nft_free(struct sbx_nft *nft); /* NULL is fine */
static inline void sbx_nft_free_pointer(struct sbx_nft **nft)
{
	sbx_nft_free(*nft);
}
#define SBX_NFT SBX_CLEANUP(sbx_nft_free_pointer)

/* The table that the following calls are about; made unless it is there. flags: NFT_TABLE_F_*. */
void sbx_nft_table(struct sbx_nft *nft, uint8_t family, const char *name, uint32_t flags);
/* Removes it with all that is in it; it has to be there. */
void sbx_nft_delete_table(struct sbx_nft *nft, uint8_t family, const char *name);

struct sbx_nft_hook {
	const char *type; /* "filter", "nat" */
	uint32_t number;  /* NF_INET_..., NF_NETDEV_INGRESS */
	int32_t priority;
	const char *device; /* of the netdev family, else NULL */
};
/* hook: NULL for a chain that others go to. The policy is to accept. */
void sbx_nft_chain(struct sbx_nft *nft, const char *name, const struct sbx_nft_hook *hook);

/* type: nft(8)'s number of the key's type, for those who list it. flags: NFT_SET_*. */
void sbx_nft_set(
	struct sbx_nft *nft, const char *name, uint32_t type, uint32_t key_size, uint32_t flags);
/* Keys, key_size each; interval: the odd ones are the first keys behind an interval. */
void sbx_nft_elements(struct sbx_nft *nft, const char *set, const void *keys, uint32_t key_size,
	size_t n, bool interval);

/* A rule: begin, what it looks at and compares, one verdict or statement, end. */
void sbx_nft_rule(struct sbx_nft *nft, const char *chain);
void sbx_nft_rule_end(struct sbx_nft *nft);
/* Loads into a register, NFT_REG_1.. or NFT_REG32_00... */
void sbx_nft_payload(struct sbx_nft *nft, enum nft_payload_bases base, uint32_t offset,
	uint32_t size, uint32_t reg);
void sbx_nft_meta(struct sbx_nft *nft, enum nft_meta_keys key, uint32_t reg);
void sbx_nft_ct_state(struct sbx_nft *nft, uint32_t reg);
void sbx_nft_mask(struct sbx_nft *nft, uint32_t reg, const void *mask, uint32_t size);
/* The rule goes on when it holds. */
void sbx_nft_compare(
	struct sbx_nft *nft, uint32_t reg, enum nft_cmp_ops op, const void *value, uint32_t size);
void sbx_nft_lookup(struct sbx_nft *nft, uint32_t reg, const char *set, bool inverted);
/* Holds when the key in the register has more than that many connections; set: of the same keys,
 * NFT_SET_EVAL, where they are counted. */
void sbx_nft_connections_over(
	struct sbx_nft *nft, uint32_t reg, const char *set, uint32_t n_connections);
void sbx_nft_verdict(struct sbx_nft *nft, int verdict, const char *chain); /* NFT_GOTO, NF_DROP */
void sbx_nft_reject_icmp(struct sbx_nft *nft, uint8_t code);
void sbx_nft_reject_tcp(struct sbx_nft *nft); /* a rule that matches TCP only */
void sbx_nft_masquerade(struct sbx_nft *nft);

/* generation: the change fails with -ERESTART unless the rules are still of it; 0: of any. */
int sbx_nft_commit(struct sbx_nft *nft, struct sbx_netlink *nl, uint32_t generation);

int sbx_nft_generation(struct sbx_netlink *nl, uint32_t *ret);
/* All tables of a family; owned: somebody's socket keeps it. */
typedef void (*sbx_nft_table_fn)(const char *name, bool owned, void *data);
int sbx_nft_list_tables(struct sbx_netlink *nl, uint8_t family, sbx_nft_table_fn found, void *data);
/* 0, or -ENOENT. */
int sbx_nft_find_chain(
	struct sbx_netlink *nl, uint8_t family, const char *table, const char *chain);

#endif
