/* SPDX-License-Identifier: MIT */
/* Between cgroup_host.c (where groups are made), cgroup.c (one group) and cgroup_count.c (what
 * happened in it). */
#ifndef SBX_SESSION_CGROUP_INTERNAL_H
#define SBX_SESSION_CGROUP_INTERNAL_H

#include "cgroup_place.h"

#define SBX_CGROUP_FILE_MAX 4096 /* of any file that is read from a group */
#define SBX_CGROUP_NAME_MAX (SBX_ID_MAX + 40)

/* A hierarchy in use. */
struct sbx_cgroup_base {
	bool unified;
	int sandbox_fd; /* sbx/<sandbox> in it */
	char path[PATH_MAX];
};

struct sbx_cgroup_host {
	struct sbx_cgroup_base bases[SBX_CGROUP_PLACES_MAX];
	size_t n_bases;
	struct sbx_cgroup_limits limits; /* in force */
	struct {
		int base;          /* where it is limited, or -1 */
		char missing[192]; /* why not */
	} resources[SBX_CGROUP_RESOURCES];
	char name[SBX_CGROUP_NAME_MAX];
};

struct sbx_cgroup {
	const struct sbx_cgroup_host *host;
	char name[SBX_CGROUP_NAME_MAX];
	int dir_fds[SBX_CGROUP_PLACES_MAX];  /* as the host's bases */
	int event_fds[SBX_CGROUP_RESOURCES]; /* the files that count, or -EBADF */
};

/* Writes a value into a group's file: 0 or -errno. */
int sbx_cgroup_write(int dir_fd, const char *file, const char *value);
/* Sets one resource's limit in a group of base. */
int sbx_cgroup_set(int dir_fd, const struct sbx_cgroup_base *base,
	enum sbx_cgroup_resource resource, const struct sbx_cgroup_limits *limits,
	struct sbx_err *err);
/* Opens the files that count. What is missing counts 0. */
void sbx_cgroup_open_events(struct sbx_cgroup *group);

#endif
