/* SPDX-License-Identifier: MIT */
/* The table of jobs. */
#include "sbx/job.h"

#include <string.h>

#include "jobs.h"
#include "measure.h"
#include "publish_jobs.h"
#include "remove.h"
#include "sbx/aside.h"

static const struct sbx_job_entry jobs[] = {
	/* requests too long for the event loop */
	{"intake", sbx_job_intake},

	/* the file tools */
	{"file_blame", sbx_job_file_blame},
	{"file_edit", sbx_job_file_edit},
	{"file_read", sbx_job_file_read},
	{"file_write", sbx_job_file_write},

	/* publications, and those that were refused */
	{"commit", sbx_job_commit},
	{"preview", sbx_job_preview},
	{"publish", sbx_job_publish},
	{"recover", sbx_job_recover},
	{"reject_diff", sbx_job_reject_diff},
	{"reject_drop", sbx_job_reject_drop},
	{"reject_export", sbx_job_reject_export},
	{"reject_list", sbx_job_reject_list},
	{"reject_retry", sbx_job_reject_retry},
	{"reject_show", sbx_job_reject_show},
	{"reresolve", sbx_job_reresolve},

	/* what people ask */
	{"blame", sbx_job_file_blame},
	{"cat", sbx_job_cat},
	{"diff", sbx_job_diff},
	{"layer", sbx_job_layer},
	{"layers", sbx_job_layers},
	{"log", sbx_job_log},
	{"ls", sbx_job_ls},

	/* what keeps the store in order, or takes something out of it */
	{"export", sbx_job_export},
	{"gc", sbx_job_gc},
	{"history", sbx_job_history},
	{"measure", sbx_job_measure},
	{"remove", sbx_job_remove},
	{"squash", sbx_job_squash},
	{"stat", sbx_job_stat},
	{"verify", sbx_job_verify},
};

const struct sbx_job_entry *sbx_job_find(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(jobs); i++)
		if (!strcmp(jobs[i].name, name))
			return &jobs[i];
	return NULL;
}
