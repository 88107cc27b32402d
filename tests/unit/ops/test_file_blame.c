/* SPDX-License-Identifier: MIT */
/* file_blame: the newest record's owners as ranges, and what has none. */
#include "fixture.h"
#include "sbx/owners.h"
#include "sbx/store.h"

#define ARGS(path) "{\"root_at\":\"/w\",\"head\":[\"l1\",\"l2\"],\"args\":{\"path\":\"" path "\"}}"
#define OWNERS_MAX 4

struct record {
	const char *path;
	const char *content;
	bool whole;
	const char *owners[OWNERS_MAX];
	uint32_t counts[OWNERS_MAX];
};

static void add_record(struct sbx_owners_writer *writer, struct sbx_owner_table *table,
	const struct record *record)
{
	struct sbx_run runs[OWNERS_MAX];
	struct sbx_owner_record r = {
		.path = record->path,
		.size = strlen(record->content),
		.whole = record->whole,
		.runs = runs,
	};

	sbx_digest_bytes(record->content, r.size, &r.digest);
	while (r.n_runs < OWNERS_MAX && record->owners[r.n_runs]) {
		struct sbx_run *run = &runs[r.n_runs];

		run->count = record->counts[r.n_runs];
		cr_assert_eq(sbx_owner_table_add(table, record->owners[r.n_runs], &run->owner), 0);
		r.n_lines += run->count;
		r.n_runs++;
	}
	cr_assert_eq(sbx_owners_writer_add(writer, &r), 0, "%s", record->path);
}

/* Writes the files and a lines file that tells their owners. */
static void make_layer(
	struct fixture *f, const char *layer_id, const struct record *records, size_t n)
{
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	SBX_CLOSE int layer_fd = -EBADF;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_owners_writer_new(&writer), 0);
	cr_assert_eq(sbx_owner_table_new(&table), 0);
	for (size_t i = 0; i < n; i++) {
		fixture_file(f, layer_id, records[i].path, records[i].content);
		add_record(writer, table, &records[i]);
	}
	layer_fd = fixture_dir(f->context.layers_fd, layer_id);
	cr_assert_eq(sbx_owners_writer_write(writer, table, layer_fd, SBX_LAYER_LINES, &err), 0,
		"%s", err.message);
}

static const struct record lower[] = {
	{"f", "1\n2\n", false, {"operation:old"}, {2}},
	{"kept", "1\n2\n3\n", false, {"original", "workspace_session:ws_a", "original"}, {1, 1, 1}},
};

static const struct record upper[] = {
	{"binary", "a\nb", true, {"workspace_session:ws_b"}, {2}},
	{"empty", "", false, {NULL}, {0}},
	{"f", "1\n2\n3\n4\n", false, {"operation:old", "operation:new"}, {3, 1}},
};

static void make_store(struct fixture *f)
{
	fixture_init(f);
	make_layer(f, "l1", lower, SBX_N_ELEMENTS(lower));
	make_layer(f, "l2", upper, SBX_N_ELEMENTS(upper));
	fixture_file(f, "l1", "untouched", "u\n");
}

Test(file_blame, tiles_the_file_with_the_newest_owners)
{
	static const struct {
		const char *args;
		const char *answer;
	} cases[] = {
		{ARGS("f"), "{\"path\":\"f\",\"ranges\":["
			    "{\"start_line\":1,\"line_count\":3,\"owner\":\"operation:old\"},"
			    "{\"start_line\":4,\"line_count\":1,\"owner\":\"operation:new\"}]}"},
		{ARGS("./kept"),
			"{\"path\":\"kept\",\"ranges\":["
			"{\"start_line\":1,\"line_count\":1,\"owner\":\"original\"},"
			"{\"start_line\":2,\"line_count\":1,\"owner\":\"workspace_session:ws_a\"},"
			"{\"start_line\":3,\"line_count\":1,\"owner\":\"original\"}]}"},
		{ARGS("/w/binary"), "{\"path\":\"binary\",\"ranges\":["
				    "{\"start_line\":1,\"line_count\":2,\"owner\":\"workspace_"
				    "session:ws_b\"}]}"},
		{ARGS("empty"), "{\"path\":\"empty\",\"ranges\":[]}"},
	};
	FIXTURE struct fixture f;

	make_store(&f);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		OUTCOME struct outcome o = fixture_run(&f, "file_blame", cases[i].args, -EBADF);

		cr_assert_eq(o.r, 0, "%s: %s", cases[i].args, o.err.message);
		cr_expect_str_eq(sbx_json_text(o.result, NULL), cases[i].answer);
	}
}

Test(file_blame, finds_nothing_where_no_line_has_an_owner)
{
	static const struct {
		const char *args;
		const char *words;
	} cases[] = {
		{ARGS("untouched"), "'untouched' has no owners yet"},
		{ARGS("none"), "no file 'none'"},
		{ARGS("dir"), "'dir' is a directory"},
		{ARGS("/w"), "'.' is a directory"},
		{ARGS("fifo"), "'fifo' is a FIFO, not a regular file"},
		{ARGS("link"), "'link' is a symbolic link to 'f'"},
		{ARGS("../f"), "'..'"},
		{ARGS("/etc/passwd"), "outside the workspace"},
		{ARGS(""), "is empty"},
	};
	FIXTURE struct fixture f;
	SBX_CLOSE int tree_fd = -EBADF;

	make_store(&f);
	tree_fd = fixture_tree(&f, "l1");
	cr_assert_eq(mkdirat(tree_fd, "dir", 0755), 0);
	cr_assert_eq(mkfifoat(tree_fd, "fifo", 0644), 0);
	cr_assert_eq(symlinkat("f", tree_fd, "link"), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		OUTCOME struct outcome o = fixture_run(&f, "file_blame", cases[i].args, -EBADF);

		cr_assert_lt(o.r, 0, "%s", cases[i].args);
		cr_expect_eq(o.err.kind, SBX_KIND_NOT_FOUND, "%s", cases[i].args);
		cr_expect_not_null(strstr(o.err.message, cases[i].words), "%s", o.err.message);
		cr_expect_not_null(sbx_json_member(o.details, "path"));
	}
}

Test(file_blame, a_record_of_other_content_is_named_not_shown)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};

	make_store(&f);
	fixture_file(&f, "l2", "f", "1\n2\n3\n4\n5\n");
	o = fixture_run(&f, "file_blame", ARGS("f"), -EBADF);
	cr_expect_eq(o.r, -EBADMSG);
	cr_expect_eq(o.err.kind, SBX_KIND_INTERNAL);
	cr_expect_not_null(strstr(o.err.message, "'f' describes 8 bytes, but the file has 10"),
		"%s", o.err.message);
}

Test(file_blame, a_damaged_lines_file_is_named)
{
	FIXTURE struct fixture f;
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int layer_fd = -EBADF;

	make_store(&f);
	layer_fd = fixture_dir(f.context.layers_fd, "l2");
	fixture_write(layer_fd, SBX_LAYER_LINES, "not a lines file", 16);
	o = fixture_run(&f, "file_blame", ARGS("f"), -EBADF);
	cr_expect_lt(o.r, 0);
	cr_expect_eq(o.err.kind, SBX_KIND_INTERNAL);
	cr_expect_not_null(strstr(o.err.message, "l2"), "%s", o.err.message);
}
