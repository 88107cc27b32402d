/* SPDX-License-Identifier: MIT */
/* Verifying, sweeping, and describing layers of a store with two small layers. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "sbx/fs.h"
#include "sbx/owners.h"
#include "sbx/store.h"
#include "scratch.h"

struct store {
	struct scratch scratch;
	int sandbox_fd, store_fd, layers_fd;
};

static void store_done(struct store *store)
{
	sbx_fd_close(&store->layers_fd);
	sbx_fd_close(&store->store_fd);
	sbx_fd_close(&store->sandbox_fd);
	scratch_done(&store->scratch);
}
#define STORE SBX_CLEANUP(store_done)

static void seal(int layer_fd, int tree_fd, const char *id)
{
	char owner[] = "operation:op_x";
	struct sbx_layer_info info = {.owner = owner};
	struct sbx_err err = SBX_ERR_INIT;

	(void)snprintf(info.id, sizeof(info.id), "%s", id);
	cr_assert_eq(
		sbx_layer_digest(tree_fd, info.tree_digest, &info.n_entries, &info.n_bytes, &err),
		0, "%s", err.message);
	cr_assert_eq(sbx_layer_info_save(layer_fd, &info, NULL), 0);
}

static void write_lines(int layer_fd, const char *path, const char *text, uint32_t n_lines)
{
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	struct sbx_run run = {n_lines, 0};
	struct sbx_owner_record record = {
		.path = path, .size = strlen(text), .runs = &run, .n_runs = 1, .n_lines = n_lines};

	sbx_digest_bytes(text, strlen(text), &record.digest);
	cr_assert_eq(sbx_owners_writer_new(&writer), 0);
	cr_assert_eq(sbx_owner_table_new(&table), 0);
	cr_assert_eq(sbx_owners_writer_add(writer, &record), 0);
	cr_assert_eq(sbx_owners_writer_write(writer, table, layer_fd, SBX_LAYER_LINES, NULL), 0);
}

/* Layer id with the file dir/text. */
static void add_layer(struct store *store, const char *id, const char *text, uint32_t n_lines)
{
	SBX_CLOSE int layer = scratch_mkdir(store->layers_fd, id);
	SBX_CLOSE int tree = scratch_mkdir(layer, SBX_LAYER_TREE);
	SBX_CLOSE int dir = scratch_mkdir(tree, "dir");

	scratch_write(dir, "text", text);
	seal(layer, tree, id);
	write_lines(layer, "dir/text", text, n_lines);
}

/* A sandbox of an empty project, with l2 on its base. */
static struct store store_new(void)
{
	struct store store = {scratch_new(), -EBADF, -EBADF, -EBADF};
	SBX_CLOSE int source = scratch_mkdir(store.scratch.fd, "source");
	SBX_JSON struct json_object *report = json_object_new_object();
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox sandbox = {.id = "box"};
	struct sbx_head_change change = {.add_layer = "l2"};
	SBX_BUF struct sbx_buf batch = SBX_BUF_INIT;
	struct sbx_head_log *log = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	char state[96];

	(void)snprintf(state, sizeof(state), "%s/state", store.scratch.path);
	sandbox.root_at = strdup("/workspace");
	sandbox.rootfs = strdup("host");
	sandbox.network = strdup("none");
	cr_assert_eq(sbx_sandbox_create(state, &sandbox, source, NULL, NULL, report, &err), 0, "%s",
		err.message);
	store.sandbox_fd = openat(store.scratch.fd, "state/box", O_RDONLY | O_CLOEXEC);
	store.store_fd = openat(store.sandbox_fd, "store", O_RDONLY | O_CLOEXEC);
	store.layers_fd = openat(store.store_fd, "layers", O_RDONLY | O_CLOEXEC);
	add_layer(&store, "l2", "one\ntwo", 2);
	cr_assert_eq(sbx_head_log_open(store.store_fd, true, &log, NULL), 0);
	cr_assert_eq(sbx_head_log_format(log, 2, &change, &batch), 0);
	cr_assert_eq(sbx_head_log_write(sbx_head_log_fd(log), batch.data, batch.size, NULL), 0);
	sbx_head_log_free(log);
	return store;
}

static void collect(void *data, const char *what)
{
	cr_assert_eq(sbx_buf_printf(data, "%s\n", what), 0);
}

/* Damages: each must be reported with these words. */

static int open_tree(const struct store *store)
{
	return openat(store->layers_fd, "l2/tree", O_RDONLY | O_CLOEXEC);
}

static void break_content(const struct store *store)
{
	SBX_CLOSE int fd = openat(store->layers_fd, "l2/tree/dir/text", O_WRONLY | O_CLOEXEC);

	cr_assert_eq(pwrite(fd, "O", 1, 0), 1);
}

static void break_mode(const struct store *store)
{
	cr_assert_eq(fchmodat(store->layers_fd, "l2/tree/dir", 0700, 0), 0);
}

static void break_extra_file(const struct store *store)
{
	SBX_CLOSE int tree = open_tree(store);

	scratch_write(tree, "extra", "x");
}

static void break_redirect(const struct store *store)
{
	SBX_CLOSE int tree = open_tree(store);

	cr_assert_eq(fsetxattr(tree, "trusted.overlay.redirect", "/x", 2, 0), 0);
}

static void break_opaque(const struct store *store)
{
	SBX_CLOSE int tree = open_tree(store);

	cr_assert_eq(fsetxattr(tree, "trusted.overlay.opaque", "x", 1, 0), 0);
}

static void break_device(const struct store *store)
{
	cr_assert_eq(mknodat(store->layers_fd, "l2/tree/null", S_IFCHR | 0600, makedev(1, 3)), 0);
}

static void break_no_info(const struct store *store)
{
	cr_assert_eq(unlinkat(store->layers_fd, "l2/layer.json", 0), 0);
}

static void flip_byte(const struct store *store, const char *path, off_t at)
{
	SBX_CLOSE int fd = openat(store->sandbox_fd, path, O_RDWR | O_CLOEXEC);
	char c;

	cr_assert_eq(pread(fd, &c, 1, at), 1, "%s", path);
	c ^= 1;
	cr_assert_eq(pwrite(fd, &c, 1, at), 1);
}

static void break_info(const struct store *store)
{
	flip_byte(store, "store/layers/l2/layer.json", 70);
}

static void break_lines(const struct store *store)
{
	flip_byte(store, "store/layers/l2/lines", 100);
}

static void break_line_count(const struct store *store)
{
	SBX_CLOSE int layer = openat(store->layers_fd, "l2", O_RDONLY | O_CLOEXEC);

	write_lines(layer, "dir/text", "one\ntwo", 3);
}

static void break_lines_path(const struct store *store)
{
	SBX_CLOSE int layer = openat(store->layers_fd, "l2", O_RDONLY | O_CLOEXEC);

	write_lines(layer, "dir/gone", "one\ntwo", 2);
}

static void break_sandbox(const struct store *store)
{
	flip_byte(store, "sandbox.json", 60);
}

static void break_head(const struct store *store)
{
	flip_byte(store, "store/head.log", 3);
}

static void break_no_layer(const struct store *store)
{
	cr_assert_eq(sbx_fs_remove_tree(store->layers_fd, "l2"), 0);
}

static void break_reject(const struct store *store)
{
	cr_assert_eq(mkdirat(store->store_fd, "rejects/rej_x", 0700), 0);
}

static const struct {
	const char *label;
	void (*apply)(const struct store *store);
	const char *words[2];
} damages[] = {
	{"content", break_content, {"l2", "not the one that was stored"}},
	{"mode", break_mode, {"l2", "not the one that was stored"}},
	{"a file more", break_extra_file, {"l2", "not the one that was stored"}},
	{"redirect", break_redirect, {"l2", "trusted.overlay.redirect"}},
	{"opaque", break_opaque, {"l2", "trusted.overlay.opaque"}},
	{"device", break_device, {"l2", "\"null\" is a character device"}},
	{"no layer.json", break_no_info, {"l2", "layer.json"}},
	{"layer.json", break_info, {"l2", "layer.json is damaged"}},
	{"lines", break_lines, {"l2", "lines"}},
	{"line count", break_line_count, {"l2", "owners for 3 lines"}},
	{"path in lines", break_lines_path, {"l2", "\"dir/gone\""}},
	{"sandbox.json", break_sandbox, {"sandbox", "sandbox.json is damaged"}},
	{"head.log", break_head, {"store", "head.log is damaged"}},
	{"no layer", break_no_layer, {"l2", "head.log names this layer as number 2"}},
	{"reject", break_reject, {"rej_x", "reject.json"}},
};

Test(verify, names_each_damage_and_nothing_else, .timeout = 60)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: sets trusted attributes, makes devices");
	for (size_t i = 0; i < SBX_N_ELEMENTS(damages); i++) {
		STORE struct store store = store_new();
		SBX_BUF struct sbx_buf found = SBX_BUF_INIT;

		cr_expect_eq(sbx_store_verify(store.sandbox_fd, collect, &found), 0, "before: %s",
			found.data);
		damages[i].apply(&store);
		cr_expect_gt(sbx_store_verify(store.sandbox_fd, collect, &found), 0, "%s",
			damages[i].label);
		for (size_t k = 0; k < 2; k++)
			cr_expect(found.data && strstr(found.data, damages[i].words[k]),
				"%s: \"%s\" is not in: %s", damages[i].label, damages[i].words[k],
				found.data);
	}
}

static bool is_there(int dir_fd, const char *path)
{
	struct stat st;

	return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

Test(sweep, removes_what_nothing_references_and_only_that)
{
	static const struct {
		const char *path;
		bool stays;
	} cases[] = {
		{"layers/l2/layer.json", true},
		{"layers/pinned/layer.json", true},
		{"layers/garbage", false},
		{"layers/half", false},
		{"rejects/rej_whole", true},
		{"rejects/rej_half", false},
		{"rejects/.drop-rej_dropped", false},
		{"head.mark", true},
		{"trash/x", false},
		{"trash", true},
		{".tmp_x", false},
		{"head.log", true},
	};
	STORE struct store store = store_new();
	SBX_STACK struct sbx_stack keep = SBX_STACK_INIT;
	SBX_CLOSE int half = scratch_mkdir(store.layers_fd, "half");
	SBX_CLOSE int trash = scratch_mkdir(store.store_fd, SBX_STORE_TRASH);
	SBX_CLOSE int in_trash = scratch_mkdir(trash, "x");
	SBX_CLOSE int rejects = scratch_mkdir(store.store_fd, "rejects");
	SBX_CLOSE int whole = scratch_mkdir(rejects, "rej_whole");
	SBX_CLOSE int not_whole = scratch_mkdir(rejects, "rej_half");
	SBX_CLOSE int dropped = scratch_mkdir(rejects, ".drop-rej_dropped");
	struct sbx_head_log *log = NULL;
	uint64_t n_removed = 0;

	add_layer(&store, "pinned", "x", 1);
	add_layer(&store, "garbage", "x", 1);
	scratch_write(whole, SBX_REJECT_JSON, "{}");
	scratch_write(dropped, SBX_REJECT_JSON, "{}");
	scratch_write(store.store_fd, ".tmp_x", "x");
	cr_assert_eq(sbx_stack_add(&keep, "pinned"), 0);
	cr_assert_eq(sbx_head_log_open(store.store_fd, true, &log, NULL), 0);
	cr_expect_eq(sbx_store_sweep(store.store_fd, log, &keep, &n_removed, NULL), 0);
	sbx_head_log_free(log);
	cr_expect_eq(n_removed, 6);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++)
		cr_expect_eq(is_there(store.store_fd, cases[i].path), cases[i].stays, "%s",
			cases[i].path);
}

Test(layer_info, comes_back_as_it_was_written)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info loaded = {0};
	SBX_JSON struct json_object *a = json_object_new_object(), *b = json_object_new_object();
	char owner[] = "workspace_session:ws_1", command[] = "echo \"\n\" \xc3\xa9";
	struct sbx_layer_info info = {
		.id = "layer_x",
		.parent_version = UINT64_C(1) << 60,
		.created_ns = 5,
		.owner = owner,
		.command = command,
		.added = 1,
		.modified = 2,
		.deleted = 3,
		.merged = 4,
		.ignored = 5,
		.n_entries = 6,
		.n_bytes = 7,
		.tree_digest = "abc",
	};

	cr_assert_eq(sbx_layer_info_save(scratch.fd, &info, NULL), 0);
	cr_assert_eq(sbx_layer_info_load(scratch.fd, &loaded, NULL), 0);
	sbx_layer_info_to_json(&info, a);
	sbx_layer_info_to_json(&loaded, b);
	cr_expect_str_eq(sbx_json_text(a, NULL), sbx_json_text(b, NULL));
	cr_expect_str_eq(loaded.command, command);
}

Test(layer_info, any_single_damaged_byte_is_noticed)
{
	SCRATCH struct scratch scratch = scratch_new();
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	char owner[] = "original";
	struct sbx_layer_info info = {.id = "layer_x", .owner = owner};

	cr_assert_eq(sbx_layer_info_save(scratch.fd, &info, NULL), 0);
	cr_assert_eq(sbx_fs_read_at(scratch.fd, SBX_LAYER_JSON, 1 << 20, &file), 0);
	for (size_t i = 0; i < file.size; i++) {
		struct sbx_layer_info loaded = {0};
		struct sbx_err err = SBX_ERR_INIT;

		file.data[i] ^= 1;
		cr_assert_eq(
			sbx_fs_write_at(scratch.fd, SBX_LAYER_JSON, 0600, file.data, file.size, 0),
			0);
		cr_expect_eq(
			sbx_layer_info_load(scratch.fd, &loaded, &err), -EBADMSG, "byte %zu", i);
		cr_expect(strstr(err.message, SBX_LAYER_JSON) != NULL, "%s", err.message);
		file.data[i] ^= 1;
	}
}
