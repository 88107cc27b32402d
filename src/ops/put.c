/* SPDX-License-Identifier: MIT */
#include "put.h"

#include <string.h>

#include "layer_put.h"
#include "session_put.h"

static int put_in_session(const struct sbx_job *job, const struct sbx_target *target,
	struct sbx_file_put *put, struct sbx_err *err)
{
	struct sbx_put request = {target->path, put->data, put->size, put->expected};
	int64_t id_base = 0;
	int r;

	r = sbx_job_int(job, "id_base", &id_base, err);
	if (r < 0)
		return r;
	put->outcome = "session";
	return sbx_session_put(target->session_fd, (uid_t)id_base, &request, &put->created, err);
}

static int put_in_layer(const struct sbx_job *job, const struct sbx_target *target,
	struct sbx_file_put *put, struct sbx_err *err)
{
	struct sbx_layer_put request = {.data = put->data, .size = put->size};
	int r;

	r = sbx_layer_put(job, target, &request, err);
	if (r < 0)
		return r;
	put->outcome = request.no_op ? "no_op" : "published";
	put->created = request.created;
	return 0;
}

int sbx_put_file(const struct sbx_job *job, const struct sbx_target *target,
	struct sbx_file_put *put, struct sbx_err *err)
{
	if (!*target->path)
		return sbx_target_refuse(target->path, -EBADF, S_IFDIR, err);
	if (target->view)
		return put_in_layer(job, target, put, err);
	return put_in_session(job, target, put, err);
}

void sbx_put_answer(struct sbx_job *job, const struct sbx_file_put *put, struct json_object *tool)
{
	sbx_json_add_string(job->result, "outcome", put->outcome);
	if (!strcmp(put->outcome, "published"))
		sbx_json_add_string(
			job->result, "layer_id", sbx_json_string(job->args, "layer_id", NULL));
	sbx_json_add(job->result, "tool", tool);
}
