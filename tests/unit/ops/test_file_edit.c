/* SPDX-License-Identifier: MIT */
/* file_edit as a job: what it answers, and that a refusal changes nothing. The replacing itself is
 * tested with the text layer. */
#include <sys/stat.h>

#include "fixture.h"

#define ID_BASE 231072

static struct outcome edit_layer(struct fixture *f, const char *path, const char *edits)
{
	char args[2048];

	(void)snprintf(args, sizeof(args),
		"{\"root_at\":\"/w\",\"head\":[\"l1\"],\"version\":1,\"layer_id\":\"l2\","
		"\"operation_id\":\"op_x\",\"args\":{\"path\":\"%s\",\"edits\":%s}}",
		path, edits);
	return fixture_run(f, "file_edit", args, -EBADF);
}

static struct outcome edit_session(
	struct fixture *f, int root_fd, const char *path, const char *edits)
{
	char args[2048];

	(void)snprintf(args, sizeof(args),
		"{\"root_at\":\"/w\",\"id_base\":%d,\"args\":{\"path\":\"%s\",\"edits\":%s}}",
		ID_BASE, path, edits);
	return fixture_run(f, "file_edit", args, root_fd);
}

#define EDIT(from, to) "{\"old_string\":\"" from "\",\"new_string\":\"" to "\"}"
#define EDIT_ALL(from, to)                                                                         \
	"{\"old_string\":\"" from "\",\"new_string\":\"" to "\",\"replace_all\":true}"

struct edit_case {
	const char *before;
	const char *edits;
	const char *after;  /* NULL: refused */
	const char *answer; /* the tool's result, or words of the refusal */
};

static const struct edit_case cases[] = {
	{"a\nb\n", "[" EDIT("b", "B") "]", "a\nB\n",
		"{\"type\":\"edit\",\"path\":\"f\",\"edits_applied\":1,\"replacements\":1,"
		"\"bytes_written\":4}"},
	{"x x\nx\n", "[" EDIT_ALL("x", "yy") "," EDIT("yy yy", "z") "]", "z\nyy\n",
		"{\"type\":\"edit\",\"path\":\"f\",\"edits_applied\":2,\"replacements\":4,"
		"\"bytes_written\":5}"},
	{"a\r\nb\r\n", "[" EDIT("a\\nb", "x\\ny") "]", "x\r\ny\r\n",
		"{\"type\":\"edit\",\"path\":\"f\",\"edits_applied\":1,\"replacements\":1,"
		"\"bytes_written\":6}"},
	/* bytes that are no UTF-8 stay as they are */
	{"x = 1\n# caf\351\n", "[" EDIT("x = 1", "x = 2") "]", "x = 2\n# caf\351\n",
		"{\"type\":\"edit\",\"path\":\"f\",\"edits_applied\":1,\"replacements\":1,"
		"\"bytes_written\":13}"},
	{"abc", "[" EDIT("abc", "") "]", "",
		"{\"type\":\"edit\",\"path\":\"f\",\"edits_applied\":1,\"replacements\":1,"
		"\"bytes_written\":0}"},
	/* all or nothing */
	{"a\nb\nc\n", "[" EDIT("a", "A") "," EDIT("zzz", "Z") "," EDIT("c", "C") "]", NULL,
		"'f': edit #2"},
	{"a\n", "[]", NULL, "no edits"},
	{"a\n", "[" EDIT("", "x") "]", NULL, "old_string is empty"},
	{"a\na\n", "[" EDIT("a", "x") "]", NULL, "matches 2 times, at lines 1, 2"},
	{"a\n", "[" EDIT("a", "a") "]", NULL, "changes nothing"},
};

static void expect_content(int dir_fd, const char *path, const char *expected)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	cr_assert_eq(sbx_fs_read_at(dir_fd, path, 1 << 20, &text), 0, "%s", path);
	cr_expect_eq(text.size, strlen(expected));
	cr_expect_str_eq(text.data, expected);
}

static void expect_answer(const struct edit_case *c, const struct outcome *o)
{
	if (c->after) {
		cr_assert_eq(o->r, 0, "%s: %s", c->edits, o->err.message);
		cr_expect_str_eq(
			sbx_json_text(sbx_json_member(o->result, "tool"), NULL), c->answer);
		return;
	}
	cr_assert_lt(o->r, 0, "%s", c->edits);
	cr_expect_eq(o->err.kind, SBX_KIND_INVALID);
	cr_expect_not_null(strstr(o->err.message, c->answer), "%s", o->err.message);
}

Test(file_edit, without_a_session_makes_a_layer_or_changes_nothing)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: files of a layer are given owners");
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		FIXTURE struct fixture f;
		OUTCOME struct outcome o = {0};
		SBX_CLOSE int tree_fd = -EBADF;

		fixture_init(&f);
		fixture_file(&f, "l1", "f", cases[i].before);
		o = edit_layer(&f, "f", cases[i].edits);
		expect_answer(&cases[i], &o);
		if (!cases[i].after) {
			cr_expect_eq(faccessat(f.context.layers_fd, "l2", F_OK, 0), -1);
			continue;
		}
		tree_fd = fixture_tree(&f, "l2");
		expect_content(tree_fd, "f", cases[i].after);
	}
}

Test(file_edit, in_a_session_replaces_the_file_or_changes_nothing)
{
	FIXTURE struct fixture f;
	SBX_CLOSE int root_fd = -EBADF;

	if (geteuid() != 0)
		cr_skip_test("needs root: files are made as another user");
	fixture_init(&f);
	root_fd = fixture_dir(f.fd, "live");
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		OUTCOME struct outcome o = {0};
		const struct edit_case *c = &cases[i];

		fixture_write(root_fd, "f", c->before, strlen(c->before));
		cr_assert_eq(fchmodat(root_fd, "f", 0755, 0), 0);
		o = edit_session(&f, root_fd, "f", c->edits);
		expect_answer(c, &o);
		expect_content(root_fd, "f", c->after ? c->after : c->before);
	}
}

Test(file_edit, edits_that_undo_each_other_make_no_layer)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};

	fixture_init(&f);
	fixture_file(&f, "l1", "f", "a\n");
	o = edit_layer(&f, "f", "[" EDIT("a", "b") "," EDIT("b", "a") "]");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(sbx_json_string(o.result, "outcome", ""), "no_op");
	cr_expect_eq(faccessat(f.context.layers_fd, "l2", F_OK, 0), -1);
}

Test(file_edit, refuses_missing_files_and_what_is_no_file, .timeout = 20)
{
	static const struct {
		const char *path;
		enum sbx_err_kind kind;
		const char *words;
	} refusals[] = {
		{"none", SBX_KIND_NOT_FOUND, "no file 'none'"},
		{"dir", SBX_KIND_INVALID, "'dir' is a directory"},
		{"fifo", SBX_KIND_INVALID, "'fifo' is a FIFO, not a regular file"},
		{"link", SBX_KIND_INVALID, "'link' is a symbolic link to 'f'"},
		{"big", SBX_KIND_INVALID, "'big' has 16777217 bytes"},
	};
	FIXTURE struct fixture f;
	SBX_CLOSE int tree_fd = -EBADF;

	fixture_init(&f);
	fixture_file(&f, "l1", "f", "a\n");
	fixture_file(&f, "l1", "big", "a\n");
	tree_fd = fixture_tree(&f, "l1");
	cr_assert_eq(mkdirat(tree_fd, "dir", 0755), 0);
	cr_assert_eq(mkfifoat(tree_fd, "fifo", 0644), 0);
	cr_assert_eq(symlinkat("f", tree_fd, "link"), 0);
	{
		SBX_CLOSE int fd = openat(tree_fd, "big", O_WRONLY | O_CLOEXEC);

		cr_assert_eq(ftruncate(fd, (16 << 20) + 1), 0);
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(refusals); i++) {
		OUTCOME struct outcome o = edit_layer(&f, refusals[i].path, "[" EDIT("a", "b") "]");

		cr_assert_lt(o.r, 0, "%s", refusals[i].path);
		cr_expect_eq(o.err.kind, refusals[i].kind, "%s", refusals[i].path);
		cr_expect_not_null(strstr(o.err.message, refusals[i].words), "%s", o.err.message);
	}
}
