/* SPDX-License-Identifier: MIT */
#include <limits.h>

#include "init.h"
#include "sbx/sys.h"

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

int sbx_fds_keep(const int *keep, size_t n_keep)
{
	enum { N_MAX = 8 };
	int sorted[N_MAX];
	unsigned int next = STDERR_FILENO + 1;
	int r;

	if (n_keep > N_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n_keep; i++)
		sorted[i] = keep[i];
	qsort(sorted, n_keep, sizeof(sorted[0]), compare);
	for (size_t i = 0; i < n_keep; i++) {
		unsigned int fd = (unsigned int)sorted[i];

		if (sorted[i] < 0 || fd < next)
			continue;
		if (fd > next) {
			r = sbx_sys_close_range(next, fd - 1, 0);
			if (r < 0)
				return r;
		}
		next = fd + 1;
	}
	return sbx_sys_close_range(next, UINT_MAX, 0);
}
