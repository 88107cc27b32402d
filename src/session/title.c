/* SPDX-License-Identifier: MIT */
#include "title.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "sbx/fs.h"

#define STAT_MAX 4096

/* Where the kernel reads /proc/pid/cmdline from: the memory of the arguments as they came. */
static char *arguments;
static size_t arguments_size;

/* proc_pid_stat(5), fields 48 and 49. The second field may hold blanks, but ends in the last ')',
 * behind which is the third. */
static int find_arguments(struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	unsigned long start = 0, end = 0;
	const char *p;
	int r = sbx_fs_read_at(AT_FDCWD, "/proc/self/stat", STAT_MAX, &text);

	if (r < 0)
		return sbx_err_set(err, -r, "read /proc/self/stat: %m");
	p = text.data ? strrchr(text.data, ')') : NULL;
	for (int field = 2; p && field < 48; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %lu %lu", &start, &end) != 2 || end <= start)
		return sbx_err_set(
			err, EPROTO, "/proc/self/stat does not tell where arguments are");
	arguments = (char *)start;
	arguments_size = end - start;
	return 0;
}

int sbx_title_set(const char *title, struct sbx_err *err)
{
	size_t n = strlen(title);
	int r;

	if (!arguments) {
		r = find_arguments(err);
		if (r < 0)
			return r;
	}
	memset(arguments, 0, arguments_size);
	memcpy(arguments, title, SBX_MIN(n, arguments_size - 1));
	if (prctl(PR_SET_NAME, title) < 0)
		return sbx_err_set(err, errno, "name the process: %m");
	return 0;
}
