/* SPDX-License-Identifier: MIT */
#include "nft.h"

#include <arpa/inet.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/gen.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

#define MESSAGE_MAX (32u << 10) /* the longest one: a few hundred set elements */

struct sbx_nft {
	int failed; /* 0 or -errno: nothing is built any more */
	uint32_t next_seq;
	uint8_t family;
	char table[SBX_NFT_NAME_SIZE];
	struct nftnl_rule *rule; /* being built */
	char *data;
	size_t size, capacity;
};

int sbx_nft_new(struct sbx_nft **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void sbx_nft_free(struct sbx_nft *nft)
{
	if (!nft)
		return;
	if (nft->rule)
		nftnl_rule_free(nft->rule);
	free(nft->data);
	free(nft);
}

/* Room for a message behind those that are there, or NULL. The first is the batch's begin. */
static char *reserve(struct sbx_nft *nft)
{
	char *data;

	if (nft->failed)
		return NULL;
	if (nft->capacity - nft->size >= MESSAGE_MAX)
		return nft->data + nft->size;
	data = realloc(nft->data, 2 * nft->capacity + 2 * MESSAGE_MAX);
	if (!data) {
		nft->failed = -ENOMEM;
		return NULL;
	}
	nft->data = data;
	nft->capacity = 2 * nft->capacity + 2 * MESSAGE_MAX;
	return nft->data + nft->size;
}

static void finish(struct sbx_nft *nft, const struct nlmsghdr *message)
{
	nft->size += NLMSG_ALIGN(message->nlmsg_len);
}

/* The header of the next message, or NULL. */
static struct nlmsghdr *start(struct sbx_nft *nft, uint16_t type, uint16_t flags)
{
	char *room;

	if (!nft->size && (room = reserve(nft)))
		finish(nft, nftnl_batch_begin(room, nft->next_seq++));
	room = reserve(nft);
	return room ? nftnl_nlmsg_build_hdr(room, type, nft->family, flags, nft->next_seq++) : NULL;
}

/* libnftnl's allocators say no more than NULL. */
static void *have(struct sbx_nft *nft, void *object)
{
	if (!object && !nft->failed)
		nft->failed = -ENOMEM;
	return object;
}

static void put_table(
	struct sbx_nft *nft, uint16_t type, uint16_t flags, const char *name, uint32_t table_flags)
{
	struct nftnl_table *table = have(nft, nftnl_table_alloc());
	struct nlmsghdr *message = start(nft, type, flags);

	if (table && message) {
		nftnl_table_set_u32(table, NFTNL_TABLE_FAMILY, nft->family);
		if (nftnl_table_set_str(table, NFTNL_TABLE_NAME, name) < 0)
			nft->failed = -ENOMEM;
		if (table_flags)
			nftnl_table_set_u32(table, NFTNL_TABLE_FLAGS, table_flags);
		nftnl_table_nlmsg_build_payload(message, table);
		finish(nft, message);
	}
	if (table)
		nftnl_table_free(table);
}

void sbx_nft_table(struct sbx_nft *nft, uint8_t family, const char *name, uint32_t flags)
{
	nft->family = family;
	(void)strncpy(nft->table, name, sizeof(nft->table) - 1); /* ours, shorter than that */
	put_table(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE, name, flags);
}

void sbx_nft_delete_table(struct sbx_nft *nft, uint8_t family, const char *name)
{
	nft->family = family;
	put_table(nft, NFT_MSG_DELTABLE, 0, name, 0);
}

static int describe_hook(struct nftnl_chain *chain, const struct sbx_nft_hook *hook)
{
	nftnl_chain_set_u32(chain, NFTNL_CHAIN_HOOKNUM, hook->number);
	nftnl_chain_set_s32(chain, NFTNL_CHAIN_PRIO, hook->priority);
	nftnl_chain_set_u32(chain, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	if (hook->device && nftnl_chain_set_str(chain, NFTNL_CHAIN_DEV, hook->device) < 0)
		return -ENOMEM;
	return nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, hook->type);
}

void sbx_nft_chain(struct sbx_nft *nft, const char *name, const struct sbx_nft_hook *hook)
{
	struct nftnl_chain *chain = have(nft, nftnl_chain_alloc());
	struct nlmsghdr *message = start(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE);

	if (chain && message) {
		if (nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, nft->table) < 0 ||
			nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, name) < 0 ||
			(hook && describe_hook(chain, hook) < 0))
			nft->failed = -ENOMEM;
		nftnl_chain_nlmsg_build_payload(message, chain);
		finish(nft, message);
	}
	if (chain)
		nftnl_chain_free(chain);
}

static struct nftnl_set *new_set(struct sbx_nft *nft, const char *name)
{
	struct nftnl_set *set = have(nft, nftnl_set_alloc());

	if (!set)
		return NULL;
	nftnl_set_set_u32(set, NFTNL_SET_FAMILY, nft->family);
	if (nftnl_set_set_str(set, NFTNL_SET_TABLE, nft->table) < 0 ||
		nftnl_set_set_str(set, NFTNL_SET_NAME, name) < 0)
		nft->failed = -ENOMEM;
	return set;
}

void sbx_nft_set(
	struct sbx_nft *nft, const char *name, uint32_t type, uint32_t key_size, uint32_t flags)
{
	struct nftnl_set *set = new_set(nft, name);
	struct nlmsghdr *message = start(nft, NFT_MSG_NEWSET, NLM_F_CREATE);

	if (set && message) {
		nftnl_set_set_u32(set, NFTNL_SET_ID, nft->next_seq);
		nftnl_set_set_u32(set, NFTNL_SET_KEY_TYPE, type);
		nftnl_set_set_u32(set, NFTNL_SET_KEY_LEN, key_size);
		nftnl_set_set_u32(set, NFTNL_SET_FLAGS, flags);
		nftnl_set_nlmsg_build_payload(message, set);
		finish(nft, message);
	}
	if (set)
		nftnl_set_free(set);
}

static void add_element(struct sbx_nft *nft, struct nftnl_set *set, const void *key,
	uint32_t key_size, uint32_t flags)
{
	struct nftnl_set_elem *element = have(nft, nftnl_set_elem_alloc());

	if (!element)
		return;
	if (nftnl_set_elem_set(element, NFTNL_SET_ELEM_KEY, key, key_size) < 0)
		nft->failed = -ENOMEM;
	if (flags)
		nftnl_set_elem_set_u32(element, NFTNL_SET_ELEM_FLAGS, flags);
	nftnl_set_elem_add(set, element); /* the set's now */
}

void sbx_nft_elements(struct sbx_nft *nft, const char *name, const void *keys, uint32_t key_size,
	size_t n, bool interval)
{
	struct nftnl_set *set = new_set(nft, name);
	struct nlmsghdr *message = start(nft, NFT_MSG_NEWSETELEM, NLM_F_CREATE);

	for (size_t i = 0; set && i < n; i++)
		add_element(nft, set, (const char *)keys + i * key_size, key_size,
			interval && i % 2 ? NFT_SET_ELEM_INTERVAL_END : 0);
	if (set && message && !nft->failed) {
		nftnl_set_elems_nlmsg_build_payload(message, set);
		finish(nft, message);
	}
	if (set)
		nftnl_set_free(set);
}

void sbx_nft_rule(struct sbx_nft *nft, const char *chain)
{
	nft->rule = have(nft, nftnl_rule_alloc());
	if (!nft->rule)
		return;
	nftnl_rule_set_u32(nft->rule, NFTNL_RULE_FAMILY, nft->family);
	if (nftnl_rule_set_str(nft->rule, NFTNL_RULE_TABLE, nft->table) < 0 ||
		nftnl_rule_set_str(nft->rule, NFTNL_RULE_CHAIN, chain) < 0)
		nft->failed = -ENOMEM;
}

void sbx_nft_rule_end(struct sbx_nft *nft)
{
	struct nlmsghdr *message = start(nft, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);

	if (nft->rule && message) {
		nftnl_rule_nlmsg_build_payload(message, nft->rule);
		finish(nft, message);
	}
	if (nft->rule)
		nftnl_rule_free(nft->rule);
	nft->rule = NULL;
}

/* An expression of the rule being built, the rule's already; or NULL. */
static struct nftnl_expr *add(struct sbx_nft *nft, const char *name)
{
	struct nftnl_expr *expr = nft->rule ? have(nft, nftnl_expr_alloc(name)) : NULL;

	if (expr)
		nftnl_rule_add_expr(nft->rule, expr);
	return expr;
}

static void put(struct sbx_nft *nft, struct nftnl_expr *expr, uint16_t attribute, const void *data,
	uint32_t size)
{
	if (expr && nftnl_expr_set(expr, attribute, data, size) < 0)
		nft->failed = -ENOMEM;
}

static void put_u32(
	struct sbx_nft *nft, struct nftnl_expr *expr, uint16_t attribute, uint32_t value)
{
	put(nft, expr, attribute, &value, sizeof(value));
}

void sbx_nft_payload(struct sbx_nft *nft, enum nft_payload_bases base, uint32_t offset,
	uint32_t size, uint32_t reg)
{
	struct nftnl_expr *expr = add(nft, "payload");

	put_u32(nft, expr, NFTNL_EXPR_PAYLOAD_BASE, base);
	put_u32(nft, expr, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	put_u32(nft, expr, NFTNL_EXPR_PAYLOAD_LEN, size);
	put_u32(nft, expr, NFTNL_EXPR_PAYLOAD_DREG, reg);
}

void sbx_nft_meta(struct sbx_nft *nft, enum nft_meta_keys key, uint32_t reg)
{
	struct nftnl_expr *expr = add(nft, "meta");

	put_u32(nft, expr, NFTNL_EXPR_META_KEY, key);
	put_u32(nft, expr, NFTNL_EXPR_META_DREG, reg);
}

void sbx_nft_ct_state(struct sbx_nft *nft, uint32_t reg)
{
	struct nftnl_expr *expr = add(nft, "ct");

	put_u32(nft, expr, NFTNL_EXPR_CT_KEY, NFT_CT_STATE);
	put_u32(nft, expr, NFTNL_EXPR_CT_DREG, reg);
}

void sbx_nft_mask(struct sbx_nft *nft, uint32_t reg, const void *mask, uint32_t size)
{
	static const char zero[16];
	struct nftnl_expr *expr = add(nft, "bitwise");

	put_u32(nft, expr, NFTNL_EXPR_BITWISE_SREG, reg);
	put_u32(nft, expr, NFTNL_EXPR_BITWISE_DREG, reg);
	put_u32(nft, expr, NFTNL_EXPR_BITWISE_LEN, size);
	put(nft, expr, NFTNL_EXPR_BITWISE_MASK, mask, size);
	put(nft, expr, NFTNL_EXPR_BITWISE_XOR, zero, size);
}

void sbx_nft_compare(
	struct sbx_nft *nft, uint32_t reg, enum nft_cmp_ops op, const void *value, uint32_t size)
{
	struct nftnl_expr *expr = add(nft, "cmp");

	put_u32(nft, expr, NFTNL_EXPR_CMP_SREG, reg);
	put_u32(nft, expr, NFTNL_EXPR_CMP_OP, op);
	put(nft, expr, NFTNL_EXPR_CMP_DATA, value, size);
}

void sbx_nft_lookup(struct sbx_nft *nft, uint32_t reg, const char *set, bool inverted)
{
	struct nftnl_expr *expr = add(nft, "lookup");

	put_u32(nft, expr, NFTNL_EXPR_LOOKUP_SREG, reg);
	put(nft, expr, NFTNL_EXPR_LOOKUP_SET, set, (uint32_t)strlen(set) + 1);
	if (inverted)
		put_u32(nft, expr, NFTNL_EXPR_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
}

void sbx_nft_connections_over(
	struct sbx_nft *nft, uint32_t reg, const char *set, uint32_t n_connections)
{
	struct nftnl_expr *expr = add(nft, "dynset");
	struct nftnl_expr *counter = expr ? have(nft, nftnl_expr_alloc("connlimit")) : NULL;

	put_u32(nft, expr, NFTNL_EXPR_DYNSET_SREG_KEY, reg);
	put_u32(nft, expr, NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_ADD);
	put(nft, expr, NFTNL_EXPR_DYNSET_SET_NAME, set, (uint32_t)strlen(set) + 1);
	put_u32(nft, counter, NFTNL_EXPR_CONNLIMIT_COUNT, n_connections);
	put_u32(nft, counter, NFTNL_EXPR_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
	if (counter && nftnl_expr_set(expr, NFTNL_EXPR_DYNSET_EXPR, counter, 0) < 0)
		nft->failed = -ENOMEM; /* else it is the expression's */
}

void sbx_nft_verdict(struct sbx_nft *nft, int verdict, const char *chain)
{
	struct nftnl_expr *expr = add(nft, "immediate");

	put_u32(nft, expr, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	put_u32(nft, expr, NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict);
	if (chain)
		put(nft, expr, NFTNL_EXPR_IMM_CHAIN, chain, (uint32_t)strlen(chain) + 1);
}

void sbx_nft_reject_icmp(struct sbx_nft *nft, uint8_t code)
{
	struct nftnl_expr *expr = add(nft, "reject");

	put_u32(nft, expr, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH);
	put(nft, expr, NFTNL_EXPR_REJECT_CODE, &code, sizeof(code));
}

void sbx_nft_reject_tcp(struct sbx_nft *nft)
{
	struct nftnl_expr *expr = add(nft, "reject");

	put_u32(nft, expr, NFTNL_EXPR_REJECT_TYPE, NFT_REJECT_TCP_RST);
}

void sbx_nft_masquerade(struct sbx_nft *nft)
{
	(void)add(nft, "masq");
}

/* The attribute that libnftnl's batch begin lacks, right behind it: made by hand, since what
 * follows it has to move. */
static void insert_generation(struct sbx_nft *nft, uint32_t generation)
{
	struct nlmsghdr *begin = (struct nlmsghdr *)nft->data;
	const struct nlattr head = {NLA_HDRLEN + sizeof(uint32_t), NFNL_BATCH_GENID};
	const uint32_t value = htonl(generation);
	char *at = nft->data + begin->nlmsg_len;

	memmove(at + head.nla_len, at, nft->size - begin->nlmsg_len);
	memcpy(at, &head, sizeof(head));
	memcpy(at + NLA_HDRLEN, &value, sizeof(value));
	begin->nlmsg_len += head.nla_len;
	nft->size += head.nla_len;
}

int sbx_nft_commit(struct sbx_nft *nft, struct sbx_netlink *nl, uint32_t generation)
{
	char *room = nft->size ? reserve(nft) : NULL;

	if (!room)
		return nft->failed;
	finish(nft, nftnl_batch_end(room, nft->next_seq++));
	if (generation && !reserve(nft))
		return nft->failed;
	if (generation)
		insert_generation(nft, generation);
	return sbx_netlink_send(nl, nft->data, nft->size, NULL, NULL);
}

/* One request outside of a batch. */
static int ask(
	struct sbx_netlink *nl, const struct nlmsghdr *message, sbx_netlink_fn found, void *data)
{
	return sbx_netlink_send(nl, message, message->nlmsg_len, found, data);
}

static int on_generation(const struct nlmsghdr *message, void *data)
{
	struct nftnl_gen *gen = nftnl_gen_alloc();
	int r = !gen ? -ENOMEM : nftnl_gen_nlmsg_parse(message, gen) < 0 ? -EBADMSG : 0;

	if (r == 0)
		*(uint32_t *)data = nftnl_gen_get_u32(gen, NFTNL_GEN_ID);
	if (gen)
		nftnl_gen_free(gen);
	return r;
}

int sbx_nft_generation(struct sbx_netlink *nl, uint32_t *ret)
{
	_Alignas(8) char room[256];

	return ask(nl, nftnl_nlmsg_build_hdr(room, NFT_MSG_GETGEN, AF_UNSPEC, NLM_F_REQUEST, 0),
		on_generation, ret);
}

struct listing {
	sbx_nft_table_fn found;
	void *data;
};

static int on_table(const struct nlmsghdr *message, void *data)
{
	const struct listing *listing = data;
	struct nftnl_table *table = nftnl_table_alloc();
	int r = !table ? -ENOMEM : nftnl_table_nlmsg_parse(message, table) < 0 ? -EBADMSG : 0;

	if (r == 0)
		listing->found(nftnl_table_get_str(table, NFTNL_TABLE_NAME),
			nftnl_table_get_u32(table, NFTNL_TABLE_FLAGS) & NFT_TABLE_F_OWNER,
			listing->data);
	if (table)
		nftnl_table_free(table);
	return r;
}

int sbx_nft_list_tables(struct sbx_netlink *nl, uint8_t family, sbx_nft_table_fn found, void *data)
{
	struct listing listing = {found, data};
	_Alignas(8) char room[256];

	return ask(nl, nftnl_nlmsg_build_hdr(room, NFT_MSG_GETTABLE, family, NLM_F_DUMP, 0),
		on_table, &listing);
}

int sbx_nft_find_chain(struct sbx_netlink *nl, uint8_t family, const char *table, const char *name)
{
	struct nftnl_chain *chain = nftnl_chain_alloc();
	_Alignas(8) char room[512];
	struct nlmsghdr *message;

	if (!chain)
		return -ENOMEM;
	message = nftnl_nlmsg_build_hdr(room, NFT_MSG_GETCHAIN, family, 0, 0);
	(void)nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, table);
	(void)nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, name);
	nftnl_chain_nlmsg_build_payload(message, chain);
	nftnl_chain_free(chain);
	return ask(nl, message, NULL, NULL); /* without memory for the names: -EINVAL */
}
