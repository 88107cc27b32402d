/* SPDX-License-Identifier: MIT */
#include "link.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>
#include <sys/socket.h>

static int ask(struct sbx_netlink *nl, struct sbx_netlink_message *m)
{
	m->header->nlmsg_flags |= NLM_F_ACK;
	return sbx_netlink_ask(nl, m, NULL, NULL);
}

struct links {
	sbx_link_fn found;
	void *data;
};

static int on_link(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const struct links *links = data;
	const struct nlattr *attributes[IFLA_MAX + 1], *kinds[IFLA_INFO_MAX + 1];
	const struct nlattr *mac;
	struct sbx_link link = {.index = info->ifi_index};

	sbx_netlink_parse(message, sizeof(*info), attributes, SBX_N_ELEMENTS(attributes));
	sbx_netlink_parse_nested(attributes[IFLA_LINKINFO], kinds, SBX_N_ELEMENTS(kinds));
	(void)strncpy(link.name, sbx_netlink_string(attributes[IFLA_IFNAME]),
		sizeof(link.name) - 1); /* the kernel's are no longer */
	(void)strncpy(link.kind, sbx_netlink_string(kinds[IFLA_INFO_KIND]),
		sizeof(link.kind) - 1); /* a longer one is none of ours */
	mac = attributes[IFLA_ADDRESS];
	if (mac && mac->nla_len == NLA_HDRLEN + ETH_ALEN)
		memcpy(link.mac, (const char *)mac + NLA_HDRLEN, ETH_ALEN);
	return links->found(&link, links->data);
}

static int keep_link(const struct sbx_link *link, void *data)
{
	*(struct sbx_link *)data = *link;
	return 0;
}

int sbx_link_find(struct sbx_netlink *nl, const char *name, struct sbx_link *ret)
{
	struct links links = {keep_link, ret};
	struct sbx_netlink_message m;
	struct ifinfomsg *info = sbx_netlink_begin(&m, RTM_GETLINK, 0, sizeof(*info));

	info->ifi_family = AF_UNSPEC;
	sbx_netlink_put_string(&m, IFLA_IFNAME, name);
	return sbx_netlink_ask(nl, &m, on_link, &links);
}

int sbx_link_list(struct sbx_netlink *nl, sbx_link_fn found, void *data)
{
	struct links links = {found, data};
	struct sbx_netlink_message m;

	(void)sbx_netlink_begin(&m, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	return sbx_netlink_ask(nl, &m, on_link, &links);
}

int sbx_link_new_bridge(struct sbx_netlink *nl, const char *name, const uint8_t mac[ETH_ALEN])
{
	struct nlattr *link_info, *data;
	struct sbx_netlink_message m;

	(void)sbx_netlink_begin(
		&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	sbx_netlink_put_string(&m, IFLA_IFNAME, name);
	sbx_netlink_put(&m, IFLA_ADDRESS, mac, ETH_ALEN); /* else it changes with the ports */
	link_info = sbx_netlink_nest(&m, IFLA_LINKINFO);
	sbx_netlink_put_string(&m, IFLA_INFO_KIND, "bridge");
	data = sbx_netlink_nest(&m, IFLA_INFO_DATA);
	sbx_netlink_put_u8(&m, IFLA_BR_MCAST_SNOOPING, 0); /* there is nothing to snoop for */
	sbx_netlink_nest_end(&m, data);
	sbx_netlink_nest_end(&m, link_info);
	return ask(nl, &m);
}

static void put_peer(struct sbx_netlink_message *m, const struct sbx_link_pair *pair)
{
	struct nlattr *peer = sbx_netlink_nest(m, VETH_INFO_PEER);

	(void)sbx_netlink_put_room(m, sizeof(struct ifinfomsg));
	sbx_netlink_put_string(m, IFLA_IFNAME, pair->peer_name);
	sbx_netlink_put(m, IFLA_ADDRESS, pair->peer_mac, ETH_ALEN);
	sbx_netlink_put_u32(m, IFLA_NET_NS_FD, (uint32_t)pair->peer_ns);
	sbx_netlink_nest_end(m, peer);
}

int sbx_link_new_pair(struct sbx_netlink *nl, const struct sbx_link_pair *pair)
{
	struct nlattr *link_info, *data;
	struct sbx_netlink_message m;

	(void)sbx_netlink_begin(
		&m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
	sbx_netlink_put_string(&m, IFLA_IFNAME, pair->name);
	sbx_netlink_put_u32(&m, IFLA_MASTER, (uint32_t)pair->bridge);
	link_info = sbx_netlink_nest(&m, IFLA_LINKINFO);
	sbx_netlink_put_string(&m, IFLA_INFO_KIND, "veth");
	data = sbx_netlink_nest(&m, IFLA_INFO_DATA);
	put_peer(&m, pair);
	sbx_netlink_nest_end(&m, data);
	sbx_netlink_nest_end(&m, link_info);
	return ask(nl, &m);
}

/* An entry that says behind which port the address is: all that a locked port lets in. */
static int pin_address(struct sbx_netlink *nl, int index, const uint8_t mac[ETH_ALEN])
{
	struct sbx_netlink_message m;
	struct ndmsg *neighbour = sbx_netlink_begin(
		&m, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*neighbour));

	neighbour->ndm_family = AF_BRIDGE;
	neighbour->ndm_ifindex = index;
	neighbour->ndm_state = NUD_NOARP; /* static: it does not age */
	neighbour->ndm_flags = NTF_MASTER;
	sbx_netlink_put(&m, NDA_LLADDR, mac, ETH_ALEN);
	return ask(nl, &m);
}

int sbx_link_shut_port(struct sbx_netlink *nl, int index, const uint8_t mac[ETH_ALEN])
{
	static const struct {
		uint16_t attribute;
		uint8_t value;
	} flags[] = {
		{IFLA_BRPORT_ISOLATED, 1}, /* nothing to or from another such port */
		{IFLA_BRPORT_LOCKED, 1},   /* only from addresses that are pinned here (5.18) */
		{IFLA_BRPORT_LEARNING, 0},
		{IFLA_BRPORT_UNICAST_FLOOD, 0},
	};
	struct sbx_netlink_message m;
	struct ifinfomsg *info = sbx_netlink_begin(&m, RTM_SETLINK, 0, sizeof(*info));
	struct nlattr *port;
	int r;

	info->ifi_family = AF_BRIDGE;
	info->ifi_index = index;
	port = sbx_netlink_nest(&m, IFLA_PROTINFO);
	for (size_t i = 0; i < SBX_N_ELEMENTS(flags); i++)
		sbx_netlink_put_u8(&m, flags[i].attribute, flags[i].value);
	sbx_netlink_nest_end(&m, port);
	r = ask(nl, &m);
	return r < 0 ? r : pin_address(nl, index, mac);
}

int sbx_link_up(struct sbx_netlink *nl, int index)
{
	struct sbx_netlink_message m;
	struct ifinfomsg *info = sbx_netlink_begin(&m, RTM_NEWLINK, 0, sizeof(*info));

	info->ifi_index = index;
	info->ifi_change = info->ifi_flags = IFF_UP;
	return ask(nl, &m);
}

int sbx_link_without_ipv6(struct sbx_netlink *nl, int index)
{
	struct sbx_netlink_message m;
	struct ifinfomsg *info = sbx_netlink_begin(&m, RTM_SETLINK, 0, sizeof(*info));
	struct nlattr *families, *inet6;
	int r;

	info->ifi_index = index;
	families = sbx_netlink_nest(&m, IFLA_AF_SPEC);
	inet6 = sbx_netlink_nest(&m, AF_INET6);
	sbx_netlink_put_u8(&m, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	sbx_netlink_nest_end(&m, inet6);
	sbx_netlink_nest_end(&m, families);
	r = ask(nl, &m);
	return r == -EAFNOSUPPORT ? 0 : r; /* a kernel without IPv6 */
}

int sbx_link_delete(struct sbx_netlink *nl, int index)
{
	struct sbx_netlink_message m;
	struct ifinfomsg *info = sbx_netlink_begin(&m, RTM_DELLINK, 0, sizeof(*info));

	info->ifi_index = index;
	return ask(nl, &m);
}

int sbx_link_add_address(struct sbx_netlink *nl, int index, uint32_t address, uint8_t prefix)
{
	const uint32_t value = htonl(address);
	const uint32_t broadcast =
		htonl(address | (prefix < 32 ? UINT32_MAX >> prefix : UINT32_C(0)));
	struct sbx_netlink_message m;
	struct ifaddrmsg *info =
		sbx_netlink_begin(&m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*info));

	info->ifa_family = AF_INET;
	info->ifa_prefixlen = prefix;
	info->ifa_index = (uint32_t)index;
	sbx_netlink_put(&m, IFA_LOCAL, &value, sizeof(value));
	sbx_netlink_put(&m, IFA_ADDRESS, &value, sizeof(value));
	if (prefix < 31) /* shorter ones have none (RFC 3021) */
		sbx_netlink_put(&m, IFA_BROADCAST, &broadcast, sizeof(broadcast));
	return ask(nl, &m);
}

struct address {
	uint32_t index, address;
	uint8_t prefix;
	bool found;
};

static int on_address(const struct nlmsghdr *message, void *data)
{
	const struct ifaddrmsg *info = NLMSG_DATA(message);
	const struct nlattr *attributes[IFA_MAX + 1];
	struct address *address = data;

	if (info->ifa_index != address->index || address->found)
		return 0;
	sbx_netlink_parse(message, sizeof(*info), attributes, SBX_N_ELEMENTS(attributes));
	address->address = ntohl(sbx_netlink_u32(attributes[IFA_LOCAL]));
	address->prefix = info->ifa_prefixlen;
	address->found = true;
	return 0;
}

int sbx_link_address(struct sbx_netlink *nl, int index, uint32_t *ret_address, uint8_t *ret_prefix)
{
	struct address address = {.index = (uint32_t)index};
	struct sbx_netlink_message m;
	struct ifaddrmsg *info = sbx_netlink_begin(&m, RTM_GETADDR, NLM_F_DUMP, sizeof(*info));
	int r;

	info->ifa_family = AF_INET;
	r = sbx_netlink_ask(nl, &m, on_address, &address);
	if (r < 0 || !address.found)
		return r < 0 ? r : -ENOENT;
	*ret_address = address.address;
	*ret_prefix = address.prefix;
	return 0;
}

int sbx_link_default_route(struct sbx_netlink *nl, int index, uint32_t gateway)
{
	const uint32_t value = htonl(gateway);
	struct sbx_netlink_message m;
	struct rtmsg *info =
		sbx_netlink_begin(&m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, sizeof(*info));

	info->rtm_family = AF_INET;
	info->rtm_table = RT_TABLE_MAIN;
	info->rtm_protocol = RTPROT_STATIC;
	info->rtm_scope = RT_SCOPE_UNIVERSE;
	info->rtm_type = RTN_UNICAST;
	info->rtm_flags = RTNH_F_ONLINK;
	sbx_netlink_put(&m, RTA_GATEWAY, &value, sizeof(value));
	sbx_netlink_put_u32(&m, RTA_OIF, (uint32_t)index);
	return ask(nl, &m);
}

struct routes {
	sbx_route_fn found;
	void *data;
};

static int on_route(const struct nlmsghdr *message, void *data)
{
	const struct rtmsg *info = NLMSG_DATA(message);
	const struct routes *routes = data;
	const struct nlattr *attributes[RTA_MAX + 1];

	sbx_netlink_parse(message, sizeof(*info), attributes, SBX_N_ELEMENTS(attributes));
	if (info->rtm_family == AF_INET && info->rtm_dst_len)
		routes->found(ntohl(sbx_netlink_u32(attributes[RTA_DST])), info->rtm_dst_len,
			(int)sbx_netlink_u32(attributes[RTA_OIF]), routes->data);
	return 0;
}

int sbx_link_routes(struct sbx_netlink *nl, sbx_route_fn found, void *data)
{
	struct routes routes = {found, data};
	struct sbx_netlink_message m;
	struct rtmsg *info = sbx_netlink_begin(&m, RTM_GETROUTE, NLM_F_DUMP, sizeof(*info));

	info->rtm_family = AF_INET;
	return sbx_netlink_ask(nl, &m, on_route, &routes);
}
