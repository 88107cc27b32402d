/* SPDX-License-Identifier: MIT */
/* file_write: a whole file, byte for byte as given. */
#include "jobs.h"
#include "put.h"

int sbx_job_file_write(struct sbx_job *job, struct sbx_err *err)
{
	struct json_object *content = sbx_json_member(sbx_job_tool_args(job), "content");
	SBX_TARGET struct sbx_target target = SBX_TARGET_INIT;
	struct sbx_file_put put = {.data = ""};
	struct json_object *tool;
	int r;

	if (content) {
		put.data = json_object_get_string(content);
		put.size = (size_t)json_object_get_string_len(content);
	}
	r = sbx_target_init(&target, job, err);
	if (r < 0)
		return r;
	r = sbx_put_file(job, &target, &put, err);
	if (r < 0)
		return r;
	tool = json_object_new_object();
	sbx_json_add_string(tool, "type", put.created ? "create" : "update");
	sbx_json_add_path(tool, "path", target.path);
	sbx_json_add_int(tool, "bytes_written", (int64_t)put.size);
	sbx_put_answer(job, &put, tool);
	return 0;
}
