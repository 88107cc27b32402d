/* SPDX-License-Identifier: MIT */
/* Verbs that sbx-admin carries out on the state root by itself, and what they share. */
#ifndef SBX_ADMIN_LOCAL_H
#define SBX_ADMIN_LOCAL_H

#include "verb.h"

/* Files of a sandbox besides its store (docs/store-format.md). */
#define SANDBOXD_SOCKET "sandboxd.sock"
#define SANDBOXD_LOCK   "sandboxd.lock"
#define SANDBOX_OWNER   "owner" /* readable by those who may know of the sandbox */

int sbx_admin_create(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err);
int sbx_admin_list(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err);
int sbx_admin_destroy(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err);
int sbx_admin_doctor(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err);

/* The state root's path and an O_DIRECTORY descriptor of it. */
int sbx_admin_open_state(struct sbx_buf *ret_path, int *ret_fd, struct sbx_err *err);
/* The same, or, while there is none, the directory that it will be made in. */
int sbx_admin_open_nearest_state(int *ret_fd, struct sbx_err *err);

#endif
