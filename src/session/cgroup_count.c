/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cgroup_internal.h"

#define NSEC_PER_USEC 1000

/* Where the kernel counts, by resource: [0] v1, [1] v2. */
static const struct counter {
	const char *file, *key;
	uint64_t scale; /* to our unit */
} counters[SBX_CGROUP_RESOURCES][2] = {
	[SBX_CGROUP_MEMORY] = {{"memory.oom_control", "oom_kill", 1},
		{"memory.events", "oom_kill", 1}},
	[SBX_CGROUP_PIDS] = {{"pids.events", "max", 1}, {"pids.events", "max", 1}},
	[SBX_CGROUP_CPU] = {{"cpu.stat", "throttled_time", 1},
		{"cpu.stat", "throttled_usec", NSEC_PER_USEC}},
};

static const struct counter *counter_of(
	const struct sbx_cgroup_host *host, enum sbx_cgroup_resource resource)
{
	int base = host->resources[resource].base;

	return base < 0 ? NULL : &counters[resource][host->bases[base].unified];
}

void sbx_cgroup_open_events(struct sbx_cgroup *group)
{
	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++) {
		const struct counter *counter =
			counter_of(group->host, (enum sbx_cgroup_resource)i);

		if (counter)
			group->event_fds[i] = openat(group->dir_fds[group->host->resources[i].base],
				counter->file, O_RDONLY | O_CLOEXEC);
	}
}

/* A line "key number" of a file that is small and made anew for every read from its start. */
static uint64_t read_key(int fd, const char *key)
{
	char text[SBX_CGROUP_FILE_MAX];
	size_t key_size = strlen(key);
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	const char *line = text;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	while (line) {
		if (!strncmp(line, key, key_size) && line[key_size] == ' ')
			return strtoull(line + key_size + 1, NULL, 10);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return 0;
}

void sbx_cgroup_count(const struct sbx_cgroup *group, struct sbx_cgroup_counts *ret)
{
	uint64_t values[SBX_CGROUP_RESOURCES] = {0};

	for (size_t i = 0; i < SBX_CGROUP_RESOURCES; i++) {
		const struct counter *counter =
			counter_of(group->host, (enum sbx_cgroup_resource)i);

		if (counter)
			values[i] = read_key(group->event_fds[i], counter->key) * counter->scale;
	}
	*ret = (struct sbx_cgroup_counts){
		.oom_kills = values[SBX_CGROUP_MEMORY],
		.forks_refused = values[SBX_CGROUP_PIDS],
		.cpu_throttled_ns = values[SBX_CGROUP_CPU],
	};
}

static uint64_t read_number(const struct sbx_cgroup *group, enum sbx_cgroup_resource resource,
	const char *const files[2])
{
	int base = group->host->resources[resource].base;
	SBX_CLOSE int fd = -EBADF;
	char text[32];
	ssize_t n;

	if (base < 0)
		return 0;
	fd = openat(group->dir_fds[base], files[group->host->bases[base].unified],
		O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

void sbx_cgroup_use(const struct sbx_cgroup *group, struct sbx_cgroup_usage *ret)
{
	static const char *const memory[] = {"memory.usage_in_bytes", "memory.current"};
	static const char *const pids[] = {"pids.current", "pids.current"};

	*ret = (struct sbx_cgroup_usage){
		.memory_bytes = read_number(group, SBX_CGROUP_MEMORY, memory),
		.n_processes = read_number(group, SBX_CGROUP_PIDS, pids),
	};
}

int sbx_cgroup_explain(const struct sbx_cgroup_limits *limits,
	const struct sbx_cgroup_counts *before, const struct sbx_cgroup_counts *after,
	struct sbx_buf *ret)
{
	uint64_t kills = after->oom_kills - before->oom_kills;
	uint64_t forks = after->forks_refused - before->forks_refused;
	int r = 0;

	if (kills)
		r = sbx_buf_printf(ret,
			"memory limit hit: the session may use %.1f MiB (memory_max) and the "
			"kernel killed %" PRIu64 " of its processes for it; use less memory (fewer "
			"jobs at a time) or a sandbox created with a larger --memory-max",
			(double)limits->memory_max / (1 << 20), kills);
	if (r == 0 && forks)
		r = sbx_buf_printf(ret,
			"%sprocess limit hit: the session may have %" PRIu64
			" processes and threads (pids_max) and was refused %" PRIu64
			" more; start fewer at a time or use a sandbox created with a larger "
			"--pids-max",
			kills ? "\n" : "", limits->pids_max, forks);
	return r;
}
