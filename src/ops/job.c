/* SPDX-License-Identifier: MIT */
/* The table of jobs. */
#include "sbx/job.h"

#include <string.h>

#include "jobs.h"
#include "remove.h"

static const struct sbx_job_entry jobs[] = {
	/* the file tools */
	{"file_blame", sbx_job_file_blame},
	{"file_edit", sbx_job_file_edit},
	{"file_read", sbx_job_file_read},
	{"file_write", sbx_job_file_write},

	/* what people ask */
	{"blame", sbx_job_file_blame},
	{"cat", sbx_job_cat},
	{"diff", sbx_job_diff},
	{"layer", sbx_job_layer},
	{"layers", sbx_job_layers},
	{"log", sbx_job_log},
	{"ls", sbx_job_ls},

	/* what keeps the store in order */
	{"remove", sbx_job_remove},
};

const struct sbx_job_entry *sbx_job_find(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(jobs); i++)
		if (!strcmp(jobs[i].name, name))
			return &jobs[i];
	return NULL;
}
