/* SPDX-License-Identifier: MIT */
/* What people ask of versions: ls, cat, layers, layer, log, diff. */
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "fixture.h"
#include "sbx/store.h"

#define MTIME UINT64_C(1500000000)

/*
 * Three layers: l1 the base; l2 changes a, adds d/new and deletes d/old; l3 replaces the directory
 * e by a file, deletes the directory d and changes the mode of run.
 */
static void add_info(struct fixture *f, const char *id, uint64_t parent_version, const char *owner)
{
	SBX_CLOSE int layer_fd = fixture_dir(f->context.layers_fd, id);
	struct sbx_layer_info info = {.parent_version = parent_version, .created_ns = 77};
	struct sbx_err err = SBX_ERR_INIT;

	(void)snprintf(info.id, sizeof(info.id), "%s", id);
	memset(info.tree_digest, '0', 64);
	info.owner = strdup(owner);
	cr_assert_eq(sbx_layer_info_save(layer_fd, &info, &err), 0, "%s", err.message);
	sbx_layer_info_done(&info);
}

static void whiteout(int dir_fd, const char *path)
{
	cr_assert_eq(mknodat(dir_fd, path, S_IFCHR, makedev(0, 0)), 0, "%m");
}

static void settle(int dir_fd, const char *path)
{
	const struct timespec times[2] = {{.tv_sec = MTIME}, {.tv_sec = MTIME, .tv_nsec = 5}};

	cr_assert_eq(utimensat(dir_fd, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void make_base(struct fixture *f)
{
	SBX_CLOSE int fd = fixture_tree(f, "l1");

	cr_assert_eq(mkdirat(fd, "d", 0755), 0);
	cr_assert_eq(mkdirat(fd, "e", 0750), 0);
	fixture_write(fd, "a", "one\ntwo\n", 8);
	fixture_write(fd, "d/old", "old\n", 4);
	fixture_write(fd, "d/kept", "kept\n", 5);
	fixture_write(fd, "e/x", "x\n", 2);
	fixture_write(fd, "run", "#!/bin/sh\n", 10);
	fixture_write(fd, "blob", "\0\1", 2);
	cr_assert_eq(symlinkat("a", fd, "link"), 0);
	settle(fd, "run");
	settle(fd, "link");
	add_info(f, "l1", 0, "original");
}

static void make_second(struct fixture *f)
{
	SBX_CLOSE int fd = fixture_tree(f, "l2");

	cr_assert_eq(mkdirat(fd, "d", 0755), 0);
	fixture_write(fd, "a", "one\n2\n", 6);
	fixture_write(fd, "d/new", "new\n", 4);
	whiteout(fd, "d/old");
	add_info(f, "l2", 1, "workspace_session:ws_x");
}

static void make_third(struct fixture *f)
{
	SBX_CLOSE int fd = fixture_tree(f, "l3");

	fixture_write(fd, "e", "a file now\n", 11);
	whiteout(fd, "d");
	fixture_write(fd, "run", "#!/bin/sh\n", 10);
	cr_assert_eq(fchmodat(fd, "run", 0755, 0), 0);
	settle(fd, "run");
	fixture_write(fd, "blob", "\0\2", 2);
	add_info(f, "l3", 2, "operation:op_y");
}

static void make_store(struct fixture *f)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: whiteouts are devices");
	fixture_init(f);
	make_base(f);
	make_second(f);
	make_third(f);
}

#define ASK(head, more) "{\"root_at\":\"/w\",\"version\":3,\"head\":" head ",\"args\":{" more "}}"

/* "name kind mode size", each with a blank after it. */
static void describe_entries(struct json_object *entries, struct sbx_buf *ret)
{
	for (size_t i = 0; i < json_object_array_length(entries); i++) {
		struct json_object *e = json_object_array_get_idx(entries, i);

		sbx_buf_printf(ret, "%s %s %llo %lld%s%s\n", sbx_json_string(e, "name", "?"),
			sbx_json_string(e, "kind", "?"),
			(unsigned long long)sbx_json_int(e, "mode", 0),
			(long long)sbx_json_int(e, "size", -1),
			sbx_json_string(e, "target", NULL) ? " -> " : "",
			sbx_json_string(e, "target", ""));
	}
}

Test(show, ls_lists_what_a_version_shows)
{
	static const struct {
		const char *args;
		const char *listing;
	} cases[] = {
		{ASK("[\"l1\"]", "\"path\":\"d\""), "kept file 644 5\nold file 644 4\n"},
		{ASK("[\"l1\",\"l2\"]", "\"path\":\"/w/d/\""), "kept file 644 5\nnew file 644 4\n"},
		{ASK("[\"l1\",\"l2\",\"l3\"]", ""),
			"a file 644 6\nblob file 644 2\ne file 644 11\nlink symlink 777 1 -> a\n"
			"run file 755 10\n"},
	};
	FIXTURE struct fixture f;

	make_store(&f);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		OUTCOME struct outcome o = fixture_run(&f, "ls", cases[i].args, -EBADF);
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

		cr_assert_eq(o.r, 0, "%s", o.err.message);
		describe_entries(sbx_json_member(o.result, "entries"), &text);
		cr_expect_str_eq(text.data, cases[i].listing);
	}
}

Test(show, ls_tells_the_exact_mtime)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};

	make_store(&f);
	o = fixture_run(&f, "ls", ASK("[\"l1\",\"l2\",\"l3\"]", ""), -EBADF);
	cr_expect_eq(
		sbx_json_int(json_object_array_get_idx(sbx_json_member(o.result, "entries"), 4),
			"mtime_ns", 0),
		(int64_t)(MTIME * SBX_NSEC_PER_SEC + 5));
}

static int keep_chunk(void *data, const void *bytes, size_t size)
{
	return sbx_buf_append(data, bytes, size);
}

Test(show, cat_sends_the_bytes_of_a_version)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_BUF struct sbx_buf sent = SBX_BUF_INIT;

	make_store(&f);
	f.context.chunk = keep_chunk;
	f.context.chunk_data = &sent;
	o = fixture_run(&f, "cat", ASK("[\"l1\"]", "\"path\":\"a\""), -EBADF);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(sbx_json_text(o.result, NULL), "{\"path\":\"a\",\"size\":8}");
	cr_expect_str_eq(sent.data, "one\ntwo\n");
}

Test(show, refuses_what_is_not_there_or_of_another_kind)
{
	static const struct {
		const char *job, *args;
		enum sbx_err_kind kind;
		const char *words;
	} cases[] = {
		{"ls", ASK("[\"l1\"]", "\"path\":\"none\""), SBX_KIND_NOT_FOUND, "'none'"},
		{"ls", ASK("[\"l1\"]", "\"path\":\"a\""), SBX_KIND_INVALID,
			"'a' is a regular file, not a directory"},
		{"ls", ASK("[\"l1\"]", "\"path\":\"link\""), SBX_KIND_INVALID,
			"'link' is a symbolic link"},
		{"cat", ASK("[\"l1\"]", "\"path\":\"d\""), SBX_KIND_INVALID, "'d' is a directory"},
		{"cat", ASK("[\"l1\",\"l2\"]", "\"path\":\"d/old\""), SBX_KIND_NOT_FOUND,
			"no file 'd/old'"},
		{"log", ASK("[\"l1\",\"l2\"]", "\"path\":\"never\""), SBX_KIND_NOT_FOUND,
			"'never'"},
	};
	FIXTURE struct fixture f;

	make_store(&f);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		OUTCOME struct outcome o = fixture_run(&f, cases[i].job, cases[i].args, -EBADF);

		cr_assert_lt(o.r, 0, "%s", cases[i].args);
		cr_expect_eq(o.err.kind, cases[i].kind, "%s", o.err.message);
		cr_expect_not_null(strstr(o.err.message, cases[i].words), "%s", o.err.message);
	}
}

Test(show, layers_tells_the_stack_top_last)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	struct json_object *layers, *top;

	make_store(&f);
	o = fixture_run(&f, "layers", ASK("[\"l1\",\"l2\",\"l3\"]", ""), -EBADF);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_eq(sbx_json_int(o.result, "version", -1), 3);
	layers = sbx_json_member(o.result, "layers");
	cr_assert_eq(json_object_array_length(layers), 3);
	top = json_object_array_get_idx(layers, 2);
	cr_expect_str_eq(sbx_json_string(top, "layer_id", ""), "l3");
	cr_expect_str_eq(sbx_json_string(top, "owner", ""), "operation:op_y");
}

/* "change path" of each, a line each. */
static void describe_changes(struct json_object *items, struct sbx_buf *ret)
{
	for (size_t i = 0; i < json_object_array_length(items); i++) {
		struct json_object *item = json_object_array_get_idx(items, i);

		sbx_buf_printf(ret, "%s %s\n", sbx_json_string(item, "change", "?"),
			sbx_json_string(item, "path", "?"));
	}
}

Test(show, layer_lists_what_it_changed)
{
	static const struct {
		const char *id, *changes;
	} cases[] = {
		{"l2", "modify a\nadd d/new\ndelete d/old\n"},
		{"l3", "modify blob\ndelete d\nreplace e\nmetadata run\n"},
	};
	FIXTURE struct fixture f;

	make_store(&f);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
		OUTCOME struct outcome o = {0};
		char args[256];

		(void)snprintf(args, sizeof(args),
			ASK("[\"l1\",\"l2\",\"l3\"]", "\"layer_id\":\"%s\""), cases[i].id);
		o = fixture_run(&f, "layer", args, -EBADF);
		cr_assert_eq(o.r, 0, "%s", o.err.message);
		cr_expect_str_eq(sbx_json_string(o.result, "layer_id", ""), cases[i].id);
		describe_changes(sbx_json_member(o.result, "paths"), &text);
		cr_expect_str_eq(text.data, cases[i].changes);
	}
}

Test(show, log_tells_which_layers_changed_a_path_newest_first)
{
	static const struct {
		const char *path, *log;
	} cases[] = {
		{"a", "2 l2 modify\n1 l1 add\n"},
		{"d/old", "2 l2 delete\n1 l1 add\n"},
		{"d/kept", "3 l3 delete\n1 l1 add\n"},
		{"d/new", "3 l3 delete\n2 l2 add\n"},
		{"d", "3 l3 delete\n2 l2 modify\n1 l1 add\n"},
		{"e", "3 l3 replace\n1 l1 add\n"},
		{"e/x", "3 l3 delete\n1 l1 add\n"},
		{"run", "3 l3 metadata\n1 l1 add\n"},
	};
	FIXTURE struct fixture f;

	make_store(&f);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
		OUTCOME struct outcome o = {0};
		struct json_object *versions;
		char args[256];

		(void)snprintf(args, sizeof(args), ASK("[\"l1\",\"l2\",\"l3\"]", "\"path\":\"%s\""),
			cases[i].path);
		o = fixture_run(&f, "log", args, -EBADF);
		cr_assert_eq(o.r, 0, "%s", o.err.message);
		versions = sbx_json_member(o.result, "versions");
		for (size_t j = 0; j < json_object_array_length(versions); j++) {
			struct json_object *v = json_object_array_get_idx(versions, j);

			sbx_buf_printf(&text, "%lld %s %s\n",
				(long long)sbx_json_int(v, "version", -1),
				sbx_json_string(v, "layer_id", "?"),
				sbx_json_string(v, "change", "?"));
		}
		cr_expect_str_eq(text.data, cases[i].log, "%s", cases[i].path);
	}
}

#define DIFF(base, head, more)                                                                     \
	"{\"root_at\":\"/w\",\"base\":" base ",\"base_version\":1,\"head\":" head                  \
	",\"version\":3,\"args\":{" more "}}"

Test(show, diff_tells_what_changed_between_two_versions)
{
	static const struct {
		const char *args, *changes;
	} cases[] = {
		{DIFF("[\"l1\"]", "[\"l1\",\"l2\"]", ""), "modify a\nadd d/new\ndelete d/old\n"},
		{DIFF("[\"l1\",\"l2\"]", "[\"l1\"]", ""), "modify a\ndelete d/new\nadd d/old\n"},
		{DIFF("[\"l1\"]", "[\"l1\",\"l2\",\"l3\"]", ""),
			"modify a\nmodify blob\ndelete d\ndelete d/kept\ndelete d/old\nreplace e\n"
			"delete e/x\nmetadata run\n"},
		{DIFF("[\"l1\"]", "[\"l1\",\"l2\",\"l3\"]", "\"path\":\"d\""),
			"delete d\ndelete d/kept\ndelete d/old\n"},
		{DIFF("[\"l1\"]", "[\"l1\",\"l2\",\"l3\"]", "\"path\":\"d/old\""),
			"delete d/old\n"},
		{DIFF("[\"l1\"]", "[\"l1\"]", ""), ""},
	};
	FIXTURE struct fixture f;

	make_store(&f);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
		OUTCOME struct outcome o = fixture_run(&f, "diff", cases[i].args, -EBADF);

		cr_assert_eq(o.r, 0, "%s", o.err.message);
		cr_assert_eq(sbx_buf_append_string(&text, ""), 0);
		describe_changes(sbx_json_member(o.result, "files"), &text);
		cr_expect_str_eq(text.data, cases[i].changes, "%s", cases[i].args);
		cr_expect_eq(sbx_json_int(o.result, "from", -1), 1);
		cr_expect_eq(sbx_json_int(o.result, "to", -1), 3);
	}
}

static struct json_object *file_named(struct json_object *result, const char *path)
{
	struct json_object *files = sbx_json_member(result, "files");

	for (size_t i = 0; i < json_object_array_length(files); i++) {
		struct json_object *file = json_object_array_get_idx(files, i);

		if (!strcmp(sbx_json_string(file, "path", ""), path))
			return file;
	}
	cr_assert(false, "no %s", path);
	return NULL;
}

Test(show, diff_shows_the_text_of_a_change_or_says_why_not)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	struct json_object *file;

	make_store(&f);
	o = fixture_run(&f, "diff", DIFF("[\"l1\"]", "[\"l1\",\"l2\",\"l3\"]", ""), -EBADF);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	file = file_named(o.result, "a");
	cr_expect_str_eq(sbx_json_string(file, "diff", ""),
		"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
	cr_expect_str_eq(sbx_json_string(file, "old_kind", ""), "file");
	file = file_named(o.result, "d/old");
	cr_expect_str_eq(sbx_json_string(file, "diff", ""),
		"--- a/d/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n");
	cr_expect_null(sbx_json_member(file, "new_kind"));
	file = file_named(o.result, "blob");
	cr_expect_null(sbx_json_member(file, "diff"));
	cr_expect_str_eq(sbx_json_string(file, "diff_omitted", ""), "binary");
	file = file_named(o.result, "run");
	cr_expect_eq(sbx_json_int(file, "old_mode", 0), 0644);
	cr_expect_eq(sbx_json_int(file, "new_mode", 0), 0755);
	file = file_named(o.result, "e");
	cr_expect_str_eq(sbx_json_string(file, "old_kind", ""), "directory");
	cr_expect_str_eq(sbx_json_string(file, "new_kind", ""), "file");
}
