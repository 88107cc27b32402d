/* SPDX-License-Identifier: MIT */
/* The overlay of one session: attached layers below, the session's upper above. */
#ifndef SBX_SESSION_OVERLAY_H
#define SBX_SESSION_OVERLAY_H

#include "spawn.h"

/* Mounts it, attached at /o/<slot>, and, where the sandbox has a root file system of its own, that
 * of the session's root at /r/<slot>. layers: numbers of attached layers, bottom first; upper and
 * work are those of sessions/<session_dir>, and of root/ in it, work empty. */
int sbx_overlay_mount(struct sbx_spawn *spawn, uint32_t slot, const char *session_dir,
	const uint32_t *layers, size_t n_layers, struct sbx_err *err);
/* -EBUSY while somebody holds a file of it open. Afterwards the file system is gone, unless a
 * session's mount namespace still shows it. */
int sbx_overlay_unmount(const struct sbx_spawn *spawn, uint32_t slot, struct sbx_err *err);

enum { SBX_OVERLAY_PATH_SIZE = 16 };
void sbx_overlay_path(uint32_t slot, char ret[static SBX_OVERLAY_PATH_SIZE]);
void sbx_overlay_root_path(uint32_t slot, char ret[static SBX_OVERLAY_PATH_SIZE]);

#endif
