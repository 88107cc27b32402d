/* SPDX-License-Identifier: MIT */
/* Slots and layers: what is held, shared, refused and released. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "live.h"
#include "sbx/fs.h"
#include "sbx/sock.h"
#include "sbx/sys.h"

static struct live live;

static void set_up(void)
{
	live_start(&live, NULL);
}

static void tear_down(void)
{
	live_done(&live);
}

TestSuite(spawner, .init = set_up, .fini = tear_down);

/* Sends what fn sends and expects this answer. */
static void expect_refusal(int sent, int code, const char *message_part)
{
	char message[256];
	int fd, r;

	cr_assert_eq(sent, 0);
	r = live_answer(&live, &fd, message);
	cr_expect_eq(r, code, "%s: %d, not %d", message_part, r, code);
	cr_expect_not_null(
		strstr(message, message_part), "\"%s\" lacks \"%s\"", message, message_part);
}

/*
 * Whether the overlay that had this upper is gone: with index=on a second one is refused while the
 * first has it (overlayfs.rst, "shared upper"). In a child with a mount namespace of its own.
 */
static bool upper_is_free(const char *session)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		char options[512], dir[128];

		(void)snprintf(dir, sizeof(dir), "%s/sessions/%s", live.dir, session);
		if (unshare(CLONE_NEWNS) < 0 ||
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || chdir(dir) < 0 ||
			mkdir("work2", 0700) < 0)
			_exit(3);
		(void)snprintf(options, sizeof(options),
			"lowerdir=%s/layers/layer_0/tree,upperdir=upper,workdir=work2,index=on",
			live.dir);
		if (mount("overlay", "/mnt", "overlay", 0, options) < 0)
			_exit(errno == EBUSY ? 1 : 2);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "%#x", (unsigned int)status);
	return WEXITSTATUS(status) == 0;
}

Test(spawner, a_dropped_slot_leaves_its_upper_free_at_once)
{
	struct live_session s;
	char from[256], to[256];

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s, "echo x >f; (sleep 1000 &); exec 9<f; :", "");
	live_drop(&s);
	live_upper_path(&s, "", from);
	(void)snprintf(to, sizeof(to), "%s/layers/layer_new", live.dir);
	cr_assert_eq(rename(from, to), 0);
	cr_assert_eq(rename(to, from), 0);
	cr_assert(upper_is_free("ws_a"));
}

Test(spawner, a_slots_upper_is_in_use_until_it_is_dropped)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	cr_assert_not(upper_is_free("ws_a"));
	live_drop(&s);
}

Test(spawner, a_slot_that_somebody_holds_open_is_not_dropped)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	live_stop(&s);
	expect_refusal(sbx_spawner_drop(live.spawner, ++live.tag, 0), -EBUSY, "still open outside");
	live_drop(&s); /* closes the root first */
}

Test(spawner, a_running_slot_is_neither_dropped_nor_renewed)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	expect_refusal(sbx_spawner_drop(live.spawner, ++live.tag, 0), -EBUSY, "still lives");
	expect_refusal(sbx_spawner_renew(live.spawner, ++live.tag, 0), -EBUSY, "still lives");
	live_expect(&s, "echo unharmed", "unharmed\n");
	live_drop(&s);
}

Test(spawner, a_renewed_slot_is_fresh_and_has_the_same_root)
{
	struct live_session s;
	struct stat before, after;

	live_open(&live, &s, 0, "ws_a");
	cr_assert_eq(fstat(s.root_fd, &before), 0);
	live_expect(&s, "echo t >/tmp/t; echo s >/dev/shm/s; ipcmk -Q >/dev/null", "");
	live_stop(&s);
	cr_assert_eq(sbx_spawner_renew(live.spawner, ++live.tag, 0), 0);
	(void)live_answer_ok(&live); /* carries no descriptor */
	live_run(&s);
	live_expect(&s, "ls -A /tmp /dev/shm . | xargs; ipcs -q | grep -c ^0x || :",
		".: /dev/shm: /tmp:\n0\n");
	live_expect(&s, "echo x >f", "");
	cr_assert_eq(fstat(s.root_fd, &after), 0);
	cr_expect(before.st_dev == after.st_dev && before.st_ino == after.st_ino);
	cr_expect_eq(
		faccessat(s.root_fd, "f", F_OK, 0), 0, "the root descriptor shows the session");
	live_drop(&s);
}

Test(spawner, a_slot_runs_again_in_the_same_namespaces)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	live_expect(&s, "echo kept | tee /tmp/f f", "kept\n");
	live_stop(&s);
	for (int i = 0; i < 2; i++) {
		live_run(&s);
		live_expect(&s,
			"cat /tmp/f f /proc/1/comm; ps -e --no-headers | wc -l;"
			"grep -c ^proc /proc/mounts",
			"kept\nkept\nsbx-init\n5\n1\n");
		live_stop(&s);
	}
	live_drop(&s);
}

/* Of the spawner, on the host. */
static pid_t spawner_pid(void)
{
	char path[64], line[128];
	int pid = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", sbx_spawner_pidfd(live.spawner));
	f = fopen(path, "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	(void)fclose(f); /* only read from */
	return pid;
}

static pid_t child_of(pid_t parent)
{
	char path[64];
	int pid = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	f = fopen(path, "re");
	if (!f)
		cr_skip_test("the kernel has no /proc/<pid>/task/<tid>/children");
	while (fscanf(f, "%d", &pid) == 1)
		;
	(void)fclose(f); /* only read from */
	return pid;
}

Test(spawner, an_init_that_died_while_it_waited_is_replaced)
{
	struct live_session s;
	pid_t parked;

	live_prepare(&live, &s, 0, "ws_a", (const uint32_t[]){0}, 1);
	parked = child_of(spawner_pid());
	cr_assert_gt(parked, 0);
	cr_assert_eq(kill(parked, SIGKILL), 0);
	while (kill(parked, 0) == 0) /* nobody of ours can wait for it */
		(void)sched_yield();
	live_run(&s);
	live_expect(&s, "echo here", "here\n");
	live_drop(&s);
}

Test(spawner, layers_in_use_stay)
{
	SBX_CLOSE int tree = live_layer(&live, 7);
	struct live_session s;

	live_prepare(&live, &s, 0, "ws_a", (const uint32_t[]){0, 7}, 2);
	expect_refusal(
		sbx_spawner_unlayer(live.spawner, ++live.tag, 7), -EBUSY, "used by 1 sessions");
	live_drop(&s);
	cr_assert_eq(sbx_spawner_unlayer(live.spawner, ++live.tag, 7), 0);
	(void)live_answer_ok(&live); /* carries no descriptor */
	expect_refusal(sbx_spawner_unlayer(live.spawner, ++live.tag, 7), -ENOENT, "not attached");
}

Test(spawner, bad_requests_are_refused_and_change_nothing)
{
	static const uint32_t base[] = {0}, none[] = {9};
	struct live_session s;

	expect_refusal(
		sbx_spawner_layer(live.spawner, ++live.tag, 0, "layer_0"), -EEXIST, "in use");
	expect_refusal(
		sbx_spawner_layer(live.spawner, ++live.tag, 1, "../x"), -EINVAL, "bad number");
	expect_refusal(sbx_spawner_layer(live.spawner, ++live.tag, SBX_SPAWN_NAMES_MAX, "layer_0"),
		-EINVAL, "bad number");
	expect_refusal(
		sbx_spawner_layer(live.spawner, ++live.tag, 1, "layer_x"), -ENOENT, "layer_x");
	expect_refusal(sbx_spawner_prepare(live.spawner, ++live.tag, 0, "ws_none", base, 1),
		-ENOENT, "ws_none");
	expect_refusal(sbx_spawner_prepare(live.spawner, ++live.tag, 0, "ws_a", none, 1), -ENOENT,
		"layer number 9");
	expect_refusal(
		sbx_spawner_prepare(live.spawner, ++live.tag, SBX_SPAWN_SLOTS_MAX, "ws_a", base, 1),
		-EINVAL, "bad number");
	expect_refusal(sbx_spawner_renew(live.spawner, ++live.tag, 3), -ENOENT, "no slot 3");
	expect_refusal(sbx_spawner_drop(live.spawner, ++live.tag, 3), -ENOENT, "no slot 3");
	cr_expect_eq(sbx_spawner_prepare(live.spawner, ++live.tag, 0, "ws_a", base, 0), -EINVAL);
	live_open(&live, &s, 0, "ws_a");
	expect_refusal(sbx_spawner_prepare(live.spawner, ++live.tag, 0, "ws_a", base, 1), -EEXIST,
		"in use");
	expect_refusal(sbx_spawner_seat(live.spawner, ++live.tag, 0, NULL), -EBUSY, "in use");
	expect_refusal(sbx_spawner_seat(live.spawner, ++live.tag, SBX_SPAWN_SLOTS_MAX, NULL),
		-EINVAL, "no slot");
	live_expect(&s, "echo fine", "fine\n");
	live_drop(&s);
}

/* Nothing runs without the limits that its group was to set. */
Test(spawner, a_group_that_cannot_be_entered_fails_the_slot_until_it_is_taken_away)
{
	SBX_CLOSE int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct sbx_cgroup_entry entry = {
		.unified_fd = -EBADF, .procs_fds = {null}, .n_procs = 1};
	const uint32_t base[] = {0};
	struct live_session s;

	expect_refusal(
		sbx_spawner_seat(live.spawner, ++live.tag, 0, &entry), -EBADF, "control group");
	expect_refusal(sbx_spawner_prepare(live.spawner, ++live.tag, 0, "ws_a", base, 1),
		-EOPNOTSUPP, "no limit would hold");
	cr_assert_eq(sbx_spawner_seat(live.spawner, ++live.tag, 0, NULL), 0);
	cr_expect_eq(live_answer_ok(&live), -EBADF);
	live_open(&live, &s, 0, "ws_a");
	live_expect(&s, "echo fine", "fine\n");
	live_drop(&s);
}

/* A link in place of a tree or a session directory is not followed. */
Test(spawner, links_are_not_followed)
{
	SBX_CLOSE int layer = -EBADF;

	cr_assert_eq(sbx_fs_ensure_dir(live.layers_fd, "layer_l", 0755, &layer), 0);
	cr_assert_eq(symlinkat("/etc", layer, "tree"), 0);
	expect_refusal(
		sbx_spawner_layer(live.spawner, ++live.tag, 1, "layer_l"), -ENOTDIR, "layer_l");
	cr_assert_eq(symlinkat("/etc", live.sessions_fd, "ws_l"), 0);
	expect_refusal(
		sbx_spawner_prepare(live.spawner, ++live.tag, 0, "ws_l", (const uint32_t[]){0}, 1),
		-ENOTDIR, "ws_l");
}

Test(spawner, a_failed_prepare_can_be_tried_again)
{
	SBX_CLOSE int dir = -EBADF;
	struct live_session s;

	cr_assert_eq(sbx_fs_ensure_dir(live.sessions_fd, "ws_a", 0755, &dir), 0);
	expect_refusal(
		sbx_spawner_prepare(live.spawner, ++live.tag, 0, "ws_a", (const uint32_t[]){0}, 1),
		-ENOENT, "ws_a");
	live_open(&live, &s, 0, "ws_a");
	live_expect(&s, "echo fine", "fine\n");
	live_drop(&s);
}

static void many_layers(size_t n)
{
	uint32_t numbers[SBX_SPAWN_LAYERS_MAX];
	char expected[32];
	struct live_session s;

	for (uint32_t i = 0; i < n; i++) {
		SBX_CLOSE int tree = live_layer(&live, i + 1);
		char name[16];

		(void)snprintf(name, sizeof(name), "f%u", i);
		cr_assert_eq(sbx_fs_write_at(tree, name, 0644, "x", 1, 0), 0);
		numbers[i] = i + 1;
	}
	live_prepare(&live, &s, 0, "ws_a", numbers, n);
	live_run(&s);
	(void)snprintf(expected, sizeof(expected), "%zu\n", n);
	live_expect(&s, "ls | wc -l", expected);
	live_drop(&s);
}

Test(spawner, a_hundred_layers_make_one_view)
{
	many_layers(100);
}

Test(spawner, the_greatest_number_of_layers_works)
{
	many_layers(SBX_SPAWN_LAYERS_MAX);
}

/* A copy of the lock's descriptor that shares nothing with ours. */
static int reopen_lock(void)
{
	int fd = openat(live.dir_fd, "lock", O_RDWR | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

static void wait_for_death(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	cr_assert_eq(poll(&p, 1, LIVE_TIMEOUT_MS), 1);
}

Test(spawner, its_death_ends_all_sessions)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	(void)live_command_start(&s, "sleep 1000", 10); /* its master may stay open */
	cr_assert_eq(sbx_sys_pidfd_signal(sbx_spawner_pidfd(live.spawner), SIGKILL), 0);
	wait_for_death(sbx_spawner_pidfd(live.spawner));
	wait_for_death(s.pidfd);
}

Test(spawner, the_lock_is_held_until_spawner_and_inits_are_gone)
{
	SBX_CLOSE int other = reopen_lock();
	struct live_session s;

	cr_assert_eq(flock(live.lock_fd, LOCK_EX | LOCK_NB), 0);
	live_open(&live, &s, 0, "ws_a");
	sbx_fd_close(&live.lock_fd);
	cr_assert(flock(other, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK);
	cr_assert_eq(sbx_sys_pidfd_signal(sbx_spawner_pidfd(live.spawner), SIGKILL), 0);
	wait_for_death(s.pidfd);
	cr_assert_eq(flock(other, LOCK_EX), 0); /* blocks at most until the spawner is gone too */
}

Test(spawner, closing_the_control_socket_ends_the_session)
{
	struct live_session s;

	live_open(&live, &s, 0, "ws_a");
	(void)live_command_start(&s, "sleep 1000", 10); /* its master may stay open */
	sbx_fd_close(&s.control_fd);
	wait_for_death(s.pidfd);
}

static size_t n_open(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Descriptors of the spawner, seen from outside. */
static size_t n_open_in_spawner(void)
{
	int pid = spawner_pid();
	char path[64];
	size_t n;

	n = 0;
	for (int fd = 0; fd < 1024; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		n += faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	}
	return n;
}

Test(spawner, sessions_leave_no_descriptor_behind)
{
	size_t mine = 0, its = 0;

	for (int i = 0; i < 20; i++) {
		struct live_session s;
		char name[16];

		if (i == 2) {
			mine = n_open();
			its = n_open_in_spawner();
		}
		(void)snprintf(name, sizeof(name), "ws_%d", i);
		live_open(&live, &s, (uint32_t)i % 3, name);
		live_expect(&s, "echo x >f", "");
		live_drop(&s);
	}
	cr_expect_eq(n_open(), mine);
	cr_expect_eq(n_open_in_spawner(), its);
}

static const struct {
	struct sbx_spawner_config config;
	int code;
	const char *message;
} bad_configs[] = {
	{{.root_at = "workspace"}, -EINVAL, "workspace root workspace"},
	{{.root_at = "/"}, -EINVAL, "workspace root /"},
	{{.root_at = "/usr/src"}, -EINVAL, "/usr belongs to the system"},
	{{.root_at = "/a/../usr"}, -EINVAL, "workspace root"},
	{{.id_base = 1000}, -ERANGE, "id range 1000"},
	{{.seccomp_profile = "/does/not/exist"}, -ENOENT, "/does/not/exist"},
};

Test(spawner, bad_configurations_are_refused_by_what_is_wrong)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(bad_configs); i++) {
		struct sbx_spawner_config config = bad_configs[i].config;
		const char *profiles = getenv("SBX_SECCOMP_DIR");
		struct sbx_spawner *spawner = NULL;
		struct sbx_err err = SBX_ERR_INIT;
		char profile[512];
		int r;

		(void)snprintf(profile, sizeof(profile), "%s/default.json",
			profiles ? profiles : "seccomp");
		config.sandbox_id = "sbox_bad";
		config.rootfs_fd = -EBADF;
		config.root_at = config.root_at ? config.root_at : "/workspace";
		config.id_base = config.id_base ? config.id_base : LIVE_ID_BASE;
		config.seccomp_profile = config.seccomp_profile ? config.seccomp_profile : profile;
		config.tmp_bytes = 1 << 20;
		config.layers_fd = live.layers_fd;
		config.sessions_fd = live.sessions_fd;
		config.lock_fd = live.lock_fd;
		r = sbx_spawner_start(&config, &spawner, &err);
		cr_expect_eq(r, bad_configs[i].code, "%s: %d", bad_configs[i].message, r);
		cr_expect_not_null(strstr(err.message, bad_configs[i].message), "%s", err.message);
		sbx_spawner_free(spawner);
	}
}

/* Workspace roots below a directory that is private, new, or deep. */
Test(spawner, the_workspace_can_be_anywhere_else)
{
	static const char *const roots[] = {"/root/project", "/home/me/p", "/tmp/w", "/a/b/c/d"};

	for (size_t i = 0; i < SBX_N_ELEMENTS(roots); i++) {
		static struct live other;
		struct live_session s;
		char expected[64];

		live_start(&other, &(struct sbx_spawner_config){.root_at = roots[i]});
		live_open(&other, &s, 0, "ws_a");
		(void)snprintf(expected, sizeof(expected), "%s\noverlayfs\n", roots[i]);
		live_expect(&s, "pwd; echo x >f; stat -f -c %T .", expected);
		live_drop(&s);
		live_done(&other);
	}
}
