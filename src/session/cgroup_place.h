/* SPDX-License-Identifier: MIT */
/* Where control groups can be made, from the kernel's own tables. Pure: text in, places out. */
#ifndef SBX_SESSION_CGROUP_PLACE_H
#define SBX_SESSION_CGROUP_PLACE_H

#include <limits.h>

#include "sbx/cgroup.h"

struct sbx_cgroup_place {
	bool unified;             /* v2 */
	unsigned int controllers; /* v1: bits 1 << enum sbx_cgroup_resource */
	char mount_point[PATH_MAX];
	char own[PATH_MAX]; /* v2: where the reader is in it; "" when that is not visible */
};

/*
 * mountinfo: of proc_pid_mountinfo(5); cgroup: of cgroups(7), /proc/self/cgroup; both complete.
 * Mounts of hierarchies without any of our controllers are left out, and all mounts of one
 * hierarchy but the first. At most SBX_CGROUP_PLACES_MAX places.
 */
size_t sbx_cgroup_places(const char *mountinfo, const char *cgroup,
	struct sbx_cgroup_place ret[static SBX_CGROUP_PLACES_MAX]);

/* "memory", "pids", "cpu": the kernel's names. */
const char *sbx_cgroup_controller_name(enum sbx_cgroup_resource resource);
/* Whether a list separated by sep has the word. */
bool sbx_cgroup_list_has(const char *list, size_t size, char sep, const char *word);

#endif
