/* SPDX-License-Identifier: MIT */
/*
 * The job "remove": what sandboxd is done with and has put out of the way. One of
 *   {"session_dir"}  a directory below sessions/ that was renamed to dead_*
 *   {"command_dir"}  an old command
 *   {"layer_id"}     a layer that no head ever named
 *   {"layers"}       those of versions that were forgotten, but for what rejects need
 */
#include <string.h>

#include "remove.h"

#include "job_args.h"
#include "sbx/fs.h"
#include "sbx/id.h"
#include "sbx/publish.h"

#define DEAD_PREFIX "dead_"

static int refuse(const char *name, struct sbx_err *err)
{
	return sbx_err_kind(
		err, SBX_KIND_INTERNAL, EINVAL, "remove: '%.64s' is not for this job", name);
}

static int remove_forgotten(const struct sbx_job *job, struct sbx_err *err)
{
	SBX_STACK struct sbx_stack layers = SBX_STACK_INIT;
	SBX_STACK struct sbx_stack needed = SBX_STACK_INIT;
	int r = sbx_job_layer_set(job, "layers", &layers, err);

	if (r == 0)
		r = sbx_reject_bases(job->context, &needed, err);
	for (size_t i = 0; r == 0 && i < layers.n; i++) {
		if (sbx_stack_find(&needed, layers.ids[i]) >= 0)
			continue; /* the next gc after the reject's end takes it */
		r = sbx_fs_remove_tree(job->context->layers_fd, layers.ids[i]);
		if (r < 0)
			return sbx_err_set(err, -r, "remove layer %s: %m", layers.ids[i]);
	}
	return r;
}

int sbx_job_remove(struct sbx_job *job, struct sbx_err *err)
{
	const struct {
		const char *key;
		const char *prefix; /* of a generated id; NULL: a session directory */
		int parent_fd;
	} places[] = {
		{"session_dir", NULL, job->context->sessions_fd},
		{"command_dir", SBX_ID_COMMAND, job->context->commands_fd},
		{"layer_id", SBX_ID_LAYER, job->context->layers_fd},
	};
	int r = sbx_json_member(job->args, "layers") ? remove_forgotten(job, err) : 0;

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(places); i++) {
		const char *name = sbx_json_string(job->args, places[i].key, NULL);

		if (!name)
			continue;
		if (places[i].prefix ? !sbx_id_has_prefix(name, places[i].prefix)
				     : !sbx_id_valid(name) || strncmp(name, DEAD_PREFIX, 5))
			return refuse(name, err);
		r = sbx_fs_remove_tree(places[i].parent_fd, name);
		if (r < 0)
			return sbx_err_set(err, -r, "remove %s: %m", name);
	}
	return r;
}
