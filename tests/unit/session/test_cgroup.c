/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "../../../src/session/cgroup_place.h"

#define MEMORY (1U << SBX_CGROUP_MEMORY)
#define PIDS   (1U << SBX_CGROUP_PIDS)
#define CPU    (1U << SBX_CGROUP_CPU)

struct expected_place {
	bool unified;
	unsigned int controllers;
	const char *mount_point, *own;
};

static const struct {
	const char *what, *mountinfo, *cgroup;
	struct expected_place places[SBX_CGROUP_PLACES_MAX];
	size_t n;
} tables[] = {
	{.what = "nothing is mounted", .mountinfo = "", .cgroup = "0::/\n"},
	{.what = "other file systems",
		.mountinfo = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw\n"
			     "23 22 0:5 / /proc rw - proc proc rw,memory\n",
		.cgroup = "0::/\n"},
	{.what = "v2 only, the top",
		.mountinfo = "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
			     "rw,nsdelegate\n",
		.cgroup = "0::/\n",
		.places = {{true, 0, "/sys/fs/cgroup", ""}},
		.n = 1},
	{.what = "v2 only, a service",
		.mountinfo = "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		.cgroup = "0::/system.slice/sbx@a.service\n",
		.places = {{true, 0, "/sys/fs/cgroup",
			"/sys/fs/cgroup/system.slice/sbx@a.service"}},
		.n = 1},
	{.what = "hybrid",
		.mountinfo = "31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
			     "rw,cpu,cpuacct\n"
			     "32 30 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
			     "34 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
			     "38 30 0:35 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
			     "40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		.cgroup = "9:name=systemd:/\n4:memory:/job/1\n0::/user.slice\n",
		.places = {{false, CPU, "/sys/fs/cgroup/cpu,cpuacct", ""},
			{false, MEMORY, "/sys/fs/cgroup/memory", ""},
			{false, PIDS, "/sys/fs/cgroup/pids", ""},
			{true, 0, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/user.slice"}},
		.n = 4},
	{.what = "several controllers in one hierarchy",
		.mountinfo = "34 30 0:31 / /cg rw - cgroup none rw,memory,pids\n",
		.cgroup = "",
		.places = {{false, MEMORY | PIDS, "/cg", ""}},
		.n = 1},
	{.what = "a hierarchy mounted twice",
		.mountinfo = "34 30 0:31 / /a rw - cgroup none rw,memory\n"
			     "35 30 0:31 / /b rw - cgroup none rw,memory\n"
			     "36 30 0:26 / /c rw - cgroup2 none rw\n"
			     "37 30 0:26 / /d rw - cgroup2 none rw\n",
		.cgroup = "0::/\n",
		.places = {{false, MEMORY, "/a", ""}, {true, 0, "/c", ""}},
		.n = 2},
	{.what = "part of v2 is mounted, and we are in it",
		.mountinfo = "30 22 0:26 /docker/1 /cg rw - cgroup2 cgroup rw\n",
		.cgroup = "0::/docker/1/x\n",
		.places = {{true, 0, "/cg", "/cg/x"}},
		.n = 1},
	{.what = "part of v2 is mounted, and we are at its top",
		.mountinfo = "30 22 0:26 /docker/1 /cg rw - cgroup2 cgroup rw\n",
		.cgroup = "0::/docker/1\n",
		.places = {{true, 0, "/cg", ""}},
		.n = 1},
	{.what = "part of v2 is mounted, and we are elsewhere",
		.mountinfo = "30 22 0:26 /docker/1 /cg rw - cgroup2 cgroup rw\n",
		.cgroup = "0::/docker/11\n",
		.places = {{true, 0, "/cg", ""}},
		.n = 1},
	{.what = "blanks in the mount point",
		.mountinfo = "30 22 0:26 / /my\\040groups rw - cgroup2 cgroup rw\n",
		.cgroup = "0::/a\n",
		.places = {{true, 0, "/my groups", "/my groups/a"}},
		.n = 1},
	{.what = "lines that are cut off",
		.mountinfo = "30\n30 22 0:26 /\n30 22 0:26 / /cg rw\n30 22 0:26 / /cg rw -\n"
			     "30 22 0:26 / /cg rw - cgroup2\n30 22 0:26 / /cg rw - cgroup2 c",
		.cgroup = "0::"},
	{.what = "a word that only begins like a controller",
		.mountinfo = "34 30 0:31 / /cg rw - cgroup none rw,memory2,cpuset,cpuacct\n",
		.cgroup = ""},
};

Test(cgroup_place, hierarchies_are_found_where_the_kernel_says)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(tables); i++) {
		struct sbx_cgroup_place *places = calloc(SBX_CGROUP_PLACES_MAX, sizeof(*places));
		size_t n = sbx_cgroup_places(tables[i].mountinfo, tables[i].cgroup, places);

		cr_expect_eq(n, tables[i].n, "%s: %zu places", tables[i].what, n);
		for (size_t j = 0; j < SBX_MIN(n, tables[i].n); j++) {
			const struct expected_place *expected = &tables[i].places[j];

			cr_expect_eq(places[j].unified, expected->unified, "%s", tables[i].what);
			cr_expect_eq(
				places[j].controllers, expected->controllers, "%s", tables[i].what);
			cr_expect_str_eq(
				places[j].mount_point, expected->mount_point, "%s", tables[i].what);
			cr_expect_str_eq(places[j].own, expected->own, "%s", tables[i].what);
		}
		free(places);
	}
}

Test(cgroup_place, a_mount_point_too_long_is_left_out)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct sbx_cgroup_place *places = calloc(SBX_CGROUP_PLACES_MAX, sizeof(*places));

	cr_assert_eq(sbx_buf_append_string(&text, "30 22 0:26 / /"), 0);
	for (int i = 0; i < PATH_MAX; i++)
		cr_assert_eq(sbx_buf_append(&text, "x", 1), 0);
	cr_assert_eq(sbx_buf_append_string(&text, " rw - cgroup2 cgroup rw\n"), 0);
	cr_expect_eq(sbx_cgroup_places(text.data, "0::/\n", places), 0);
	free(places);
}

static const struct {
	struct sbx_cgroup_counts before, after;
	const char *begin, *second; /* of the lines; NULL: there is none */
} explanations[] = {
	{{0}, {0}, NULL, NULL},
	{{.oom_kills = 2, .forks_refused = 7}, {.oom_kills = 2, .forks_refused = 7}, NULL, NULL},
	{{0}, {.cpu_throttled_ns = 5}, NULL, NULL},
	{{.oom_kills = 2}, {.oom_kills = 5},
		"memory limit hit: the session may use 256.0 MiB (memory_max) and the kernel "
		"killed 3 ",
		NULL},
	{{0}, {.forks_refused = 9},
		"process limit hit: the session may have 100 processes and threads (pids_max) and "
		"was refused 9 ",
		NULL},
	{{0}, {.oom_kills = 1, .forks_refused = 1}, "memory limit hit", "process limit hit"},
};

Test(cgroup_explain, each_limit_that_was_hit_is_one_line)
{
	const struct sbx_cgroup_limits limits = {.memory_max = 256 << 20, .pids_max = 100};

	for (size_t i = 0; i < SBX_N_ELEMENTS(explanations); i++) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
		const char *begin = explanations[i].begin, *second = explanations[i].second;
		const char *line;

		cr_assert_eq(sbx_cgroup_explain(&limits, &explanations[i].before,
				     &explanations[i].after, &text),
			0);
		cr_expect_eq(text.size > 0, begin != NULL, "row %zu", i);
		if (!text.size || !begin)
			continue;
		cr_expect(!strncmp(text.data, begin, strlen(begin)), "row %zu: %s", i, text.data);
		line = strchr(text.data, '\n');
		cr_expect_eq(line != NULL, second != NULL, "row %zu: %s", i, text.data);
		if (line && second)
			cr_expect(!strncmp(line + 1, second, strlen(second)), "row %zu: %s", i,
				text.data);
		cr_expect_neq(text.data[text.size - 1], '\n', "row %zu", i);
	}
}
