/* SPDX-License-Identifier: MIT */
#include "sbx/cgroup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cgroup_internal.h"

#define CPU_PERIOD_US 100000 /* the kernel's default */

int sbx_cgroup_write(int dir_fd, const char *file, const char *value)
{
	SBX_CLOSE int fd = openat(dir_fd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return -errno;
	return 0;
}

/* --- values --- */

static uint64_t value_memory(const struct sbx_cgroup_limits *limits)
{
	return limits->memory_max;
}

static uint64_t value_zero(const struct sbx_cgroup_limits *limits SBX_UNUSED)
{
	return 0;
}

static uint64_t value_pids(const struct sbx_cgroup_limits *limits)
{
	return limits->pids_max;
}

static uint64_t value_cpu_quota(const struct sbx_cgroup_limits *limits)
{
	return limits->cpu_max * (CPU_PERIOD_US / 100);
}

static uint64_t value_cpu_period(const struct sbx_cgroup_limits *limits SBX_UNUSED)
{
	return CPU_PERIOD_US;
}

/* Written in this order. */
static const struct setting {
	enum sbx_cgroup_resource resource;
	bool unified;
	bool optional; /* kernels without accounting of swap do not have it */
	const char *file;
	uint64_t (*value)(const struct sbx_cgroup_limits *limits);
} settings[] = {
	{SBX_CGROUP_MEMORY, true, false, "memory.max", value_memory},
	{SBX_CGROUP_MEMORY, true, true, "memory.swap.max", value_zero},
	{SBX_CGROUP_MEMORY, false, false, "memory.limit_in_bytes", value_memory},
	/* memory and swap together; never below the one before */
	{SBX_CGROUP_MEMORY, false, true, "memory.memsw.limit_in_bytes", value_memory},
	{SBX_CGROUP_PIDS, true, false, "pids.max", value_pids},
	{SBX_CGROUP_PIDS, false, false, "pids.max", value_pids},
	{SBX_CGROUP_CPU, true, false, "cpu.max", value_cpu_quota}, /* the period stays */
	{SBX_CGROUP_CPU, false, false, "cpu.cfs_period_us", value_cpu_period},
	{SBX_CGROUP_CPU, false, false, "cpu.cfs_quota_us", value_cpu_quota},
};

static bool is_limited(const struct sbx_cgroup_limits *limits, enum sbx_cgroup_resource resource)
{
	const uint64_t values[SBX_CGROUP_RESOURCES] = {
		[SBX_CGROUP_MEMORY] = limits->memory_max,
		[SBX_CGROUP_PIDS] = limits->pids_max,
		[SBX_CGROUP_CPU] = limits->cpu_max,
	};

	return values[resource] != 0;
}

int sbx_cgroup_set(int dir_fd, const struct sbx_cgroup_base *base,
	enum sbx_cgroup_resource resource, const struct sbx_cgroup_limits *limits,
	struct sbx_err *err)
{
	char value[32];
	int r;

	if (!is_limited(limits, resource))
		return 0;
	for (size_t i = 0; i < SBX_N_ELEMENTS(settings); i++) {
		const struct setting *s = &settings[i];

		if (s->resource != resource || s->unified != base->unified)
			continue;
		(void)snprintf(value, sizeof(value), "%" PRIu64, s->value(limits));
		r = sbx_cgroup_write(dir_fd, s->file, value);
		if (r < 0 && !(s->optional && r == -ENOENT))
			return sbx_err_set(
				err, -r, "write %s to %s below %s: %m", value, s->file, base->path);
	}
	return 0;
}

/* --- one session's group --- */

static int set_limits(struct sbx_cgroup *group, struct sbx_err *err)
{
	const struct sbx_cgroup_host *host = group->host;

	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++) {
		int base = host->resources[i].base, r;

		if (base < 0)
			continue;
		r = sbx_cgroup_set(group->dir_fds[base], &host->bases[base],
			(enum sbx_cgroup_resource)i, &host->limits, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_dirs(struct sbx_cgroup *group, struct sbx_err *err)
{
	const struct sbx_cgroup_host *host = group->host;

	for (size_t i = 0; i < host->n_bases; i++) {
		int dir_fd = host->bases[i].sandbox_fd;

		if (mkdirat(dir_fd, group->name, 0755) < 0 && errno != EEXIST)
			return sbx_err_set(err, errno, "make control group %s below %s: %m",
				group->name, host->bases[i].path);
		group->dir_fds[i] = openat(
			dir_fd, group->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (group->dir_fds[i] < 0)
			return sbx_err_set(err, errno, "open control group %s below %s: %m",
				group->name, host->bases[i].path);
	}
	return 0;
}

int sbx_cgroup_new(const struct sbx_cgroup_host *host, const char *name, struct sbx_cgroup **ret,
	struct sbx_err *err)
{
	struct sbx_cgroup *group = calloc(1, sizeof(*group));
	int r;

	if (!group)
		return sbx_err_set(err, ENOMEM, "make control group %s: %m", name);
	group->host = host;
	for (size_t i = 0; i < SBX_CGROUP_PLACES_MAX; i++)
		group->dir_fds[i] = -EBADF;
	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++)
		group->event_fds[i] = -EBADF;
	(void)snprintf(group->name, sizeof(group->name), "%s", name);
	r = make_dirs(group, err);
	if (r == 0)
		r = set_limits(group, err);
	if (r < 0) {
		sbx_cgroup_free(group);
		return r;
	}
	sbx_cgroup_open_events(group);
	*ret = group;
	return 0;
}

void sbx_cgroup_free(struct sbx_cgroup *group)
{
	if (!group)
		return;
	for (size_t i = 0; i < group->host->n_bases; i++) {
		/* v2, since 5.14. Only here, at the end: where the kernel has counted a kill,
		 * 6.18 also kills what CLONE_INTO_CGROUP puts there later. */
		if (group->dir_fds[i] >= 0)
			(void)sbx_cgroup_write(group->dir_fds[i], "cgroup.kill", "1");
		sbx_fd_close(&group->dir_fds[i]);
		/* EBUSY: the next sweep finds it empty */
		(void)unlinkat(group->host->bases[i].sandbox_fd, group->name, AT_REMOVEDIR);
	}
	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++)
		sbx_fd_close(&group->event_fds[i]);
	free(group);
}

void sbx_cgroup_entry_done(struct sbx_cgroup_entry *entry)
{
	sbx_fd_close(&entry->unified_fd);
	while (entry->n_procs)
		sbx_fd_close(&entry->procs_fds[--entry->n_procs]);
}

int sbx_cgroup_entry_open(
	const struct sbx_cgroup *group, struct sbx_cgroup_entry *ret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_cgroup_entry_done)
	struct sbx_cgroup_entry entry = {.unified_fd = -EBADF};

	for (size_t i = 0; i < group->host->n_bases; i++) {
		bool unified = group->host->bases[i].unified;
		int fd = unified ? fcntl(group->dir_fds[i], F_DUPFD_CLOEXEC, 0)
				 : openat(group->dir_fds[i], "cgroup.procs", O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			return sbx_err_set(err, errno, "open control group %s below %s: %m",
				group->name, group->host->bases[i].path);
		if (unified)
			entry.unified_fd = fd;
		else
			entry.procs_fds[entry.n_procs++] = fd;
	}
	*ret = entry;
	entry = (struct sbx_cgroup_entry){.unified_fd = -EBADF};
	return 0;
}
