/* SPDX-License-Identifier: MIT */
/*
 * The template: a mount namespace with everything that all sessions of the sandbox share, and empty
 * directories where a session's own mounts go. Sessions start as copies of it.
 */
#ifndef SBX_SESSION_TEMPLATE_H
#define SBX_SESSION_TEMPLATE_H

#include "sbx/spawner.h"

/*
 * Turns the calling process's mount namespace, a private copy of the host's, into the template:
 * afterwards its root is the sessions' root, read-only, and nothing else of the host is mounted.
 * rootfs: -EBADF, or the tree of a root file system of its own; then the template holds what
 * sessions add to it, and ret_places is what lies over it in each (rootfs.h), else -EBADF.
 */
int sbx_template_build(
	const struct sbx_spawner_config *config, int rootfs, int *ret_places, struct sbx_err *err);

#endif
