/* SPDX-License-Identifier: MIT */
/*
 * Theory of operation. What a session sends leaves its port for the bridge and nothing else: ports
 * are shut against each other (link.h). Each running sandbox has a wall around its block of
 * addresses, in two parts:
 *   - on the ingress hook of sbx0 (family netdev), which nothing else of the host's traffic passes:
 *     who sent a packet, and whether it is an honest one;
 *   - where packets are delivered to the host or forwarded (family ip): where they may go. That is
 *     behind NAT: where they really go. Here, and not at the ingress hook, since Debian's kernels
 *     cannot answer with a refusal there (NFT_REJECT_NETDEV), and a program that gets none waits
 *     for minutes.
 *
 * The wall of block n stands there twice, as tables with the same content:
 *   - sbx<n>, ordinary tables: they stay when the sandboxd that made them is killed, until its
 *     sessions are dead for certain; the next start, or destroy, removes them;
 *   - sbx<n>o, tables that the spawner's socket owns: they stay when an administrator's "flush
 *     ruleset" removes all others. They go with the spawner; that they are there is what makes the
 *     block taken.
 * A packet must pass both.
 *
 * The table "ip sbx" is shared: it masquerades, counts connections, and lets only answers through
 * to sessions. Without it sessions have no way out that works.
 */
#include "wall.h"

#include <arpa/inet.h>
#include <linux/icmp.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "nft.h"

#define SHARED       "sbx"
#define SWEEP_TRIES  16  /* others change rules meanwhile, but not for ever */
#define PRIORITY_NAT 100 /* NF_IP_PRI_NAT_SRC: where nft(8) puts "srcnat" */
#define DNS_PORT     53
#define BLOCK_BITS   8  /* of an address, below the number of its block */
#define MAC_PREFIX   5  /* bytes that all addresses of a block have in common */
#define MAC_OURS     4  /* and those of all blocks */
#define WHO_SIZE     12 /* a hardware address, padded to registers, and an IPv4 address */

/* nft(8)'s numbers of types; a concatenation has six bits of each. */
#define TYPE_IPV4  7
#define TYPE_PROTO 12
#define TYPE_WHO   (9 << 6 | TYPE_IPV4)

/* Offsets in headers. */
enum {
	ETHER_SOURCE = 6,
	IP_VERSION = 0,
	IP_SOURCE = 12,
	IP_DESTINATION = 16,
	PORT_DESTINATION = 2,
	ARP_KIND = 0,
	ARP_SENDER_MAC = 8,
	ARP_SENDER_IP = 14,
};

/*
 * Closed to sessions: no address of the open internet is in it. Pairs of the first address and the
 * first one behind; the last has no end.
 */
static const struct {
	uint32_t first, behind;
} closed[] = {
	{0x00000000, 0x01000000}, /* 0/8: this network */
	{0x0a000000, 0x0b000000}, /* 10/8: private */
	{0x64400000, 0x64800000}, /* 100.64/10: carriers, overlay networks */
	{0x7f000000, 0x80000000}, /* 127/8: loopback */
	{0xa9fe0000, 0xa9ff0000}, /* 169.254/16: link-local, cloud metadata */
	{0xac100000, 0xac200000}, /* 172.16/12: private */
	{0xc0000000, 0xc0000100}, /* 192.0.0/24: protocol assignments */
	{0xc0a80000, 0xc0a90000}, /* 192.168/16: private */
	{0xc6120000, 0xc6140000}, /* 198.18/15: benchmarks */
	{0xe0000000, 0x00000000}, /* 224/3: multicast, reserved, broadcast */
};

void sbx_pool_mac(unsigned int block, unsigned int index, uint8_t ret[ETH_ALEN])
{
	const uint8_t mac[ETH_ALEN] = {
		0x02, 's', 'b', 'x', (uint8_t)block, (uint8_t)index}; /* 02: locally administered */

	memcpy(ret, mac, sizeof(mac));
}

static void table_name(unsigned int block, bool owned, char ret[static SBX_NFT_NAME_SIZE])
{
	(void)snprintf(ret, SBX_NFT_NAME_SIZE, SHARED "%u%s", block, owned ? "o" : "");
}

/* --- parts of rules --- */

static void match_ip(struct sbx_nft *nft, uint32_t offset, uint32_t address, unsigned int prefix)
{
	const uint32_t value = htonl(address);
	const uint32_t mask = htonl(prefix ? UINT32_MAX << (32 - prefix) : 0);

	sbx_nft_payload(nft, NFT_PAYLOAD_NETWORK_HEADER, offset, sizeof(value), NFT_REG_1);
	if (prefix < 32)
		sbx_nft_mask(nft, NFT_REG_1, &mask, sizeof(mask));
	sbx_nft_compare(nft, NFT_REG_1, NFT_CMP_EQ, &value, sizeof(value));
}

static void match_port(struct sbx_nft *nft, uint16_t port)
{
	const uint16_t value = htons(port);

	sbx_nft_meta(nft, NFT_META_L4PROTO, NFT_REG_1);
	sbx_nft_lookup(nft, NFT_REG_1, "ported", false);
	sbx_nft_payload(
		nft, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_DESTINATION, sizeof(value), NFT_REG_1);
	sbx_nft_compare(nft, NFT_REG_1, NFT_CMP_EQ, &value, sizeof(value));
}

/* The pair of a hardware and an IPv4 address is not one of the block's. */
static void match_stranger(
	struct sbx_nft *nft, enum nft_payload_bases mac_base, uint32_t mac_at, uint32_t ip_at)
{
	sbx_nft_payload(nft, mac_base, mac_at, ETH_ALEN, NFT_REG32_00);
	sbx_nft_payload(nft, NFT_PAYLOAD_NETWORK_HEADER, ip_at, sizeof(uint32_t), NFT_REG32_02);
	sbx_nft_lookup(nft, NFT_REG32_00, "who", true);
}

static void match_bytes(struct sbx_nft *nft, enum nft_payload_bases base, uint32_t offset,
	enum nft_cmp_ops op, const void *value, uint32_t size)
{
	sbx_nft_payload(nft, base, offset, size, NFT_REG_1);
	sbx_nft_compare(nft, NFT_REG_1, op, value, size);
}

static void match_protocol(struct sbx_nft *nft, enum nft_cmp_ops op, uint16_t protocol)
{
	const uint16_t value = htons(protocol);

	sbx_nft_meta(nft, NFT_META_PROTOCOL, NFT_REG_1);
	sbx_nft_compare(nft, NFT_REG_1, op, &value, sizeof(value));
}

static void match_bridge(struct sbx_nft *nft, enum nft_meta_keys key, enum nft_cmp_ops op)
{
	static const char name[16] = SBX_BRIDGE_NAME; /* IFNAMSIZ, padded */

	sbx_nft_meta(nft, key, NFT_REG_1);
	sbx_nft_compare(nft, NFT_REG_1, op, name, sizeof(name));
}

static void end_with(struct sbx_nft *nft, int verdict, const char *chain)
{
	sbx_nft_verdict(nft, verdict, chain);
	sbx_nft_rule_end(nft);
}

/* A program gets its answer at once, and not when it has waited long enough. TCP gets its own: the
 * kernel sends a peer no more than one ICMP refusal a second. */
static void add_refuse(struct sbx_nft *nft)
{
	static const uint8_t tcp = IPPROTO_TCP;

	sbx_nft_chain(nft, "refuse", NULL);
	sbx_nft_rule(nft, "refuse");
	sbx_nft_meta(nft, NFT_META_L4PROTO, NFT_REG_1);
	sbx_nft_compare(nft, NFT_REG_1, NFT_CMP_EQ, &tcp, sizeof(tcp));
	sbx_nft_reject_tcp(nft);
	sbx_nft_rule_end(nft);
	sbx_nft_rule(nft, "refuse");
	sbx_nft_reject_icmp(nft, ICMP_PKT_FILTERED);
	sbx_nft_rule_end(nft);
}

/* --- a block's wall --- */

static void add_who(struct sbx_nft *nft, const struct sbx_wall *wall)
{
	uint8_t who[SBX_BLOCK_SIZE][WHO_SIZE] = {0};

	for (unsigned int i = 0; i < SBX_BLOCK_SIZE; i++) {
		const uint32_t address = htonl(sbx_pool_address(wall->pool, wall->block, i));

		sbx_pool_mac(wall->block, i, who[i]);
		memcpy(who[i] + WHO_SIZE - sizeof(address), &address, sizeof(address));
	}
	sbx_nft_set(nft, "who", TYPE_WHO, WHO_SIZE, 0);
	sbx_nft_elements(nft, "who", who, WHO_SIZE, SBX_BLOCK_SIZE, false);
}

static void add_sets(struct sbx_nft *nft)
{
	static const uint8_t ported[] = {IPPROTO_TCP, IPPROTO_UDP};
	uint32_t ranges[2 * SBX_N_ELEMENTS(closed)];

	for (size_t i = 0; i < SBX_N_ELEMENTS(closed); i++) {
		ranges[2 * i] = htonl(closed[i].first);
		ranges[2 * i + 1] = htonl(closed[i].behind);
	}
	sbx_nft_set(nft, "closed", TYPE_IPV4, sizeof(uint32_t), NFT_SET_INTERVAL);
	sbx_nft_elements(nft, "closed", ranges, sizeof(uint32_t), SBX_N_ELEMENTS(ranges) - 1, true);
	sbx_nft_set(nft, "ported", TYPE_PROTO, sizeof(uint8_t), 0);
	sbx_nft_elements(nft, "ported", ported, sizeof(uint8_t), SBX_N_ELEMENTS(ported), false);
}

/* Whose frame is it? Those of other blocks are for their own walls. */
static void add_entry(struct sbx_nft *nft, const struct sbx_wall *wall)
{
	const struct sbx_nft_hook hook = {
		.type = "filter", .number = NF_NETDEV_INGRESS, .device = SBX_BRIDGE_NAME};
	uint8_t mac[ETH_ALEN];

	sbx_pool_mac(wall->block, 0, mac);
	sbx_nft_chain(nft, "in", &hook);
	sbx_nft_rule(nft, "in");
	match_bytes(nft, NFT_PAYLOAD_LL_HEADER, ETHER_SOURCE, NFT_CMP_NEQ, mac, MAC_OURS);
	end_with(nft, NF_DROP, NULL);
	sbx_nft_rule(nft, "in");
	match_bytes(nft, NFT_PAYLOAD_LL_HEADER, ETHER_SOURCE, NFT_CMP_EQ, mac, MAC_PREFIX);
	end_with(nft, NFT_GOTO, "own");
}

/* Nobody speaks for an address that is not his, or he would get what is sent to it. */
static void add_arp(struct sbx_nft *nft)
{
	static const uint8_t kind[] = {0, 1, 8, 0, ETH_ALEN, 4}; /* IPv4 on Ethernet */

	sbx_nft_rule(nft, "arp");
	match_bytes(nft, NFT_PAYLOAD_NETWORK_HEADER, ARP_KIND, NFT_CMP_NEQ, kind, sizeof(kind));
	end_with(nft, NF_DROP, NULL);
	sbx_nft_rule(nft, "arp");
	match_stranger(nft, NFT_PAYLOAD_LL_HEADER, ETHER_SOURCE, ARP_SENDER_IP);
	end_with(nft, NF_DROP, NULL);
	sbx_nft_rule(nft, "arp");
	match_stranger(nft, NFT_PAYLOAD_NETWORK_HEADER, ARP_SENDER_MAC, ARP_SENDER_IP);
	end_with(nft, NF_DROP, NULL);
	sbx_nft_rule(nft, "arp");
	end_with(nft, NF_ACCEPT, NULL);
}

/* What is no honest IPv4 packet of its sender. Options could name other stations of its way. */
static void add_honesty(struct sbx_nft *nft)
{
	static const uint8_t plain_header = 0x45;

	sbx_nft_rule(nft, "own");
	match_protocol(nft, NFT_CMP_EQ, ETH_P_ARP);
	end_with(nft, NFT_GOTO, "arp");
	sbx_nft_rule(nft, "own");
	match_protocol(nft, NFT_CMP_NEQ, ETH_P_IP);
	end_with(nft, NF_DROP, NULL);
	sbx_nft_rule(nft, "own");
	match_bytes(nft, NFT_PAYLOAD_NETWORK_HEADER, IP_VERSION, NFT_CMP_NEQ, &plain_header,
		sizeof(plain_header));
	end_with(nft, NF_DROP, NULL);
	sbx_nft_rule(nft, "own");
	match_stranger(nft, NFT_PAYLOAD_LL_HEADER, ETHER_SOURCE, IP_SOURCE);
	end_with(nft, NF_DROP, NULL);
	sbx_nft_rule(nft, "own");
	end_with(nft, NF_ACCEPT, NULL);
}

static void add_exceptions(struct sbx_nft *nft, const struct sbx_wall *wall, const char *chain)
{
	for (size_t i = 0; wall->resolver && i < wall->resolver->n_servers; i++) {
		sbx_nft_rule(nft, chain);
		match_ip(nft, IP_DESTINATION, wall->resolver->servers[i], 32);
		match_port(nft, DNS_PORT);
		end_with(nft, NF_ACCEPT, NULL);
	}
	for (size_t i = 0; i < wall->n_allow; i++) {
		const struct sbx_allow *allow = &wall->allow[i];

		sbx_nft_rule(nft, chain);
		match_ip(nft, IP_DESTINATION, allow->address, allow->prefix);
		if (allow->port)
			match_port(nft, allow->port);
		end_with(nft, NF_ACCEPT, NULL);
	}
}

/* Packets for the host itself, by any address that it has at the moment. */
static void add_local(struct sbx_nft *nft, const struct sbx_wall *wall)
{
	sbx_nft_chain(nft, "local", NULL);
	add_exceptions(nft, wall, "local");
	sbx_nft_rule(nft, "local");
	end_with(nft, NFT_GOTO, "refuse");
}

/* Packets through the host. Sessions are closed to each other whatever was allowed. */
static void add_through(struct sbx_nft *nft, const struct sbx_wall *wall)
{
	sbx_nft_chain(nft, "through", NULL);
	sbx_nft_rule(nft, "through");
	match_ip(nft, IP_DESTINATION, wall->pool, SBX_POOL_PREFIX);
	end_with(nft, NFT_GOTO, "refuse");
	add_exceptions(nft, wall, "through");
	sbx_nft_rule(nft, "through");
	sbx_nft_payload(
		nft, NFT_PAYLOAD_NETWORK_HEADER, IP_DESTINATION, sizeof(uint32_t), NFT_REG_1);
	sbx_nft_lookup(nft, NFT_REG_1, "closed", false);
	end_with(nft, NFT_GOTO, "refuse");
	sbx_nft_rule(nft, "through");
	end_with(nft, NF_ACCEPT, NULL);
}

/* All of the host's packets come by: those of others leave at the first look. */
static void add_gate(struct sbx_nft *nft, const struct sbx_wall *wall, const char *name,
	uint32_t hook_number, const char *next)
{
	const struct sbx_nft_hook hook = {.type = "filter", .number = hook_number};

	sbx_nft_chain(nft, name, &hook);
	sbx_nft_rule(nft, name);
	match_bridge(nft, NFT_META_IIFNAME, NFT_CMP_EQ);
	match_ip(nft, IP_SOURCE, sbx_pool_address(wall->pool, wall->block, 0), 32 - BLOCK_BITS);
	end_with(nft, NFT_GOTO, next);
}

/* An empty table, whatever was there. */
static void replace_table(struct sbx_nft *nft, uint8_t family, const char *name, uint32_t flags)
{
	sbx_nft_table(nft, family, name, flags); /* so that there is one to delete */
	sbx_nft_delete_table(nft, family, name);
	sbx_nft_table(nft, family, name, flags);
}

static void add_wall(struct sbx_nft *nft, const struct sbx_wall *wall, bool owned)
{
	uint32_t flags = owned ? NFT_TABLE_F_OWNER : 0;
	char name[SBX_NFT_NAME_SIZE];

	table_name(wall->block, owned, name);
	replace_table(nft, NFPROTO_NETDEV, name, flags);
	add_who(nft, wall);
	sbx_nft_chain(nft, "arp", NULL);
	add_arp(nft);
	sbx_nft_chain(nft, "own", NULL);
	add_honesty(nft);
	add_entry(nft, wall);
	replace_table(nft, NFPROTO_IPV4, name, flags);
	add_sets(nft);
	add_refuse(nft);
	add_local(nft, wall);
	add_through(nft, wall);
	add_gate(nft, wall, "input", NF_INET_LOCAL_IN, "local");
	add_gate(nft, wall, "forward", NF_INET_FORWARD, "through");
}

/* --- what all share --- */

/* One sandbox does not use up what the host has of connections. */
static void add_flow_limit(struct sbx_nft *nft)
{
	const uint32_t new = NF_CT_STATE_BIT(IP_CT_NEW), block = htonl(UINT32_MAX << BLOCK_BITS);

	sbx_nft_set(nft, "flows", TYPE_IPV4, sizeof(uint32_t), NFT_SET_EVAL);
	sbx_nft_rule(nft, "forward");
	match_bridge(nft, NFT_META_IIFNAME, NFT_CMP_EQ);
	sbx_nft_ct_state(nft, NFT_REG_1);
	sbx_nft_mask(nft, NFT_REG_1, &new, sizeof(new));
	sbx_nft_compare(nft, NFT_REG_1, NFT_CMP_EQ, &new, sizeof(new));
	sbx_nft_payload(nft, NFT_PAYLOAD_NETWORK_HEADER, IP_SOURCE, sizeof(block), NFT_REG_1);
	sbx_nft_mask(nft, NFT_REG_1, &block, sizeof(block));
	sbx_nft_connections_over(nft, NFT_REG_1, "flows", SBX_FLOWS_MAX);
	end_with(nft, NFT_GOTO, "refuse");
}

/* Into sessions go answers only. One session that asks another hears that it may not. */
static void add_inward(struct sbx_nft *nft)
{
	const uint32_t answers =
		NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_BIT(IP_CT_RELATED);
	const uint32_t none = 0;

	for (int from_session = 1; from_session >= 0; from_session--) {
		sbx_nft_rule(nft, "forward");
		match_bridge(nft, NFT_META_OIFNAME, NFT_CMP_EQ);
		if (from_session)
			match_bridge(nft, NFT_META_IIFNAME, NFT_CMP_EQ);
		sbx_nft_ct_state(nft, NFT_REG_1);
		sbx_nft_mask(nft, NFT_REG_1, &answers, sizeof(answers));
		sbx_nft_compare(nft, NFT_REG_1, NFT_CMP_EQ, &none, sizeof(none));
		if (from_session)
			end_with(nft, NFT_GOTO, "refuse");
		else
			end_with(nft, NF_DROP, NULL);
	}
}

static void add_shared(struct sbx_nft *nft, const struct sbx_wall *wall)
{
	const struct sbx_nft_hook forward = {.type = "filter", .number = NF_INET_FORWARD};
	const struct sbx_nft_hook nat = {
		.type = "nat", .number = NF_INET_POST_ROUTING, .priority = PRIORITY_NAT};

	replace_table(nft, NFPROTO_IPV4, SHARED, 0);
	add_refuse(nft);
	sbx_nft_chain(nft, "forward", &forward);
	add_inward(nft);
	add_flow_limit(nft);
	sbx_nft_chain(nft, "nat", &nat);
	sbx_nft_rule(nft, "nat");
	match_ip(nft, IP_SOURCE, wall->pool, SBX_POOL_PREFIX);
	match_bridge(nft, NFT_META_OIFNAME, NFT_CMP_NEQ);
	sbx_nft_masquerade(nft);
	sbx_nft_rule_end(nft);
}

static int commit_new(struct sbx_netlink *nl, const struct sbx_wall *wall,
	void (*add)(struct sbx_nft *nft, const struct sbx_wall *wall))
{
	SBX_NFT struct sbx_nft *nft = NULL;
	int r = sbx_nft_new(&nft);

	if (r < 0)
		return r;
	add(nft, wall);
	return sbx_nft_commit(nft, nl, 0);
}

static void add_owned(struct sbx_nft *nft, const struct sbx_wall *wall)
{
	add_wall(nft, wall, true);
}

static void add_rest(struct sbx_nft *nft, const struct sbx_wall *wall)
{
	add_wall(nft, wall, false);
	add_shared(nft, wall);
}

int sbx_wall_put_up(struct sbx_netlink *nl, const struct sbx_wall *wall)
{
	/* the owned one first: the other's name is ours once we have it */
	int r = commit_new(nl, wall, add_owned);

	return r < 0 ? r : commit_new(nl, wall, add_rest);
}

int sbx_wall_check(struct sbx_netlink *nl, unsigned int block)
{
	char name[SBX_NFT_NAME_SIZE];
	int r = sbx_nft_find_chain(nl, NFPROTO_IPV4, SHARED, "nat");

	for (int owned = 0; r == 0 && owned < 2; owned++) {
		table_name(block, owned, name);
		r = sbx_nft_find_chain(nl, NFPROTO_NETDEV, name, "in");
		if (r == 0)
			r = sbx_nft_find_chain(nl, NFPROTO_IPV4, name, "forward");
	}
	return r;
}

/* --- who is there --- */

static const uint8_t families[] = {NFPROTO_NETDEV, NFPROTO_IPV4};

struct census {
	bool used[SBX_BLOCKS_MAX];                               /* there is an owner */
	bool ordinary[SBX_N_ELEMENTS(families)][SBX_BLOCKS_MAX]; /* the table that stays is there */
	bool shared;
	size_t family; /* being counted */
};

static void count_table(const char *name, bool owned, void *data)
{
	struct census *census = data;
	char expected[SBX_NFT_NAME_SIZE];
	unsigned int block;

	if (!strcmp(name, SHARED) && families[census->family] == NFPROTO_IPV4)
		census->shared = true;
	if (sscanf(name, SHARED "%3u", &block) != 1 || block >= SBX_BLOCKS_MAX)
		return;
	table_name(block, owned, expected); /* to the letter: others may have similar names */
	if (!strcmp(name, expected))
		(owned ? census->used : census->ordinary[census->family])[block] = true;
}

static int take_census(struct sbx_netlink *nl, struct census *ret)
{
	int r = 0;

	*ret = (struct census){.shared = false};
	for (; r == 0 && ret->family < SBX_N_ELEMENTS(families); ret->family++)
		r = sbx_nft_list_tables(nl, families[ret->family], count_table, ret);
	return r;
}

int sbx_wall_blocks(struct sbx_netlink *nl, bool ret_used[static SBX_BLOCKS_MAX])
{
	struct census census;
	int r = take_census(nl, &census);

	memcpy(ret_used, census.used, sizeof(census.used));
	return r;
}

/* Of one block; false when something of it stays. */
static bool sweep_block(
	struct sbx_nft *nft, const struct census *census, unsigned int block, bool doomed)
{
	char name[SBX_NFT_NAME_SIZE];
	bool empty = !census->used[block];

	table_name(block, false, name);
	for (size_t i = 0; i < SBX_N_ELEMENTS(families); i++) {
		if (!census->ordinary[i][block])
			continue;
		if (doomed && !census->used[block])
			sbx_nft_delete_table(nft, families[i], name);
		else
			empty = false;
	}
	return empty;
}

/* Of one state of the rules: if they change before this is in force, -ERESTART. */
static int sweep_once(struct sbx_netlink *nl, const bool *doomed, bool *ret_empty)
{
	SBX_NFT struct sbx_nft *nft = NULL;
	struct census census;
	uint32_t generation = 0;
	int r = sbx_nft_generation(nl, &generation);

	if (r == 0)
		r = take_census(nl, &census);
	if (r == 0)
		r = sbx_nft_new(&nft);
	if (r < 0)
		return r;
	*ret_empty = true;
	for (unsigned int block = 0; block < SBX_BLOCKS_MAX; block++)
		if (!sweep_block(nft, &census, block, doomed[block]))
			*ret_empty = false;
	if (*ret_empty && census.shared)
		sbx_nft_delete_table(nft, NFPROTO_IPV4, SHARED);
	return sbx_nft_commit(nft, nl, generation);
}

int sbx_wall_sweep(
	struct sbx_netlink *nl, const bool doomed[static SBX_BLOCKS_MAX], bool *ret_empty)
{
	int r = -ERESTART;

	for (int i = 0; r == -ERESTART && i < SWEEP_TRIES; i++)
		r = sweep_once(nl, doomed, ret_empty);
	return r;
}
