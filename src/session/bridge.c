/* SPDX-License-Identifier: MIT */
#include "bridge.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "link.h"
#include "net.h"
#include "sbx/fs.h"
#include "wall.h"

#define INSIDE      "eth0"
#define START_TRIES 16 /* a sandbox that ends at the same time may take the bridge away */
#define FORWARDING  "/proc/sys/net/ipv4/ip_forward"
#define ADDRESS(a)  (a) >> 24, (a) >> 16 & 255, (a) >> 8 & 255, (a)&255 /* for "%u.%u.%u.%u" */

/* Where the pool may be, the first that the host has no route into. All of them are closed to
 * sessions anyway (wall.c). */
static const uint32_t pools[] = {
	0x0ad50000, /* 10.213/16 */
	0x0ad60000, /* 10.214/16 */
	0x0ad70000, /* 10.215/16 */
	0xac1d0000, /* 172.29/16 */
	0xac1e0000, /* 172.30/16 */
	0xc6120000, /* 198.18/16 */
	0xc6130000, /* 198.19/16 */
};

struct sbx_bridge {
	struct sbx_netlink *route, *firewall; /* of the host's network namespace */
	int index;
	unsigned int next; /* address of the block to be tried next */
	struct sbx_wall wall;
};

void sbx_bridge_free(struct sbx_bridge *bridge)
{
	if (!bridge)
		return;
	sbx_netlink_close(bridge->route);
	sbx_netlink_close(bridge->firewall);
	free(bridge);
}

static void free_bridge(struct sbx_bridge **bridge)
{
	sbx_bridge_free(*bridge);
}

int sbx_network_check_forwarding(struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	int r = sbx_fs_read_at(AT_FDCWD, FORWARDING, 16, &text);

	if (r < 0)
		return sbx_err_set(err, -r, "read " FORWARDING ": %m");
	if (!text.data || text.data[0] != '1')
		return sbx_err_kind(err, SBX_KIND_INVALID, EOPNOTSUPP,
			"network bridge: this host does not forward IPv4 packets; 'sysctl -w "
			"net.ipv4.ip_forward=1' turns that on, a file in /etc/sysctl.d keeps it "
			"on");
	return 0;
}

/* --- the bridge and its pool --- */

static bool is_ours(const struct sbx_link *link)
{
	uint8_t mac[ETH_ALEN];

	sbx_pool_mac(0, 1, mac);
	return !strcmp(link->kind, "bridge") && !memcmp(link->mac, mac, sizeof(mac));
}

static int find_bridge(struct sbx_netlink *route, struct sbx_link *ret, struct sbx_err *err)
{
	int r = sbx_link_find(route, SBX_BRIDGE_NAME, ret);

	if (r == -ENODEV)
		return r;
	if (r < 0)
		return sbx_err_set(err, -r, "look for the bridge " SBX_BRIDGE_NAME ": %m");
	if (!is_ours(ret))
		return sbx_err_set(err, EEXIST,
			"the host has an interface " SBX_BRIDGE_NAME " that is none of sbx's: "
			"rename it");
	return 0;
}

static int make_bridge(struct sbx_netlink *route, struct sbx_link *ret, struct sbx_err *err)
{
	uint8_t mac[ETH_ALEN];
	int r;

	sbx_pool_mac(0, 1, mac);
	r = sbx_link_new_bridge(route, SBX_BRIDGE_NAME, mac);
	if (r < 0 && r != -EEXIST) /* another sandbox that starts was faster */
		return sbx_err_set(err, -r,
			"make the bridge " SBX_BRIDGE_NAME ": %m (does the kernel have the module "
			"bridge?)");
	return find_bridge(route, ret, err);
}

static bool overlap(uint32_t a, unsigned int a_prefix, uint32_t b, unsigned int b_prefix)
{
	return (a ^ b) >> (32 - SBX_MIN(a_prefix, b_prefix)) == 0;
}

struct survey {
	int bridge;
	bool taken[SBX_N_ELEMENTS(pools)];
};

static void note_route(uint32_t address, uint8_t prefix, int index, void *data)
{
	struct survey *survey = data;

	for (size_t i = 0; i < SBX_N_ELEMENTS(pools); i++)
		if (index != survey->bridge && overlap(address, prefix, pools[i], SBX_POOL_PREFIX))
			survey->taken[i] = true;
}

/* The first pool that collides with nothing that the host has a route to. */
static int choose_pool(struct sbx_netlink *route, int index, uint32_t *ret, struct sbx_err *err)
{
	struct survey survey = {.bridge = index};
	int r = sbx_link_routes(route, note_route, &survey);

	if (r < 0)
		return sbx_err_set(err, -r, "list the host's routes: %m");
	for (size_t i = 0; i < SBX_N_ELEMENTS(pools); i++)
		if (!survey.taken[i]) {
			*ret = pools[i];
			return 0;
		}
	return sbx_err_set(err, EADDRINUSE,
		"the host has routes into every network that sessions could have (10.213, 10.214, "
		"10.215, 172.29, 172.30, 198.18, 198.19, each /16): free one of them");
}

static bool is_pool(uint32_t address, uint8_t prefix)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(pools); i++)
		if (address == sbx_pool_gateway(pools[i]) && prefix == SBX_POOL_PREFIX)
			return true;
	return false;
}

/* The bridge's first address tells the pool: of two sandboxes that give it one at the same time,
 * both take that of the faster. */
static int read_pool(struct sbx_netlink *route, int index, uint32_t *ret, struct sbx_err *err)
{
	uint32_t address;
	uint8_t prefix;
	int r = sbx_link_address(route, index, &address, &prefix);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return sbx_err_set(err, -r, "list the addresses of " SBX_BRIDGE_NAME ": %m");
	if (!is_pool(address, prefix))
		return sbx_err_set(err, EADDRINUSE,
			SBX_BRIDGE_NAME " has the address %u.%u.%u.%u/%u, which is none that sbx "
					"gives: remove it",
			ADDRESS(address), prefix);
	*ret = address & ~UINT32_C(1);
	return 0;
}

static int ensure_pool(struct sbx_netlink *route, int index, uint32_t *ret, struct sbx_err *err)
{
	uint32_t pool;
	int r = read_pool(route, index, ret, err);

	if (r != -ENOENT)
		return r;
	r = choose_pool(route, index, &pool, err);
	if (r < 0)
		return r;
	r = sbx_link_add_address(route, index, sbx_pool_gateway(pool), SBX_POOL_PREFIX);
	if (r < 0 && r != -EEXIST)
		return sbx_err_set(err, -r, "give " SBX_BRIDGE_NAME " an address: %m");
	return read_pool(route, index, ret, err);
}

static int ensure_bridge(struct sbx_bridge *bridge, struct sbx_err *err)
{
	struct sbx_link link;
	int r = find_bridge(bridge->route, &link, err);

	if (r == -ENODEV)
		r = make_bridge(bridge->route, &link, err);
	if (r < 0)
		return r;
	bridge->index = link.index;
	r = ensure_pool(bridge->route, link.index, &bridge->wall.pool, err);
	if (r < 0)
		return r;
	r = sbx_link_without_ipv6(bridge->route, link.index);
	if (r == 0)
		r = sbx_link_up(bridge->route, link.index);
	return r < 0 ? sbx_err_set(err, -r, "bring " SBX_BRIDGE_NAME " up: %m") : 0;
}

/* --- what is left of sandboxes that are gone --- */

struct ports {
	struct sbx_netlink *route;
	const bool *doomed; /* by block */
	int indices[64], n; /* found, but not removed while they are still being listed */
};

static int note_port(const struct sbx_link *link, void *data)
{
	struct ports *ports = data;
	char expected[IFNAMSIZ];
	unsigned int block, i;

	if (sscanf(link->name, "sbx%3u.%3u", &block, &i) != 2 || block >= SBX_BLOCKS_MAX)
		return 0;
	(void)snprintf(expected, sizeof(expected), "sbx%u.%u", block, i);
	if (!strcmp(expected, link->name) && !strcmp(link->kind, "veth") && ports->doomed[block] &&
		ports->n < (int)SBX_N_ELEMENTS(ports->indices))
		ports->indices[ports->n++] = link->index;
	return 0;
}

/* Ports go with their sessions' namespaces; where the last processes of a killed sandbox have not
 * ended yet, this cuts them off before their wall goes. */
static int remove_ports(struct sbx_netlink *route, const bool *doomed)
{
	struct ports ports = {.route = route, .doomed = doomed};
	int r;

	do {
		ports.n = 0;
		r = sbx_link_list(route, note_port, &ports);
		for (int i = 0; r == 0 && i < ports.n; i++) {
			r = sbx_link_delete(route, ports.indices[i]);
			if (r == -ENODEV) /* its namespace was faster */
				r = 0;
		}
	} while (r == 0 && ports.n == (int)SBX_N_ELEMENTS(ports.indices));
	return r;
}

/* doomed: nobody has these blocks, and so nobody makes ports of them. */
static int sweep(struct sbx_netlink *route, struct sbx_netlink *firewall, bool *ret_empty)
{
	bool doomed[SBX_BLOCKS_MAX];
	int r = sbx_wall_blocks(firewall, doomed);

	if (r < 0)
		return r;
	for (size_t i = 0; i < SBX_BLOCKS_MAX; i++)
		doomed[i] = !doomed[i];
	r = remove_ports(route, doomed);
	return r < 0 ? r : sbx_wall_sweep(firewall, doomed, ret_empty);
}

int sbx_network_sweep(struct sbx_err *err)
{
	SBX_NETLINK struct sbx_netlink *route = NULL, *firewall = NULL;
	struct sbx_link link;
	bool empty = false;
	int r = sbx_netlink_open(NETLINK_ROUTE, &route, err);

	if (r < 0)
		return r;
	r = find_bridge(route, &link, NULL);
	if (r < 0)
		return 0; /* there is none, or none of ours: nothing is left of anybody */
	r = sbx_netlink_open(NETLINK_NETFILTER, &firewall, err);
	if (r < 0)
		return r;
	r = sweep(route, firewall, &empty);
	if (r == 0 && empty)
		r = sbx_link_delete(route, link.index);
	if (r == -EPERM && geteuid() != 0)
		return 0; /* whoever is not root has had nothing on it; root's next start sweeps */
	if (r < 0 && r != -ENODEV)
		return sbx_err_set(err, -r, "remove what is left of " SBX_BRIDGE_NAME ": %m");
	return 0;
}

/* --- a sandbox's block --- */

static bool is_there(struct sbx_bridge *bridge)
{
	struct sbx_link link;

	return find_bridge(bridge->route, &link, NULL) == 0 && link.index == bridge->index;
}

/* -EPERM: somebody else has the block; -ENODEV: the bridge went away. */
static int put_up_wall(struct sbx_bridge *bridge, struct sbx_err *err)
{
	int r = sbx_wall_put_up(bridge->firewall, &bridge->wall);

	if (r == 0 || r == -EPERM) /* somebody has the block */
		return r;
	if (!is_there(bridge))
		return -ENODEV;
	if (r < 0)
		return sbx_err_set(err, EOPNOTSUPP,
			"put up the firewall of network bridge: %s (does the kernel have nf_tables "
			"with netdev chains, reject, ct, connlimit and masq?)",
			strerror(-r));
	return 0;
}

/* Also the first that is asked of nftables, before anything is made. */
static int list_blocks(
	struct sbx_bridge *bridge, bool ret_used[static SBX_BLOCKS_MAX], struct sbx_err *err)
{
	int r = sbx_wall_blocks(bridge->firewall, ret_used);

	return r < 0 ? sbx_err_set(err, -r,
			       "list the firewall's tables: %m (does the kernel have nf_tables?)")
		     : 0;
}

/* -ENODEV: the bridge went away. */
static int take_block(struct sbx_bridge *bridge, struct sbx_err *err)
{
	bool used[SBX_BLOCKS_MAX], doomed[SBX_BLOCKS_MAX] = {false};
	int r = list_blocks(bridge, used, err);

	if (r < 0)
		return r;
	for (unsigned int block = 1; block < SBX_BLOCKS_MAX; block++) {
		if (used[block])
			continue;
		bridge->wall.block = block;
		r = put_up_wall(bridge, err);
		if (r == -EPERM) /* taken meanwhile */
			continue;
		if (r < 0)
			return r;
		doomed[block] = true; /* ports of who had it before; we have none yet */
		r = remove_ports(bridge->route, doomed);
		return r < 0 ? sbx_err_set(err, -r, "remove old ports: %m") : 0;
	}
	return sbx_err_kind(err, SBX_KIND_BUSY, EADDRNOTAVAIL,
		"%u sandboxes with network bridge run on this host, and there are no addresses for "
		"more: stop one of them",
		SBX_BLOCKS_MAX - 1);
}

static int start(struct sbx_bridge *bridge, struct sbx_err *err)
{
	bool used[SBX_BLOCKS_MAX];
	int r = list_blocks(bridge, used, err);

	if (r < 0)
		return r;
	r = -ENODEV;
	for (int i = 0; i < START_TRIES && r == -ENODEV; i++) {
		r = ensure_bridge(bridge, err);
		if (r == 0)
			r = take_block(bridge, err);
	}
	return r;
}

int sbx_bridge_open(const struct sbx_allow *allow, size_t n_allow,
	const struct sbx_resolver *resolver, struct sbx_bridge **ret, struct sbx_err *err)
{
	SBX_CLEANUP(free_bridge) struct sbx_bridge *bridge = calloc(1, sizeof(*bridge));
	bool empty;
	int r;

	if (!bridge)
		return sbx_err_set(err, ENOMEM, "network bridge: %m");
	bridge->wall.allow = allow;
	bridge->wall.n_allow = n_allow;
	bridge->wall.resolver = resolver;
	r = sbx_netlink_open(NETLINK_ROUTE, &bridge->route, err);
	if (r == 0)
		r = sbx_netlink_open(NETLINK_NETFILTER, &bridge->firewall, err);
	if (r == 0)
		r = start(bridge, err);
	if (r == -ENODEV)
		r = sbx_err_set(err, -r,
			"network bridge: " SBX_BRIDGE_NAME " goes away as often as it is made: %m");
	if (r < 0) {
		sbx_bridge_free(sbx_take(&bridge));
		(void)sbx_network_sweep(NULL); /* what it made; the first failure is told */
		return r;
	}
	r = sweep(bridge->route, bridge->firewall, &empty);
	if (r < 0)
		return sbx_err_set(err, -r, "remove what killed sandboxes left behind: %m");
	*ret = sbx_take(&bridge);
	return 0;
}

/* --- a session's port --- */

int sbx_bridge_check(struct sbx_bridge *bridge, bool *ret_moved, struct sbx_err *err)
{
	int r, index = bridge->index;

	*ret_moved = !is_there(bridge);
	if (!*ret_moved && sbx_wall_check(bridge->firewall, bridge->wall.block) == 0)
		return 0;
	r = ensure_bridge(bridge, err);
	if (r == 0)
		r = put_up_wall(bridge, err);
	if (r == -ENODEV || r == -EPERM)
		r = sbx_err_set(err, -r, "put the firewall of network bridge up again: %m");
	*ret_moved = bridge->index != index;
	return r;
}

/* The next address that no session has. The name of its port is what takes it. */
static int make_port(struct sbx_bridge *bridge, int net_ns, unsigned int *ret_address,
	struct sbx_link *ret_port, struct sbx_err *err)
{
	uint8_t mac[ETH_ALEN];
	char name[IFNAMSIZ];
	const struct sbx_link_pair pair = {.name = name,
		.peer_name = INSIDE,
		.bridge = bridge->index,
		.peer_ns = net_ns,
		.peer_mac = mac};
	int r = -EEXIST;

	for (unsigned int i = 0; i < SBX_BLOCK_SIZE && r == -EEXIST; i++) {
		unsigned int address = bridge->next++ % SBX_BLOCK_SIZE;

		(void)snprintf(name, sizeof(name), "sbx%u.%u", bridge->wall.block, address);
		sbx_pool_mac(bridge->wall.block, address, mac);
		r = sbx_link_new_pair(bridge->route, &pair);
		*ret_address = address;
	}
	if (r == -EEXIST)
		return sbx_err_kind(err, SBX_KIND_BUSY, EADDRNOTAVAIL,
			"all %u addresses of the sandbox are in use: end some sessions",
			SBX_BLOCK_SIZE);
	if (r == 0)
		r = sbx_link_find(bridge->route, name, ret_port);
	return r < 0 ? sbx_err_set(err, -r,
			       "make a port of " SBX_BRIDGE_NAME
			       ": %m (does the kernel have the module veth?)")
		     : 0;
}

static int shut_port(struct sbx_bridge *bridge, const struct sbx_link *port, unsigned int address)
{
	uint8_t mac[ETH_ALEN];
	int r;

	sbx_pool_mac(bridge->wall.block, address, mac);
	r = sbx_link_shut_port(bridge->route, port->index, mac);
	if (r == 0)
		r = sbx_link_without_ipv6(bridge->route, port->index);
	return r < 0 ? r : sbx_link_up(bridge->route, port->index); /* last */
}

int sbx_bridge_connect(struct sbx_bridge *bridge, int net_ns, int proc_fd, struct sbx_err *err)
{
	const struct sbx_wall *wall = &bridge->wall;
	struct sbx_link port;
	unsigned int address;
	int r = sbx_net_disable_ipv6(proc_fd, err); /* before eth0 is there: it is made without */

	if (r == 0)
		r = make_port(bridge, net_ns, &address, &port, err);
	if (r < 0)
		return r;
	r = shut_port(bridge, &port, address);
	if (r < 0)
		return sbx_err_set(err, -r, "shut the session's port: %m");
	return sbx_net_join(INSIDE, sbx_pool_address(wall->pool, wall->block, address),
		sbx_pool_gateway(wall->pool), err);
}
