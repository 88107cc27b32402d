/* SPDX-License-Identifier: MIT */
/* Layers attached in the store namespace, idmapped and read-only, under short names. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "mount.h"
#include "sbx/fs.h"
#include "spawn.h"

static void layer_path(uint32_t number, char ret[static 16])
{
	(void)snprintf(ret, 16, "/l/%u", number);
}

int sbx_spawn_layer(struct sbx_spawn *spawn, uint32_t number, const char *id, struct sbx_err *err)
{
	SBX_CLOSE int dir = -EBADF, tree = -EBADF;
	char inside[SBX_ID_SIZE + sizeof("/tree")], path[16];
	int r;

	if (number >= SBX_SPAWN_NAMES_MAX || !sbx_id_valid(id))
		return sbx_err_set(err, EINVAL, "layer %u: bad number or id", number);
	if (spawn->layer_users[number])
		return sbx_err_set(err, EEXIST, "layer number %u is in use", number);
	(void)snprintf(inside, sizeof(inside), "%s/tree", id);
	dir = sbx_fs_open_beneath(spawn->layers_fd, inside, O_PATH | O_DIRECTORY, 0, 0);
	if (dir < 0)
		return sbx_err_set(err, -dir, "open layer %s: %m", id);
	r = sbx_mount_clone(dir, "", 0, &tree, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "layer %s", id);
	r = sbx_mount_set(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		spawn->user_ns, 0, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "layer %s", id);
	layer_path(number, path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return sbx_err_set(err, errno, "make %s: %m", path);
	r = sbx_mount_attach(tree, AT_FDCWD, path, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "layer %s", id);
	spawn->layer_users[number] = 1;
	return 0;
}

int sbx_spawn_unlayer(struct sbx_spawn *spawn, uint32_t number, struct sbx_err *err)
{
	char path[16];

	if (number >= SBX_SPAWN_NAMES_MAX || !spawn->layer_users[number])
		return sbx_err_set(err, ENOENT, "layer number %u is not attached", number);
	if (spawn->layer_users[number] > 1)
		return sbx_err_set(err, EBUSY, "layer number %u is used by %d sessions", number,
			spawn->layer_users[number] - 1);
	layer_path(number, path);
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
		return sbx_err_set(err, errno, "detach layer number %u: %m", number);
	(void)rmdir(path); /* an empty directory left behind is taken again by the next layer */
	spawn->layer_users[number] = 0;
	return 0;
}
