/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "sbx/sock.h"
#include "sbx/store.h"

#include "local.h"

/* Whether its sandboxd answers. Asking starts nothing. */
static bool is_running(int sandbox_fd)
{
	SBX_CLOSE int fd = -EBADF;

	return sbx_sock_connect(sandbox_fd, SANDBOXD_SOCKET, &fd) == 0;
}

static void describe(int sandbox_fd, const char *id, struct json_object *entry)
{
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox sandbox = {0};
	struct sbx_err err = SBX_ERR_INIT;

	if (sbx_sandbox_load(sandbox_fd, &sandbox, &err) == 0) {
		sbx_sandbox_to_json(&sandbox, entry);
	} else {
		sbx_json_add_string(entry, "sandbox_id", id);
		sbx_json_add_string(entry, "problem", err.message);
	}
	sbx_json_add_bool(entry, "running", is_running(sandbox_fd));
}

/* Only those that the caller may use: others are not there for him. */
static int add_sandbox(int state_fd, const char *id, struct json_object *list)
{
	SBX_JSON struct json_object *entry = json_object_new_object();
	SBX_CLOSE int fd = openat(state_fd, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (!entry)
		return -ENOMEM;
	if (fd < 0 || faccessat(fd, SANDBOX_OWNER, R_OK, AT_EACCESS) < 0)
		return 0;
	describe(fd, id, entry);
	if (json_object_array_add(list, entry) < 0)
		return -ENOMEM;
	entry = NULL;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(sbx_json_string(*(struct json_object *const *)a, "sandbox_id", ""),
		sbx_json_string(*(struct json_object *const *)b, "sandbox_id", ""));
}

static int add_all(int state_fd, struct json_object *list)
{
	SBX_CLOSE int dir_fd = openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	int r = 0;

	if (!dir)
		return -errno;
	(void)sbx_fd_take(&dir_fd); /* closedir() closes it */
	while (r == 0 && (errno = 0, entry = readdir(dir)))
		if (sbx_id_valid(entry->d_name))
			r = add_sandbox(state_fd, entry->d_name, list);
	if (r == 0)
		r = -errno;
	(void)closedir(dir);
	return r;
}

int sbx_admin_list(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = json_object_new_object();
	struct json_object *list = json_object_new_array();
	SBX_BUF struct sbx_buf path = SBX_BUF_INIT;
	SBX_CLOSE int state_fd = -EBADF;
	int r;

	(void)call;
	(void)ret_details;
	if (!result || !list) {
		json_object_put(list);
		return sbx_err_set(err, ENOMEM, "list the sandboxes: %m");
	}
	sbx_json_add(result, "sandboxes", list);
	r = sbx_admin_open_state(&path, &state_fd, err);
	if (r == 0) {
		r = add_all(state_fd, list);
		if (r < 0)
			return sbx_err_set(err, -r, "list the state directory %s: %m", path.data);
	} else if (r != -ENOENT) { /* before the first create there is no directory */
		return r;
	}
	json_object_array_sort(list, compare_ids);
	*ret_result = sbx_take(&result);
	return 0;
}
