/* SPDX-License-Identifier: MIT */
/*
 * A directory of a walk: open, or given up to save the descriptor and to be found again through
 * ".." of one below it, checked by device and inode.
 */
#ifndef SBX_STORE_PLACE_H
#define SBX_STORE_PLACE_H

#include <sys/types.h>

#include "sbx/util.h"

struct place {
	int fd; /* -EBADF: given up, or none */
	dev_t dev;
	ino_t ino;
};

/* A directory, without moving its access time where we may. An fd or -1 with errno. */
int place_open(int dir_fd, const char *name);
/* Takes the descriptor, which the place closes. */
int place_of(int fd, struct place *ret);
void place_give_up(struct place *place);
/* -ESTALE: below_fd's parent is another directory now. */
int place_find_again(struct place *place, int below_fd);

#endif
