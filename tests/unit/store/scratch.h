/* SPDX-License-Identifier: MIT */
/* A directory that goes away with the test. */
#ifndef SBX_TEST_STORE_SCRATCH_H
#define SBX_TEST_STORE_SCRATCH_H

#include "sbx/util.h"

struct scratch {
	char path[64];
	int fd;
};

struct scratch scratch_new(void);
void scratch_done(struct scratch *scratch);
#define SCRATCH SBX_CLEANUP(scratch_done)

/* Entries in it, or in any directory. */
size_t scratch_count(const struct scratch *scratch);
size_t scratch_count_at(int dir_fd);
/* Files in the directory dir_fd; all abort the test when they fail. */
void scratch_write(int dir_fd, const char *name, const char *text);
int scratch_mkdir(int dir_fd, const char *name); /* an open descriptor */

#endif
