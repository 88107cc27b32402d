/* SPDX-License-Identifier: MIT */
/* export: the published state, back out of the store. */
#include <stdio.h>
#include <string.h>

#include "dest.h"
#include "export_oci.h"
#include "job_args.h"
#include "jobs.h"

struct export
{
	const struct sbx_dest *dest;
	const struct sbx_sandbox *sandbox;
	struct sbx_view *view;
	int64_t version;
	struct json_object *report;
};

/*
 * A directory gets the owners and set-id bits that the sandbox's commands chose. Only root may hand
 * out files in everybody's name; an archive is mere data.
 */
static int export_dir(const struct export *export, struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	int r;

	if (export->dest->uid != 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EPERM,
			"only root can export as a directory, since files keep their owners; "
			"use the format tar and unpack it");
	r = sbx_dest_make_dir(export->dest, &fd, err);
	if (r < 0)
		return r;
	return sbx_store_export_dir(
		export->view, export->sandbox, fd, NULL, NULL, export->report, err);
}

static int export_tar(const struct export *export, struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	int r;

	r = sbx_dest_make_file(export->dest, &fd, err);
	if (r < 0)
		return r;
	r = sbx_store_export_tar(
		export->view, export->sandbox, fd, NULL, NULL, export->report, err);
	if (r < 0)
		sbx_dest_unmake_file(export->dest);
	return r;
}

static int export_oci(const struct export *export, struct sbx_err *err)
{
	char ref[SBX_ID_SIZE + 32];

	(void)snprintf(
		ref, sizeof(ref), "%s-v%lld", export->sandbox->id, (long long)export->version);
	return sbx_export_oci(
		export->dest, export->view, export->sandbox, ref, export->report, err);
}

static const struct format {
	const char *name;
	int (*run)(const struct export *export, struct sbx_err *err);
} formats[] = {
	{"dir", export_dir}, /* the first is the default */
	{"tar", export_tar},
	{"oci", export_oci},
};

static int find_format(const char *name, const struct format **ret, struct sbx_err *err)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(formats); i++)
		if (!strcmp(formats[i].name, name)) {
			*ret = &formats[i];
			return 0;
		}
	return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
		"argument \"format\": expected dir, tar or oci, got '%.40s'", name);
}

int sbx_job_export(struct sbx_job *job, struct sbx_err *err)
{
	const char *name = sbx_json_string(sbx_job_tool_args(job), "format", formats[0].name);
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox sandbox = {0};
	SBX_DEST struct sbx_dest dest = SBX_DEST_INIT;
	SBX_VIEW struct sbx_view *view = NULL;
	struct export export = {.dest = &dest, .sandbox = &sandbox, .report = job->result};
	const struct format *format = NULL;
	int r;

	r = find_format(name, &format, err);
	if (r == 0)
		r = sbx_job_int(job, "version", &export.version, err);
	if (r == 0)
		r = sbx_sandbox_load(job->context->sandbox_fd, &sandbox, err);
	if (r == 0)
		r = sbx_job_view(job, "head", &view, err);
	if (r == 0)
		r = sbx_dest_init(&dest, job, &sandbox, err);
	if (r < 0)
		return r;
	export.view = view;
	r = format->run(&export, err);
	if (r < 0)
		return sbx_err_wrap(err, r, "export to '%.200s'", dest.path);
	sbx_json_add_path(job->result, "dest", dest.path);
	sbx_json_add_string(job->result, "format", format->name);
	sbx_json_add_int(job->result, "version", export.version);
	return 0;
}
