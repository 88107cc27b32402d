/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <fcntl.h>
#include <sys/stat.h>

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

int place_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, OPEN_DIR_FLAGS | O_NOATIME);

	if (fd < 0 && errno == EPERM) /* owned by somebody else, and we are not root */
		fd = openat(dir_fd, name, OPEN_DIR_FLAGS);
	return fd;
}

int place_of(int fd, struct place *ret)
{
	struct stat st;

	ret->fd = fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	return 0;
}

void place_give_up(struct place *place)
{
	sbx_fd_close(&place->fd);
}

int place_find_again(struct place *place, int below_fd)
{
	SBX_CLOSE int fd = place_open(below_fd, "..");
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != place->dev || st.st_ino != place->ino)
		return -ESTALE;
	place->fd = sbx_fd_take(&fd);
	return 0;
}
