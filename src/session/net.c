/* SPDX-License-Identifier: MIT */
#include "net.h"

#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sbx/fs.h"
#include "userns.h"

#define LOOPBACK_INDEX 1 /* LOOPBACK_IFINDEX: the first interface of every namespace */

static inline void close_socket(struct mnl_socket **nl)
{
	if (*nl)
		(void)mnl_socket_close(*nl); /* nothing is buffered in it */
}
#define MNL SBX_CLEANUP(close_socket)

/* Sends one request and reads its acknowledgement: 0 or -errno. */
static int transact(struct mnl_socket *nl, struct nlmsghdr *request)
{
	char buffer[8192]; /* MNL_SOCKET_BUFFER_SIZE is not constant; an acknowledgement is short */
	ssize_t n;

	if (mnl_socket_sendto(nl, request, request->nlmsg_len) < 0)
		return -errno;
	n = mnl_socket_recvfrom(nl, buffer, sizeof(buffer));
	if (n < 0)
		return -errno;
	if (mnl_cb_run(buffer, (size_t)n, request->nlmsg_seq, mnl_socket_get_portid(nl), NULL,
		    NULL) < 0)
		return -errno;
	return 0;
}

static int loopback_up(struct sbx_err *err)
{
	MNL struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	char buffer[256];
	struct nlmsghdr *request;
	struct ifinfomsg *link;
	int r;

	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
		return sbx_err_set(err, errno, "open a route netlink socket: %m");
	request = mnl_nlmsg_put_header(buffer);
	request->nlmsg_type = RTM_NEWLINK;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	request->nlmsg_seq = 1;
	link = mnl_nlmsg_put_extra_header(request, sizeof(*link));
	link->ifi_family = AF_UNSPEC;
	link->ifi_index = LOOPBACK_INDEX;
	link->ifi_change = IFF_UP;
	link->ifi_flags = IFF_UP;
	r = transact(nl, request);
	if (r < 0)
		return sbx_err_set(err, -r, "bring the loopback interface up: %m");
	return 0;
}

/* /proc/sys/net shows the namespace of whoever looks, so the host's /proc will do. */
static int write_sysctl(int proc_fd, const char *name, const char *value, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(proc_fd, name, O_WRONLY | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0; /* a kernel without IPv4: there is nothing to allow */
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
