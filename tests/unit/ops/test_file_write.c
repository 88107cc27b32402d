/* SPDX-License-Identifier: MIT */
/* file_write: layers of one path, and files of a live session replaced in one step. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "fixture.h"
#include "sbx/owners.h"
#include "sbx/store.h"

#define ID_BASE 231072 /* host id of in-session root in these tests */

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: files are given other owners");
}

/* Runs file_write without a session on head; content is put into JSON as it is. */
static struct outcome write_layer(struct fixture *f, const char *head, const char *layer_id,
	const char *path, const char *content)
{
	char args[1024];

	(void)snprintf(args, sizeof(args),
		"{\"root_at\":\"/w\",\"head\":%s,\"version\":4,\"layer_id\":\"%s\","
		"\"operation_id\":\"op_%s\",\"args\":{\"path\":\"%s\",\"content\":\"%s\"}}",
		head, layer_id, layer_id, path, content);
	return fixture_run(f, "file_write", args, -EBADF);
}

static struct outcome write_session(
	struct fixture *f, int root_fd, const char *path, const char *content)
{
	char args[1024];

	(void)snprintf(args, sizeof(args),
		"{\"root_at\":\"/w\",\"id_base\":%d,\"args\":{\"path\":\"%s\",\"content\":\"%s\"}}",
		ID_BASE, path, content);
	return fixture_run(f, "file_write", args, root_fd);
}

/* The owners of path in one layer: "original:2 operation:x:1 ". */
static void expect_owners(
	struct fixture *f, const char *layer_id, const char *path, const char *expected)
{
	SBX_CLOSE int layer_fd = fixture_dir(f->context.layers_fd, layer_id);
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	struct sbx_owners *owners = NULL;
	struct sbx_owner_record record;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(
		sbx_owners_open(layer_fd, SBX_LAYER_LINES, &owners, &err), 0, "%s", err.message);
	cr_assert_eq(sbx_owners_find(owners, path, &record), 0);
	for (uint32_t i = 0; i < record.n_runs; i++)
		sbx_buf_printf(&text, "%s:%u ", sbx_owners_name(owners, record.runs[i].owner),
			record.runs[i].count);
	cr_expect_str_eq(text.data ? text.data : "", expected);
	sbx_owners_free(owners);
}

static void expect_content(int dir_fd, const char *path, const char *expected)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	cr_assert_eq(sbx_fs_read_at(dir_fd, path, 1 << 20, &text), 0, "%s", path);
	cr_expect_eq(text.size, strlen(expected), "%s", path);
	cr_expect_str_eq(text.data, expected);
}

Test(file_write, makes_a_layer_of_one_path)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int layer_fd = -EBADF, tree_fd = -EBADF;
	struct sbx_layer_info info = {0};
	struct sbx_err err = SBX_ERR_INIT;

	need_root();
	fixture_init(&f);
	fixture_file(&f, "l1", "other", "o\n");
	o = write_layer(&f, "[\"l1\"]", "l2", "new/dir/f", "a\\nb\\n");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(sbx_json_text(o.result, NULL),
		"{\"outcome\":\"published\",\"layer_id\":\"l2\",\"tool\":{\"type\":\"create\","
		"\"path\":\"new/dir/f\",\"bytes_written\":4}}");
	tree_fd = fixture_tree(&f, "l2");
	expect_content(tree_fd, "new/dir/f", "a\nb\n");
	cr_expect_eq(faccessat(tree_fd, "other", F_OK, 0), -1);
	expect_owners(&f, "l2", "new/dir/f", "operation:op_l2:2 ");
	layer_fd = fixture_dir(f.context.layers_fd, "l2");
	cr_assert_eq(sbx_layer_info_load(layer_fd, &info, &err), 0, "%s", err.message);
	cr_expect_str_eq(info.id, "l2");
	cr_expect_str_eq(info.owner, "operation:op_l2");
	cr_expect_eq(info.parent_version, 4);
	cr_expect_eq(info.added, 1);
	cr_expect_eq(info.modified, 0);
	sbx_layer_info_done(&info);
}

/* Mode, owner and xattrs of what was there stay; a merged directory must not change its face. */
Test(file_write, keeps_the_attributes_of_the_file_and_of_its_directories)
{
	const struct timespec old[2] = {
		{.tv_sec = 1000, .tv_nsec = 7}, {.tv_sec = 1000, .tv_nsec = 7}};
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int lower_fd = -EBADF, tree_fd = -EBADF;
	char path[128], value[8] = {0};
	struct stat st;

	need_root();
	fixture_init(&f);
	lower_fd = fixture_tree(&f, "l1");
	cr_assert_eq(mkdirat(lower_fd, "d", 0700), 0);
	fixture_write(lower_fd, "d/f", "a\n", 2);
	cr_assert_eq(fchownat(lower_fd, "d/f", 7, 8, 0), 0);
	cr_assert_eq(fchmodat(lower_fd, "d/f", 04755, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/store/layers/l1/tree/d/f", f.path);
	cr_assert_eq(setxattr(path, "user.note", "hey", 3, 0), 0);
	cr_assert_eq(fchownat(lower_fd, "d", 5, 6, 0), 0);
	cr_assert_eq(fchmodat(lower_fd, "d", 03770, 0), 0);
	cr_assert_eq(utimensat(lower_fd, "d/f", old, 0), 0);
	cr_assert_eq(utimensat(lower_fd, "d", old, 0), 0);

	o = write_layer(&f, "[\"l1\"]", "l2", "d/f", "a\\nb\\n");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	tree_fd = fixture_tree(&f, "l2");
	cr_assert_eq(fstatat(tree_fd, "d/f", &st, 0), 0);
	cr_expect_eq(st.st_mode, S_IFREG | 04755);
	cr_expect_eq(st.st_uid, 7);
	cr_expect_eq(st.st_gid, 8);
	cr_expect_gt(st.st_mtim.tv_sec, 1000, "a fresh mtime, or caches of it go stale");
	(void)snprintf(path, sizeof(path), "%s/store/layers/l2/tree/d/f", f.path);
	cr_expect_eq(getxattr(path, "user.note", value, sizeof(value)), 3);
	cr_assert_eq(fstatat(tree_fd, "d", &st, 0), 0);
	cr_expect_eq(st.st_mode, S_IFDIR | 03770);
	cr_expect_eq(st.st_uid, 5);
	cr_expect_eq(st.st_mtim.tv_sec, 1000);
	cr_expect_eq(st.st_mtim.tv_nsec, 7);
	expect_content(lower_fd, "d/f", "a\n"); /* layers are immutable */
}

Test(file_write, carries_the_owners_of_lines_that_stay)
{
	FIXTURE struct fixture f;

	need_root();
	fixture_init(&f);
	fixture_file(&f, "l1", "f", "one\ntwo\nthree\n");
	{
		OUTCOME struct outcome o =
			write_layer(&f, "[\"l1\"]", "l2", "f", "one\\n2\\nthree\\n");

		cr_assert_eq(o.r, 0, "%s", o.err.message);
	}
	expect_owners(&f, "l2", "f", "original:1 operation:op_l2:1 original:1 ");
	{
		OUTCOME struct outcome o =
			write_layer(&f, "[\"l1\",\"l2\"]", "l3", "f", "one\\n2\\nthree\\nfour\\n");

		cr_assert_eq(o.r, 0, "%s", o.err.message);
	}
	expect_owners(&f, "l3", "f", "original:1 operation:op_l2:1 original:1 operation:op_l3:1 ");
}

Test(file_write, ignored_and_binary_files_have_one_owner)
{
	static const struct {
		const char *path, *content, *owners;
	} cases[] = {
		{"build/out.txt", "one\\n2\\n", "operation:op_l2:1 "},
		{"keep/out.txt", "one\\n2\\n", "original:1 operation:op_l2:1 "},
		{"keep/blob", "one\\n\\u0000\\n", "operation:op_l2:1 "},
		{"keep/empty", "", ""},
	};
	FIXTURE struct fixture f;
	SBX_CLOSE int tree_fd = -EBADF;

	need_root();
	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	cr_assert_eq(mkdirat(tree_fd, "build", 0755), 0);
	cr_assert_eq(mkdirat(tree_fd, "keep", 0755), 0);
	fixture_file(&f, "l1", ".gitignore", "build/\n*.txt\n");
	fixture_file(&f, "l1", "keep/.gitignore", "!out.txt\n");
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		OUTCOME struct outcome o = {0};

		fixture_file(&f, "l1", cases[i].path, "one\ntwo\n");
		o = write_layer(&f, "[\"l1\"]", "l2", cases[i].path, cases[i].content);
		cr_assert_eq(o.r, 0, "%s", o.err.message);
		expect_owners(&f, "l2", cases[i].path, cases[i].owners);
	}
}

Test(file_write, the_same_content_makes_no_layer)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};

	fixture_init(&f);
	fixture_file(&f, "l1", "f", "a\n");
	o = write_layer(&f, "[\"l1\"]", "l2", "f", "a\\n");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(sbx_json_text(o.result, NULL),
		"{\"outcome\":\"no_op\",\"tool\":{\"type\":\"update\",\"path\":\"f\","
		"\"bytes_written\":2}}");
	cr_expect_eq(faccessat(f.context.layers_fd, "l2", F_OK, 0), -1);
}

struct refusal {
	const char *path;
	const char *words;
};

static const struct refusal refusals[] = {
	{"dir", "'dir' is a directory"},
	{".", "'.' is a directory"},
	{"fifo", "'fifo' is a FIFO, not a regular file"},
	{"link", "'link' is a symbolic link to 'f'"},
	{"dangling", "'dangling' is a symbolic link"},
	{"sub/new", "symbolic link"},
	{"f/below", "not a directory"},
	{"../x", "'..'"},
	{"/etc/passwd", "outside the workspace"},
};

static void make_zoo(int tree_fd)
{
	fixture_write(tree_fd, "f", "f\n", 2);
	cr_assert_eq(mkdirat(tree_fd, "dir", 0755), 0);
	cr_assert_eq(mkfifoat(tree_fd, "fifo", 0644), 0);
	cr_assert_eq(symlinkat("f", tree_fd, "link"), 0);
	cr_assert_eq(symlinkat("nowhere", tree_fd, "dangling"), 0);
	cr_assert_eq(symlinkat("dir", tree_fd, "sub"), 0);
}

static void expect_refusal(const struct refusal *refusal, const struct outcome *o)
{
	cr_assert_lt(o->r, 0, "%s", refusal->path);
	cr_expect_eq(o->err.kind, SBX_KIND_INVALID, "%s: %s", refusal->path, o->err.message);
	cr_expect_not_null(
		strstr(o->err.message, refusal->words), "%s: %s", refusal->path, o->err.message);
	cr_expect_not_null(sbx_json_member(o->details, "path"));
}

Test(file_write, refuses_what_is_no_file_and_leaves_it, .timeout = 20)
{
	FIXTURE struct fixture f;
	SBX_CLOSE int tree_fd = -EBADF;
	char target[32] = {0};

	need_root();
	fixture_init(&f);
	tree_fd = fixture_tree(&f, "l1");
	make_zoo(tree_fd);
	for (size_t i = 0; i < SBX_N_ELEMENTS(refusals); i++) {
		OUTCOME struct outcome layer =
			write_layer(&f, "[\"l1\"]", "l2", refusals[i].path, "x");
		OUTCOME struct outcome live = write_session(&f, tree_fd, refusals[i].path, "x");

		expect_refusal(&refusals[i], &layer);
		expect_refusal(&refusals[i], &live);
		cr_expect_eq(faccessat(f.context.layers_fd, "l2", F_OK, 0), -1,
			"a half-made layer was left");
	}
	cr_expect_eq(readlinkat(tree_fd, "link", target, sizeof(target)), 1);
	expect_content(tree_fd, "f", "f\n");
	cr_expect_eq(faccessat(tree_fd, "nowhere", F_OK, 0), -1);
}

Test(file_write, in_a_session_new_files_belong_to_its_root)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int root_fd = -EBADF;
	struct stat st;

	need_root();
	fixture_init(&f);
	root_fd = fixture_dir(f.fd, "live");
	o = write_session(&f, root_fd, "a/b/f", "x\\n");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(sbx_json_text(o.result, NULL),
		"{\"outcome\":\"session\",\"tool\":{\"type\":\"create\",\"path\":\"a/b/f\","
		"\"bytes_written\":2}}");
	expect_content(root_fd, "a/b/f", "x\n");
	cr_assert_eq(fstatat(root_fd, "a/b/f", &st, 0), 0);
	cr_expect_eq(st.st_uid, ID_BASE);
	cr_expect_eq(st.st_gid, ID_BASE);
	cr_expect_eq(st.st_mode, S_IFREG | 0644);
	cr_assert_eq(fstatat(root_fd, "a", &st, 0), 0);
	cr_expect_eq(st.st_uid, ID_BASE);
	cr_expect_eq(st.st_mode, S_IFDIR | 0755);
	/* and the worker is itself again */
	fixture_write(root_fd, "ours", "", 0);
	cr_assert_eq(fstatat(root_fd, "ours", &st, 0), 0);
	cr_expect_eq(st.st_uid, geteuid());
}

Test(file_write, in_a_session_mode_owner_and_xattrs_stay_and_hard_links_part)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int root_fd = -EBADF;
	char path[128], value[8] = {0};
	struct stat st;

	need_root();
	fixture_init(&f);
	root_fd = fixture_dir(f.fd, "live");
	fixture_write(root_fd, "f", "old\n", 4);
	cr_assert_eq(linkat(root_fd, "f", root_fd, "twin", 0), 0);
	cr_assert_eq(fchownat(root_fd, "f", 7, 8, 0), 0);
	cr_assert_eq(fchmodat(root_fd, "f", 06511, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/live/f", f.path);
	cr_assert_eq(setxattr(path, "user.note", "hey", 3, 0), 0);
	o = write_session(&f, root_fd, "f", "new\\n");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_assert_eq(fstatat(root_fd, "f", &st, 0), 0);
	cr_expect_eq(st.st_mode, S_IFREG | 06511);
	cr_expect_eq(st.st_uid, 7);
	cr_expect_eq(st.st_gid, 8);
	cr_expect_eq(st.st_nlink, 1);
	cr_expect_eq(getxattr(path, "user.note", value, sizeof(value)), 3);
	expect_content(root_fd, "f", "new\n");
	expect_content(root_fd, "twin", "old\n");
}

/* Swaps the directory d between a real one and a link to outside, until killed. */
static void torment(int root_fd, const char *outside)
{
	for (;;) {
		(void)renameat(root_fd, "d", root_fd, "aside");
		(void)!symlinkat(outside, root_fd, "d");
		(void)unlinkat(root_fd, "d", 0);
		(void)renameat(root_fd, "aside", root_fd, "d");
	}
}

/* Whatever a command swaps, nothing is written outside and no temporary file stays. */
Test(file_write, in_a_session_a_swapped_directory_leads_nowhere_else, .timeout = 60)
{
	FIXTURE struct fixture f;
	SBX_CLOSE int root_fd = -EBADF, outside_fd = -EBADF;
	char outside[128];
	size_t n_written = 0;
	pid_t pid;

	need_root();
	fixture_init(&f);
	root_fd = fixture_dir(f.fd, "live");
	cr_assert_eq(mkdirat(root_fd, "d", 0755), 0);
	outside_fd = fixture_dir(f.fd, "outside");
	(void)snprintf(outside, sizeof(outside), "%s/outside", f.path);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		torment(root_fd, outside);
	/* at least once between two swaps: on one processor that takes its time */
	for (int i = 0; i < 1000 || !n_written; i++) {
		OUTCOME struct outcome o = write_session(&f, root_fd, "d/f", "x");

		n_written += o.r == 0;
	}
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_gt(n_written, 0);
	cr_expect_eq(faccessat(outside_fd, "f", F_OK, 0), -1, "written through a link");
	cr_expect_eq(unlinkat(f.fd, "outside", AT_REMOVEDIR), 0, "left outside: %m");
}
