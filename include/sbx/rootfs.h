/* SPDX-License-Identifier: MIT */
/*
 * An unpacked root file system ("--rootfs DIR"), seen from those who choose one. A session gets
 * an overlay of its own over it, with an upper in the session's directory: DIR itself is only
 * read, and nothing in it is believed.
 */
#ifndef SBX_ROOTFS_H
#define SBX_ROOTFS_H

#include "sbx/err.h"

#define SBX_ROOTFS_HOST "host" /* in its place: the host's /usr, /etc and /opt */

/*
 * Opens DIR for struct sbx_spawner_config. Refused with the reason and what to do: a path that is
 * not absolute or leads through a symbolic link, what is no directory or has no shell, and one
 * that holds the state root or is in it (state_fd). Reads only.
 */
enum sbx_rootfs_flags {
	SBX_ROOTFS_STATE_ABOVE = 1 << 0, /* state_fd only holds the state root, yet to be made */
};
int sbx_rootfs_open(const char *path, int state_fd, enum sbx_rootfs_flags flags, int *ret_fd,
	struct sbx_err *err);
/* Whether its file system can do what sessions need: idmapped mounts. Needs root. */
int sbx_rootfs_try(int rootfs_fd, const char *path, struct sbx_err *err);

#endif
