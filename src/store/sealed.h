/* SPDX-License-Identifier: MIT */
/*
 * A small JSON file of ours with a format version and a checksum over the bytes of its body:
 *
 *   {"format":1,"checksum":"0123456789abcdef","body":{...}}\n
 */
#ifndef SBX_STORE_SEALED_H
#define SBX_STORE_SEALED_H

#include "sbx/fs.h"
#include "sbx/json.h"

#define SEALED_MAX (4u << 20) /* bytes of such a file */

/* Replaces dir_fd/name, mode 0600, by tmp + rename. */
int sealed_write(int dir_fd, const char *name, struct json_object *body,
	enum sbx_fs_write_flags flags, struct sbx_err *err);
/* -ENOENT, -EBADMSG with the damage named. ret_body: put it. */
int sealed_read(int dir_fd, const char *name, struct json_object **ret_body, struct sbx_err *err);

#endif
