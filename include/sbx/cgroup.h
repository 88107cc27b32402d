/* SPDX-License-Identifier: MIT */
/*
 * Limits of sessions by control groups: memory, processes and CPU.
 *
 * Where. A *place* is the directory of a mounted hierarchy below which the sandbox's groups are
 * made, as sbx/<sandbox>@<device>-<inode>/<session slot> (by the sandbox's directory, since ids are
 * unique in one state directory only): one hierarchy on pure cgroup v2 hosts; on hybrid hosts,
 * whose v2 hierarchy has no controllers, one for each v1 controller. Inside v2 the place is
 * sandboxd's own group when a service manager has delegated it (sandboxd then moves into a leaf,
 * since a v2 group with processes cannot hand out controllers), else the top of what is mounted.
 *
 * Asked and default. A limit that the sandbox was created with must hold: without it opening fails
 * and says what is missing. Defaults are kept where the host allows it.
 *
 * Who enters. v2: a process is born into the group (CLONE_INTO_CGROUP), which costs nothing. v1
 * has no such thing, see spawner.h (SEAT).
 *
 * Only sandboxd calls these: they read and write below the hierarchies' mount points, by
 * descriptor, and never what a command could have made.
 */
#ifndef SBX_CGROUP_H
#define SBX_CGROUP_H

#include "sbx/buf.h"
#include "sbx/err.h"
#include "sbx/id.h"

#define SBX_CGROUP_PLACES_MAX     4 /* v2, and v1's memory, pids and cpu */
#define SBX_CGROUP_PIDS_DEFAULT   4096
#define SBX_CGROUP_MEMORY_PERCENT 80 /* of the host's memory, the default of memory_max */

enum sbx_cgroup_resource {
	SBX_CGROUP_MEMORY,
	SBX_CGROUP_PIDS,
	SBX_CGROUP_CPU,
	SBX_CGROUP_RESOURCES,
};

/* Of one session. As asked for: 0 means not asked for. In force: 0 means no limit. */
struct sbx_cgroup_limits {
	uint64_t memory_max; /* bytes, swap included */
	uint64_t pids_max;   /* processes and threads */
	uint64_t cpu_max;    /* hundredths of a core */
};

/* What has happened in a group since it was made; never goes down. */
struct sbx_cgroup_counts {
	uint64_t oom_kills;        /* processes that the kernel killed for the memory limit */
	uint64_t forks_refused;    /* for the limit of processes */
	uint64_t cpu_throttled_ns; /* time that was waited for the limit of CPU */
};

/* What is in use now. */
struct sbx_cgroup_usage {
	uint64_t memory_bytes; /* with the page cache of files that the session alone has read */
	uint64_t n_processes;  /* and threads; with init and, in v1, the helper that starts it */
};

struct sbx_cgroup_host; /* the places of one sandbox */
struct sbx_cgroup;      /* one session's group, in every place */

/*
 * Finds the places, removes what an earlier sandboxd of this sandbox left there, and tries the
 * limits. -EOPNOTSUPP when one that was asked for cannot be set. sandbox_fd: the sandbox's
 * directory, whose lock the caller holds.
 */
int sbx_cgroup_host_open(int sandbox_fd, const char *sandbox_id,
	const struct sbx_cgroup_limits *asked, struct sbx_cgroup_host **ret, struct sbx_err *err);
/* Removes the sandbox's own groups where they are empty, too. NULL is fine. */
void sbx_cgroup_host_free(struct sbx_cgroup_host *host);
/* Removes all empty groups of a sandbox that has no sandboxd. What cannot be removed stays. */
void sbx_cgroup_sweep(int sandbox_fd, const char *sandbox_id);
/* The limits in force. */
const struct sbx_cgroup_limits *sbx_cgroup_host_limits(const struct sbx_cgroup_host *host);
/* Why a resource is not limited; NULL: it can be. Valid as long as host. */
const char *sbx_cgroup_host_missing(
	const struct sbx_cgroup_host *host, enum sbx_cgroup_resource resource);
/* "memory v1 /sys/fs/cgroup/memory, ...": for doctor. */
int sbx_cgroup_host_describe(const struct sbx_cgroup_host *host, struct sbx_buf *ret);
/* "memory", "processes", "CPU". */
const char *sbx_cgroup_resource_name(enum sbx_cgroup_resource resource);

/* Makes the group, or takes an empty one that is still there, and sets its limits. */
int sbx_cgroup_new(const struct sbx_cgroup_host *host, const char *name, struct sbx_cgroup **ret,
	struct sbx_err *err);
/* Kills what is left in the group, where the kernel can (v2: cgroup.kill), and removes it; one that
 * still has processes stays until the next sweep. NULL is fine. */
void sbx_cgroup_free(struct sbx_cgroup *group);

/* How a process gets in: for sbx_spawner_seat(). The descriptors belong to the caller. */
struct sbx_cgroup_entry {
	int unified_fd; /* the v2 directory, to be born into; -EBADF: there is none */
	int procs_fds[SBX_CGROUP_PLACES_MAX]; /* v1: cgroup.procs, open for writing */
	size_t n_procs;
};
int sbx_cgroup_entry_open(
	const struct sbx_cgroup *group, struct sbx_cgroup_entry *ret, struct sbx_err *err);
void sbx_cgroup_entry_done(struct sbx_cgroup_entry *entry);

/* What cannot be read counts as 0. */
void sbx_cgroup_count(const struct sbx_cgroup *group, struct sbx_cgroup_counts *ret);
void sbx_cgroup_use(const struct sbx_cgroup *group, struct sbx_cgroup_usage *ret);

/*
 * Plain words about the limits that were hit between two counts, one line each without a newline
 * at the end; nothing is appended when none was. CPU is left out: waiting for it is no accident.
 */
int sbx_cgroup_explain(const struct sbx_cgroup_limits *limits,
	const struct sbx_cgroup_counts *before, const struct sbx_cgroup_counts *after,
	struct sbx_buf *ret);

#endif
