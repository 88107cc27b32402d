/* SPDX-License-Identifier: MIT */
/* Making a sandbox, and writing it back out: what goes in comes out. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "sbx/fs.h"
#include "sbx/store.h"
#include "scratch.h"
#include "source.h"

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: sandboxes keep files of several owners");
}

struct made {
	struct sbx_sandbox sandbox;
	struct sbx_err err;
	struct json_object *report;
	int r;
};

static void made_done(struct made *made)
{
	sbx_sandbox_done(&made->sandbox);
	json_object_put(made->report);
}
#define MADE SBX_CLEANUP(made_done)

static void state_path(const struct scratch *scratch, char ret[static 96])
{
	(void)snprintf(ret, 96, "%s/state", scratch->path);
}

/* Creates a sandbox under <scratch>/state. */
static struct made create(const struct scratch *scratch, const char *id, int source_fd)
{
	struct made made = {.report = json_object_new_object()};
	char state[96];

	state_path(scratch, state);
	(void)snprintf(made.sandbox.id, sizeof(made.sandbox.id), "%s", id);
	made.sandbox.root_at = strdup("/workspace");
	made.sandbox.rootfs = strdup("host");
	made.sandbox.network = strdup("none");
	made.r = sbx_sandbox_create(
		state, &made.sandbox, source_fd, NULL, NULL, made.report, &made.err);
	return made;
}

static int64_t count_of(const struct made *made, const char *member)
{
	struct json_object *o = sbx_json_member(made->report, member);

	return json_object_is_type(o, json_type_object) ? sbx_json_int(o, "count", -1)
							: sbx_json_int(made->report, member, -1);
}

static int open_path(const struct scratch *scratch, const char *path)
{
	int fd = openat(scratch->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	return fd;
}

/* <state>/<id>/<below> */
static int open_in(const struct scratch *scratch, const char *id, const char *below)
{
	char path[192];

	(void)snprintf(path, sizeof(path), "state/%s/%s", id, below);
	return open_path(scratch, path);
}

/* A view of the sandbox's head. */
static struct sbx_view *open_view(const struct scratch *scratch, const char *id)
{
	SBX_CLOSE int store = open_in(scratch, id, "store");
	SBX_CLOSE int layers = open_in(scratch, id, "store/layers");
	struct sbx_head_log *log = NULL;
	struct sbx_view *view = NULL;

	cr_assert_eq(sbx_head_log_open(store, false, &log, NULL), 0);
	cr_assert_eq(sbx_view_open(layers, &sbx_head_log_head(log)->stack, &view, NULL), 0);
	sbx_head_log_free(log);
	return view;
}

static void digest_of(int fd, char ret[static 65])
{
	struct sbx_err err = SBX_ERR_INIT;
	uint64_t n_entries, n_bytes;

	cr_assert_eq(sbx_layer_digest(fd, ret, &n_entries, &n_bytes, &err), 0, "%s", err.message);
}

static int base_tree(const struct scratch *scratch, const char *id)
{
	SBX_CLOSE int store = open_in(scratch, id, "store");
	struct sbx_head_log *log = NULL;
	char path[160];

	cr_assert_eq(sbx_head_log_open(store, false, &log, NULL), 0);
	(void)snprintf(
		path, sizeof(path), "store/layers/%s/tree", sbx_head_log_head(log)->stack.ids[0]);
	sbx_head_log_free(log);
	return open_in(scratch, id, path);
}

Test(sandbox, import_keeps_every_shape_of_file, .timeout = 60)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source"), tree = -EBADF;
	char before[65], after[65], copied[65];
	struct stat st;

	need_root();
	source_fill(source, SOURCE_DEEP);
	digest_of(source, before);
	MADE struct made made = create(&scratch, "shapes", source);

	cr_assert_eq(made.r, 0, "%s", made.err.message);
	tree = base_tree(&scratch, "shapes");
	digest_of(source, after);
	digest_of(tree, copied);
	cr_expect_str_eq(before, after, "the source was changed");
	cr_expect_str_eq(before, copied);
	cr_assert_eq(fstatat(tree, SOURCE_SPARSE, &st, 0), 0);
	cr_expect_lt(st.st_blocks * 512, st.st_size / 2, "the hole was filled");
	cr_assert_eq(fstatat(tree, SOURCE_LINKED, &st, 0), 0);
	cr_expect_eq(st.st_nlink, 3);
	cr_expect_eq(count_of(&made, "hard_links"), 4);
	cr_expect_eq(count_of(&made, "vanished"), 0);
	cr_expect_eq(count_of(&made, "not_kept"), 0);
}

Test(sandbox, export_to_a_directory_gives_back_what_was_imported, .timeout = 60)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source");
	SBX_CLOSE int dest = scratch_mkdir(scratch.fd, "dest");
	SBX_VIEW struct sbx_view *view = NULL;
	char before[65], after[65];
	struct sbx_err err = SBX_ERR_INIT;
	struct stat st;

	need_root();
	source_fill(source, SOURCE_DEEP);
	digest_of(source, before);
	MADE struct made made = create(&scratch, "out", source);

	cr_assert_eq(made.r, 0, "%s", made.err.message);
	view = open_view(&scratch, "out");
	cr_assert_eq(sbx_store_export_dir(view, &made.sandbox, dest, NULL, NULL, made.report, &err),
		0, "%s", err.message);
	digest_of(dest, after);
	cr_expect_str_eq(before, after);
	cr_assert_eq(fstatat(dest, SOURCE_SPARSE, &st, 0), 0);
	cr_expect_lt(st.st_blocks * 512, st.st_size / 2, "the hole was filled");
	cr_assert_eq(fstatat(dest, SOURCE_LINKED, &st, 0), 0);
	cr_expect_eq(st.st_nlink, 3);
	cr_expect_eq(sbx_store_export_dir(view, &made.sandbox, dest, NULL, NULL, made.report, &err),
		-ENOTEMPTY, "a second time into the same directory");
}

/* Runs GNU tar in dir_fd; 127 when there is none. */
static int run_tar(int dir_fd, int archive_fd)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		if (fchdir(dir_fd) < 0 || dup2(archive_fd, STDIN_FILENO) < 0)
			_exit(126);
		(void)execlp("tar", "tar", "-x", "-p", "--same-owner", "--numeric-owner",
			"--xattrs", "--xattrs-include=*", "-f", "-", (char *)NULL);
		_exit(127);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

Test(sandbox, a_tar_export_unpacks_to_what_was_imported, .timeout = 60)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source");
	SBX_CLOSE int dest = scratch_mkdir(scratch.fd, "dest");
	SBX_CLOSE int archive =
		openat(scratch.fd, "out.tar", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	SBX_VIEW struct sbx_view *view = NULL;
	char before[65], after[65];
	struct sbx_err err = SBX_ERR_INIT;
	struct stat st;
	int status;

	need_root();
	source_fill(source, SOURCE_SHALLOW);
	digest_of(source, before);
	MADE struct made made = create(&scratch, "tar", source);

	cr_assert_eq(made.r, 0, "%s", made.err.message);
	view = open_view(&scratch, "tar");
	cr_assert_eq(
		sbx_store_export_tar(view, &made.sandbox, archive, NULL, NULL, made.report, &err),
		0, "%s", err.message);
	cr_assert_eq(fstat(archive, &st), 0);
	cr_expect_lt(st.st_size, SOURCE_SPARSE_SIZE, "the hole was written out");
	cr_assert_eq(lseek(archive, 0, SEEK_SET), 0);
	status = run_tar(dest, archive);
	if (status == 127)
		cr_skip_test("needs GNU tar");
	cr_assert_eq(status, 0);
	digest_of(dest, after);
	cr_expect_str_eq(before, after);
	cr_assert_eq(fstatat(dest, SOURCE_LINKED, &st, 0), 0);
	cr_expect_eq(st.st_nlink, 3);
}

Test(sandbox, the_owner_of_the_project_becomes_root_inside_and_comes_back)
{
	static const struct {
		const char *name;
		uid_t uid;
		gid_t gid;
		uid_t inside_uid;
		gid_t inside_gid;
		uid_t outside_uid;
		gid_t outside_gid;
	} cases[] = {
		{"own", 1234, 2345, 0, 0, 1234, 2345},
		{"group", 1234, 7, 0, 7, 1234, 7},
		{"other", 1000, 100, 1000, 100, 1000, 100},
		{"far", 70000, 1 << 20, 65534, 65534, 65534, 65534},
		{"last", 65535, 65535, 65535, 65535, 65535, 65535},
	};
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source"), tree = -EBADF;
	SBX_CLOSE int dest = scratch_mkdir(scratch.fd, "dest");
	SBX_VIEW struct sbx_view *view = NULL;
	struct stat st;

	need_root();
	cr_assert_eq(fchown(source, 1234, 2345), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		scratch_write(source, cases[i].name, "x");
		cr_assert_eq(fchownat(source, cases[i].name, cases[i].uid, cases[i].gid, 0), 0);
	}
	MADE struct made made = create(&scratch, "owners", source);

	cr_assert_eq(made.r, 0, "%s", made.err.message);
	cr_expect_eq(made.sandbox.source_uid, 1234);
	cr_expect_eq(count_of(&made, "owners_lost"), 1);
	tree = base_tree(&scratch, "owners");
	view = open_view(&scratch, "owners");
	cr_assert_eq(
		sbx_store_export_dir(view, &made.sandbox, dest, NULL, NULL, made.report, NULL), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		cr_assert_eq(fstatat(tree, cases[i].name, &st, 0), 0);
		cr_expect(st.st_uid == cases[i].inside_uid && st.st_gid == cases[i].inside_gid,
			"%s inside: %u:%u", cases[i].name, st.st_uid, st.st_gid);
		cr_assert_eq(fstatat(dest, cases[i].name, &st, 0), 0);
		cr_expect(st.st_uid == cases[i].outside_uid && st.st_gid == cases[i].outside_gid,
			"%s outside: %u:%u", cases[i].name, st.st_uid, st.st_gid);
	}
	cr_assert_eq(fstat(dest, &st), 0);
	cr_expect_eq(st.st_uid, 1234);
}

Test(sandbox, sockets_devices_and_overlay_marks_stay_behind)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source"), tree = -EBADF;
	char value[8];
	struct stat st;

	need_root();
	cr_assert_eq(mknodat(source, "socket", S_IFSOCK | 0600, 0), 0);
	cr_assert_eq(mknodat(source, "null", S_IFCHR | 0600, makedev(1, 3)), 0);
	cr_assert_eq(mknodat(source, "whiteout", S_IFCHR | 0600, makedev(0, 0)), 0);
	cr_assert_eq(fsetxattr(source, "user.overlay.opaque", "y", 1, 0), 0);
	cr_assert_eq(fsetxattr(source, "trusted.overlay.opaque", "y", 1, 0), 0);
	MADE struct made made = create(&scratch, "drop", source);

	cr_assert_eq(made.r, 0, "%s", made.err.message);
	tree = base_tree(&scratch, "drop");
	cr_expect_eq(count_of(&made, "not_kept"), 3);
	cr_expect_eq(count_of(&made, "xattrs_dropped"), 2);
	cr_expect_eq(count_of(&made, "entries"), 0);
	cr_expect_lt(fgetxattr(tree, "user.overlay.opaque", value, sizeof(value)), 0);
	cr_expect_eq(sbx_is_opaque(tree), 0);
	cr_expect_lt(fstatat(tree, "whiteout", &st, AT_SYMLINK_NOFOLLOW), 0);
}

Test(sandbox, what_cannot_be_created_is_refused_and_leaves_nothing)
{
	static const struct {
		const char *label, *id, *source;
		int expect;
	} cases[] = {
		{"the id is taken", "first", "source", -EEXIST},
		{"no id", "../x", "source", -EINVAL},
		{"a hidden id", ".new-x", "source", -EINVAL},
		{"the source holds the state", "x", ".", -EINVAL},
		{"the source is in the state", "x", "state/first", -EINVAL},
		{"the source is the state", "x", "state", -EINVAL},
	};
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source"), state = -EBADF;
	size_t n;

	need_root();
	MADE struct made first = create(&scratch, "first", source);

	cr_assert_eq(first.r, 0, "%s", first.err.message);
	state = open_path(&scratch, "state");
	n = scratch_count_at(state);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_CLOSE int fd = open_path(&scratch, cases[i].source);
		MADE struct made made = create(&scratch, cases[i].id, fd);

		cr_expect_eq(made.r, cases[i].expect, "%s: %s", cases[i].label, made.err.message);
		cr_expect_eq(scratch_count_at(state), n, "%s: something is left", cases[i].label);
	}
}

Test(sandbox, sandboxes_have_different_ids_and_host_ranges)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source");
	uid_t seen[4];
	char ids[4][SBX_ID_SIZE];

	need_root();
	for (size_t i = 0; i < SBX_N_ELEMENTS(seen); i++) {
		MADE struct made made = create(&scratch, "", source);

		cr_assert_eq(made.r, 0, "%s", made.err.message);
		cr_expect(sbx_id_has_prefix(made.sandbox.id, SBX_ID_SANDBOX));
		cr_expect_eq(made.sandbox.id_base % 65536, 0);
		cr_expect_geq(made.sandbox.id_base, 1u << 30);
		seen[i] = made.sandbox.id_base;
		memcpy(ids[i], made.sandbox.id, sizeof(ids[i]));
		for (size_t k = 0; k < i; k++)
			cr_expect(seen[k] != seen[i] && strcmp(ids[k], ids[i]) != 0);
	}
}

Test(sandbox, what_a_create_that_died_left_is_swept_by_the_next)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source");
	SBX_CLOSE int state = scratch_mkdir(scratch.fd, "state");
	SBX_CLOSE int dead = scratch_mkdir(state, ".new-dead");
	struct stat st;

	need_root();
	scratch_write(dead, "file", "x");
	MADE struct made made = create(&scratch, "next", source);

	cr_assert_eq(made.r, 0, "%s", made.err.message);
	cr_expect_lt(fstatat(state, ".new-dead", &st, 0), 0);
}

Test(sandbox, sandbox_json_comes_back_as_it_was_written)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source"), fd = -EBADF;
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox loaded = {0};
	SBX_JSON struct json_object *a = json_object_new_object(), *b = json_object_new_object();
	struct sbx_err err = SBX_ERR_INIT;

	need_root();
	MADE struct made made = create(&scratch, "same", source);

	fd = open_in(&scratch, "same", ".");
	cr_assert_eq(sbx_sandbox_load(fd, &loaded, &err), 0, "%s", err.message);
	sbx_sandbox_to_json(&made.sandbox, a);
	sbx_sandbox_to_json(&loaded, b);
	cr_expect_str_eq(sbx_json_text(a, NULL), sbx_json_text(b, NULL));
}

/* In a child: a state root with 1 MiB of room, which the import does not fit in. */
static int create_without_room(const struct scratch *scratch, int source)
{
	char state[96];
	size_t n_left;
	int state_fd;

	state_path(scratch, state);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mkdir(state, 0700) < 0 || mount("tmpfs", state, "tmpfs", 0, "size=1m") < 0)
		return errno;
	MADE struct made made = create(scratch, "full", source);

	state_fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n_left = scratch_count_at(state_fd);
	(void)close(state_fd);
	if (made.r != -ENOSPC || !strstr(made.err.message, "big"))
		(void)fprintf(stderr, "%d: %s\n", made.r, made.err.message);
	/* the lock file stays */
	return made.r == -ENOSPC && strstr(made.err.message, "big") && n_left == 1 ? 0 : EINVAL;
}

Test(sandbox, a_full_disk_names_the_file_and_leaves_nothing)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLOSE int source = scratch_mkdir(scratch.fd, "source");
	SBX_CLOSE int big = openat(source, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char chunk[65536];
	int status;
	pid_t pid;

	need_root();
	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 32; i++)
		cr_assert_eq(sbx_fs_write_all(big, chunk, sizeof(chunk)), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(create_without_room(&scratch, source));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == EPERM)
		cr_skip_test("needs CAP_SYS_ADMIN: mounts a small tmpfs");
	cr_expect_eq(WEXITSTATUS(status), 0);
}
