/* SPDX-License-Identifier: MIT */
/* Contents of one regular file into another, by the cheapest way that works. */
#ifndef SBX_STORE_COPY_DATA_H
#define SBX_STORE_COPY_DATA_H

#include <sys/stat.h>

#include "sbx/util.h"

/* What was learnt about the two file systems, and a buffer; one for each copy of a tree. */
struct copy_data {
	bool no_share; /* FICLONE failed once: not tried again */
	bool no_range; /* copy_file_range(2) likewise */
	char *buffer;
};
int copy_data_init(struct copy_data *data);
void copy_data_done(struct copy_data *data);

enum copy_data_result {
	COPY_DATA_COPIED,
	COPY_DATA_SHARED, /* the files share their blocks */
};
/*
 * Copies the first st->st_size bytes of in to the empty file out, holes as holes. A file that got
 * shorter meanwhile gives a shorter copy. enum copy_data_result or -errno. Offsets move.
 */
int copy_data_run(struct copy_data *data, int in, int out, const struct stat *st);

#endif
