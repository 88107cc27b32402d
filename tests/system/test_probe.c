/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
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

Test(probe, a_host_that_runs_sessions_misses_nothing)
{
	struct sbx_probe rows[SBX_PROBES_MAX];
	struct sbx_err err = SBX_ERR_INIT;
	struct live live;
	size_t n = 0, before;

	live_start(&live, NULL);
	before = count_entries(live.dir);
	cr_assert_eq(sbx_probe_all(live.dir_fd, rows, &n, &err), 0, "%s", err.message);
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
	cr_expect_eq(sbx_probe_all(fd, rows, &n, &err), 0, "%s", err.message);
	cr_assert_eq(setresuid(0, 0, 0), 0);
	cr_assert_eq(sbx_fs_remove_tree(AT_FDCWD, dir), 0);
	sbx_fd_close(&fd);
	cr_assert_gt(n, 1);
	cr_expect_eq(rows[1].state, SBX_PROBE_MISSING);
	cr_expect_not_null(strstr(rows[1].detail, "is not held"), "%s", rows[1].detail);
}
