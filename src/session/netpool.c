/* SPDX-License-Identifier: MIT */
#include "netpool.h"

#include <sched.h>

#include "bridge.h"
#include "net.h"

/* In the new namespace. */
static int fill(struct sbx_spawn *spawn, int net_ns, struct sbx_err *err)
{
	int r = sbx_net_ready(spawn->proc_fd, spawn->config->id_base, err);

	if (r >= 0 && spawn->bridge)
		r = sbx_bridge_connect(spawn->bridge, net_ns, spawn->proc_fd, err);
	return r;
}

static int make(struct sbx_spawn *spawn, int *ret_ns, struct sbx_err *err)
{
	SBX_CLOSE int net_ns = -EBADF;
	int r;

	if (unshare(CLONE_NEWNET) < 0)
		return sbx_err_set(err, errno, "make the session's network namespace: %m");
	r = sbx_spawn_open_ns(spawn, "net", &net_ns, err);
	if (r >= 0)
		r = fill(spawn, net_ns, err);
	if (setns(spawn->home.net, CLONE_NEWNET) < 0)
		_exit(EXIT_FAILURE); /* as slot_ns.c: of no use to anybody */
	if (r >= 0)
		*ret_ns = sbx_fd_take(&net_ns);
	return r;
}

int sbx_netpool_take(struct sbx_spawn *spawn, int *ret_ns, struct sbx_err *err)
{
	bool moved = false;
	int r = spawn->bridge ? sbx_bridge_check(spawn->bridge, &moved, err) : 0;

	if (r < 0)
		return r;
	if (moved) /* it is a port of nothing */
		sbx_fd_close(&spawn->ready_net);
	if (spawn->ready_net < 0)
		return make(spawn, ret_ns, err);
	*ret_ns = sbx_fd_take(&spawn->ready_net);
	return 0;
}

void sbx_netpool_fill(struct sbx_spawn *spawn)
{
	if (spawn->config->network != SBX_NETWORK_HOST && spawn->ready_net < 0)
		(void)make(spawn, &spawn->ready_net, NULL); /* take() tries again, and tells */
}
