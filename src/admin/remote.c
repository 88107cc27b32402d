/* SPDX-License-Identifier: MIT */
#include "remote.h"

#include <string.h>

#include "sbx/client.h"
#include "sbx/fs.h"

static int write_chunk(void *data, const void *bytes, size_t size)
{
	(void)data;
	return sbx_fs_write_all(STDOUT_FILENO, bytes, size);
}

static int keep_chunk(void *data, const void *bytes, size_t size)
{
	struct sbx_buf *content = data;

	if (size > REMOTE_CONTENT_MAX - content->size)
		return -EFBIG;
	return sbx_buf_append(content, bytes, size);
}

static int call_op(const char *op, struct json_object *args, sbx_client_chunk_fn chunk,
	void *chunk_data, struct json_object **ret_result, struct json_object **ret_details,
	struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	int r = sbx_client_connect(sbx_json_string(args, "sandbox_id", ""), &fd, err);

	if (r < 0)
		return r;
	return sbx_client_call(fd, op, args, chunk, chunk_data, ret_result, ret_details, err);
}

int sbx_admin_remote(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf content = SBX_BUF_INIT;
	int r;

	if (!call->json)
		return call_op(call->verb->op, call->args, write_chunk, NULL, ret_result,
			ret_details, err);
	r = call_op(call->verb->op, call->args, keep_chunk, &content, ret_result, ret_details, err);
	if (r == 0 && content.size)
		sbx_json_add_bytes(*ret_result, "content", content.data, content.size);
	return r;
}

int sbx_admin_fetch(const char *op, struct json_object *args, struct sbx_buf *content,
	struct json_object **ret_result, struct sbx_err *err)
{
	return call_op(op, args, keep_chunk, content, ret_result, NULL, err);
}

static int pin_version(struct json_object *args, struct sbx_err *err)
{
	SBX_JSON struct json_object *sandbox = json_object_new_object();
	SBX_JSON struct json_object *result = NULL;
	SBX_BUF struct sbx_buf nothing = SBX_BUF_INIT;
	int r;

	if (!sandbox)
		return sbx_err_set(err, ENOMEM, "blame: %m");
	sbx_json_add_string(sandbox, "sandbox_id", sbx_json_string(args, "sandbox_id", ""));
	r = sbx_admin_fetch("inspect", sandbox, &nothing, &result, err);
	if (r == 0)
		sbx_json_add_int(args, "at", sbx_json_int(result, "version", 1));
	return r;
}

int sbx_admin_blame(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err)
{
	int r = 0;

	/* People see the lines too, by a second call. */
	if (!call->json && !sbx_json_member(call->args, "at"))
		r = pin_version(call->args, err);
	return r < 0 ? r : sbx_admin_remote(call, ret_result, ret_details, err);
}
