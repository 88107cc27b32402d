/* SPDX-License-Identifier: MIT */
#include "net.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "link.h"
#include "sbx/fs.h"
#include "userns.h"

#define LOOPBACK_INDEX 1 /* LOOPBACK_IFINDEX: the first interface of every namespace */

static int loopback_up(struct sbx_err *err)
{
	SBX_NETLINK struct sbx_netlink *nl = NULL;
	int r = sbx_netlink_open(NETLINK_ROUTE, &nl, err);

	if (r < 0)
		return r;
	r = sbx_link_up(nl, LOOPBACK_INDEX);
	return r < 0 ? sbx_err_set(err, -r, "bring the loopback interface up: %m") : 0;
}

/* /proc/sys/net shows the namespace of whoever looks, so the host's /proc will do. */
static int write_sysctl(int proc_fd, const char *name, const char *value, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(proc_fd, name, O_WRONLY | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0; /* a kernel without that protocol: nothing to set */
	r = fd < 0 ? -errno : sbx_fs_write_all(fd, value, strlen(value));
	if (r < 0)
		return sbx_err_set(err, -r, "set /proc/%s: %m", name);
	return 0;
}

int sbx_net_ready(int proc_fd, gid_t id_base, struct sbx_err *err)
{
	char groups[64];
	int r;

	r = loopback_up(err);
	if (r < 0)
		return r;
	r = write_sysctl(proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", "0", err);
	if (r < 0)
		return r;
	(void)snprintf(groups, sizeof(groups), "%u %u", id_base, id_base + SBX_USERNS_IDS - 1);
	return write_sysctl(proc_fd, "sys/net/ipv4/ping_group_range", groups, err);
}

int sbx_net_disable_ipv6(int proc_fd, struct sbx_err *err)
{
	return write_sysctl(proc_fd, "sys/net/ipv6/conf/default/disable_ipv6", "1", err);
}

int sbx_net_join(const char *interface, uint32_t address, uint32_t gateway, struct sbx_err *err)
{
	SBX_NETLINK struct sbx_netlink *nl = NULL;
	int index = (int)if_nametoindex(interface);
	int r;

	if (!index)
		return sbx_err_set(err, errno, "find the session's %s: %m", interface);
	r = sbx_netlink_open(NETLINK_ROUTE, &nl, err);
	if (r < 0)
		return r;
	r = sbx_link_add_address(nl, index, address, 32);
	if (r == 0)
		r = sbx_link_up(nl, index);
	if (r == 0)
		r = sbx_link_default_route(nl, index, gateway);
	return r < 0 ? sbx_err_set(err, -r, "set up the session's %s: %m", interface) : 0;
}
