/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

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
