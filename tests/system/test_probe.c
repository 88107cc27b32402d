/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "live.h"
#include "sbx/fs.h"
#include "sbx/probe.h"

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	cr_assert_not_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir); /* only read from */
	return n;
}

static const char *policy_path(void)
{
	const char *dir = getenv("SBX_SECCOMP_DIR");
	static char path[512];

	(void)snprintf(path, sizeof(path), "%s/default.json", dir ? dir : "seccomp");
	return path;
}

Test(probe, a_host_that_runs_sessions_misses_nothing)
{
	struct sbx_probe rows[SBX_PROBES_MAX];
	struct sbx_wall_state walls[SBX_WALLS];
	struct sbx_err err = SBX_ERR_INIT;
	struct live live;
	size_t n = 0, before;

	live_start(&live, NULL);
	before = count_entries(live.dir);
	cr_assert_eq(
		sbx_probe_all(live.dir_fd, policy_path(), rows, &n, &err), 0, "%s", err.message);
	cr_assert_gt(n, 15);
	for (size_t i = 0; i < n; i++) {
		cr_log_info("%s: %s %s", rows[i].feature, sbx_probe_state_name(rows[i].state),
			rows[i].detail);
		cr_expect_neq(rows[i].state, SBX_PROBE_MISSING, "%s: %s", rows[i].feature,
			rows[i].detail);
		cr_expect(rows[i].state != SBX_PROBE_INSTEAD || rows[i].instead);
		cr_expect(rows[i].state != SBX_PROBE_INSTEAD || rows[i].detail[0], "%s: why",
			rows[i].feature);
	}
	sbx_probe_walls(rows, n, walls);
	for (size_t i = 0; i < SBX_WALLS; i++)
		cr_expect(walls[i].in_force || i == SBX_WALL_LIMITS || i == SBX_WALL_BRIDGE,
			"%s: %s", walls[i].wall, walls[i].why);
	cr_expect_eq(count_entries(live.dir), before, "the scratch directory is gone");
	live_done(&live);
}

Test(probe, without_rights_the_missing_ones_are_named)
{
	struct sbx_probe rows[SBX_PROBES_MAX];
	struct sbx_err err = SBX_ERR_INIT;
	char dir[] = "/tmp/sbx-probe-XXXXXX";
	size_t n = 0;
	int fd;

	live_require();
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chown(dir, 1000, 1000), 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(setresuid(1000, 1000, 0), 0);
	cr_expect_eq(sbx_probe_all(fd, policy_path(), rows, &n, &err), 0, "%s", err.message);
	cr_assert_eq(setresuid(0, 0, 0), 0);
	cr_assert_eq(sbx_fs_remove_tree(AT_FDCWD, dir), 0);
	sbx_fd_close(&fd);
	cr_assert_gt(n, 1);
	cr_expect_eq(rows[1].state, SBX_PROBE_MISSING);
	cr_expect_not_null(strstr(rows[1].detail, "is not held"), "%s", rows[1].detail);
}

Test(probe, a_wall_stands_only_on_all_that_it_needs)
{
	for (size_t k = 0; k < 3; k++) {
		struct sbx_wall_state walls[SBX_WALLS];
		struct sbx_probe rows[] = {
			{.feature = "a", .state = SBX_PROBE_PRESENT, .walls = 1 << SBX_WALL_IDS},
			{.feature = "b",
				.instead = "no c either",
				.state = (enum sbx_probe_state)k,
				.walls = 1 << SBX_WALL_IDS | 1 << SBX_WALL_LIMITS,
				.detail = "EPERM"},
		};

		sbx_probe_walls(rows, SBX_N_ELEMENTS(rows), walls);
		for (size_t i = 0; i < SBX_WALLS; i++) {
			bool concerned = i == SBX_WALL_IDS || i == SBX_WALL_LIMITS;

			cr_expect_eq(walls[i].in_force, k == SBX_PROBE_PRESENT || !concerned, "%s",
				walls[i].wall);
			cr_expect(walls[i].stops && walls[i].why[0], "%zu", i);
			if (!walls[i].in_force)
				cr_expect_not_null(
					strstr(walls[i].why, "b: EPERM"), "%s", walls[i].why);
		}
	}
}

Test(probe, a_policy_that_permits_all_is_no_wall)
{
	static const char policy[] = "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": []}";
	struct sbx_probe rows[SBX_PROBES_MAX];
	struct sbx_wall_state walls[SBX_WALLS];
	struct sbx_err err = SBX_ERR_INIT;
	struct live live;
	char path[128];
	size_t n = 0;

	live_start(&live, NULL);
	cr_assert_eq(sbx_fs_write_at(live.dir_fd, "all.json", 0644, policy, strlen(policy), 0), 0);
	(void)snprintf(path, sizeof(path), "%s/all.json", live.dir);
	cr_assert_eq(sbx_probe_all(live.dir_fd, path, rows, &n, &err), 0, "%s", err.message);
	sbx_probe_walls(rows, n, walls);
	cr_expect_not(walls[SBX_WALL_CALLS].in_force);
	cr_expect_not_null(
		strstr(walls[SBX_WALL_CALLS].why, "unshare"), "%s", walls[SBX_WALL_CALLS].why);
	cr_expect(walls[SBX_WALL_IDS].in_force);
	live_done(&live);
}
