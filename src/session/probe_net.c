/* SPDX-License-Identifier: MIT */
/* The tries that are about networks. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "bridge.h"
#include "net.h"
#include "probe_try.h"

#define TRY_ID_BASE (UINT32_C(1) << 20) /* any range will do: nothing is done with it */

int sbx_try_forwarding(SBX_UNUSED struct sbx_probe_context *context, struct sbx_err *err)
{
	return sbx_network_check_forwarding(err);
}

static void describe_servers(const struct sbx_resolver *resolver, char *ret, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < resolver->n_servers && used < size; i++) {
		const struct in_addr address = {htonl(resolver->servers[i])};
		char text[INET_ADDRSTRLEN];

		(void)inet_ntop(AF_INET, &address, text, sizeof(text)); /* it fits */
		used += (size_t)snprintf(ret + used, size - used, "%s%s", i ? ", " : "", text);
	}
}

int sbx_try_resolver(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_resolver_done) struct sbx_resolver resolver = {.n_servers = 0};
	SBX_CLOSE int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (root_fd < 0)
		return sbx_err_set(err, errno, "open /: %m");
	r = sbx_resolver_load(root_fd, &resolver, err);
	if (r < 0)
		return r;
	if (!resolver.n_servers)
		return sbx_err_set(err, ENOENT,
			"resolv.conf names none that sessions can reach: only loopback or IPv6 "
			"addresses");
	describe_servers(&resolver, context->detail, sizeof(context->detail));
	return 0;
}

int sbx_try_network(struct sbx_probe_context *context, struct sbx_err *err)
{
	if (unshare(CLONE_NEWNET) < 0)
		return sbx_err_set(err, errno, "make a network namespace: %m");
	return sbx_net_ready(context->proc_fd, TRY_ID_BASE, err);
}

/* The whole of it, between two namespaces that go with the probe: the host's is not touched. */
int sbx_try_bridge(struct sbx_probe_context *context, struct sbx_err *err)
{
	SBX_CLOSE int inside = -EBADF;
	struct sbx_bridge *bridge = NULL;
	int r = sbx_bridge_open(NULL, 0, NULL, &bridge, err);

	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNET) < 0)
		r = sbx_err_set(err, errno, "make a network namespace: %m");
	if (r == 0) {
		inside = openat(context->proc_fd, "self/ns/net", O_RDONLY | O_CLOEXEC);
		r = inside < 0 ? sbx_err_set(err, errno, "open a network namespace: %m")
			       : sbx_bridge_connect(bridge, inside, context->proc_fd, err);
	}
	sbx_bridge_free(bridge);
	return r;
}
