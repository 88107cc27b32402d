/* SPDX-License-Identifier: MIT */
/* Root file systems other than the host's, seen from the spawner. */
#ifndef SBX_SESSION_ROOTFS_H
#define SBX_SESSION_ROOTFS_H

#include "sbx/buf.h"
#include "sbx/rootfs.h"
#include "sbx/spawner.h"

/* Names below /l of the store namespace (spawn.h). */
#define SBX_ROOTFS_LAYER  "root"
#define SBX_ROOTFS_PLACES "places"
#define SBX_ROOTFS_STAGE  "root" /* in the template: where a session's root is put together */

/*
 * What lies between DIR and a session's upper, the same for all sessions: a small read-only tree,
 * attached nowhere, with the mount points and the files of /etc that tell about the network. So
 * nothing has to be made in DIR, and whatever it has in those places (symbolic links, files) is
 * hidden without being looked at. A directory of DIR on the way to the workspace keeps its mode
 * and owner. rootfs: the tree of DIR, not idmapped; resolver may be empty: DIR's own stays.
 */
int sbx_rootfs_places(const struct sbx_spawner_config *config, int rootfs,
	const struct sbx_buf *hosts, const struct sbx_buf *resolver, int *ret_tree,
	struct sbx_err *err);

#endif
