/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "sbx/store.h"

#include "local.h"

int sbx_admin_open_state(struct sbx_buf *ret_path, int *ret_fd, struct sbx_err *err)
{
	int fd, r = sbx_state_root(ret_path);

	if (r < 0)
		return sbx_err_set(
			err, -r, "cannot tell where the sandboxes are: set SBX_STATE_DIR or HOME");
	fd = open(ret_path->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sbx_err_set(err, errno, "open the state directory %s: %m", ret_path->data);
	*ret_fd = fd;
	return 0;
}

static int open_nearest(char *path, struct sbx_err *err)
{
	for (;;) {
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		char *slash = strrchr(path, '/');

		if (fd >= 0)
			return fd;
		if (errno != ENOENT || !slash || !path[1])
			return sbx_err_set(err, errno, "open %s: %m", path);
		slash[slash == path] = '\0'; /* "/" stays */
	}
}

int sbx_admin_open_nearest_state(int *ret_fd, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	int fd, r = sbx_state_root(&path);

	if (r < 0)
		return sbx_err_set(
			err, -r, "cannot tell where sandboxes would be: set SBX_STATE_DIR or HOME");
	fd = open_nearest(path.data, err);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
