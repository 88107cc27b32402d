/* SPDX-License-Identifier: MIT */
/* squash, gc, verify, stat, export: on a real sandbox with published operations. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "fixture.h"
#include "sbx/digest.h"
#include "sbx/store.h"

#define OWNER_UID 1234 /* of the sandbox, where it is not root's */

/* A sandbox under f.path/state, and its head.log open as sandboxd has it. */
struct world {
	struct fixture f; /* its context is the sandbox's */
	struct sbx_head_log *log;
	struct sbx_sandbox sandbox;
};

static void world_done(struct world *w)
{
	sbx_head_log_free(w->log);
	sbx_sandbox_done(&w->sandbox);
	sbx_fd_close(&w->f.context.sandbox_fd);
	fixture_done(&w->f);
}
#define WORLD SBX_CLEANUP(world_done)

static int open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s: %m", name);
	return fd;
}

static void open_context(struct fixture *f)
{
	sbx_fd_close(&f->context.sessions_fd);
	sbx_fd_close(&f->context.rejects_fd);
	sbx_fd_close(&f->context.layers_fd);
	sbx_fd_close(&f->context.store_fd);
	f->context.sandbox_fd = open_dir(f->fd, "state/box");
	f->context.store_fd = open_dir(f->context.sandbox_fd, "store");
	f->context.layers_fd = open_dir(f->context.store_fd, "layers");
	f->context.rejects_fd = open_dir(f->context.store_fd, "rejects");
	f->context.sessions_fd = open_dir(f->context.sandbox_fd, "sessions");
}

static void world_init(struct world *w, uid_t owner_uid)
{
	SBX_JSON struct json_object *report = json_object_new_object();
	SBX_CLOSE int source_fd = -EBADF, state_fd = -EBADF;
	struct sbx_err err = SBX_ERR_INIT;
	char state[96];

	if (geteuid() != 0)
		cr_skip_test("needs root: the store has files of all owners");
	fixture_init(&w->f);
	source_fd = fixture_dir(w->f.fd, "source");
	state_fd = fixture_dir(w->f.fd, "state");
	(void)snprintf(state, sizeof(state), "%s/state", w->f.path);
	fixture_write(source_fd, "a", "one\ntwo\n", 8);
	w->sandbox = (struct sbx_sandbox){.id = "box", .owner_uid = owner_uid};
	w->sandbox.root_at = strdup("/w");
	w->sandbox.rootfs = strdup("host");
	w->sandbox.network = strdup("none");
	w->sandbox.source = strdup("/source");
	cr_assert_eq(sbx_sandbox_create(state, &w->sandbox, source_fd, NULL, NULL, report, &err), 0,
		"%s", err.message);
	open_context(&w->f);
	cr_assert_eq(sbx_head_log_open(w->f.context.store_fd, true, &w->log, &err), 0, "%s",
		err.message);
}

/* "head" and "version" as sandboxd gives them, and what more there is. */
static struct outcome ask(struct world *w, const char *job, const char *more)
{
	const struct sbx_head *head = sbx_head_log_head(w->log);
	SBX_BUF struct sbx_buf args = SBX_BUF_INIT;

	sbx_buf_printf(&args, "{\"root_at\":\"/w\",\"version\":%llu,\"head\":[",
		(unsigned long long)head->version);
	for (size_t i = 0; i < head->stack.n; i++)
		sbx_buf_printf(&args, "%s\"%s\"", i ? "," : "", head->stack.ids[i]);
	sbx_buf_printf(&args, "]%s}", more);
	return fixture_run(&w->f, job, args.data, -EBADF);
}

static void commit(struct world *w, const struct sbx_head_change *change)
{
	uint64_t version = sbx_head_log_head(w->log)->version + 1;
	SBX_BUF struct sbx_buf batch = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_head_log_format(w->log, version, change, &batch), 0);
	cr_assert_eq(sbx_head_log_write(sbx_head_log_fd(w->log), batch.data, batch.size, &err), 0);
	cr_assert_eq(sbx_head_log_apply(w->log, version, change), 0);
}

/* Publishes a file_write. */
static void publish(struct world *w, const char *layer_id, const char *path, const char *content)
{
	const struct sbx_head_change change = {.add_layer = layer_id};
	OUTCOME struct outcome o = {0};
	char more[512];

	(void)snprintf(more, sizeof(more),
		",\"layer_id\":\"%s\",\"operation_id\":\"op_%s\",\"args\":{\"path\":\"%s\","
		"\"content\":\"%s\"}",
		layer_id, layer_id, path, content);
	o = ask(w, "file_write", more);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_assert_str_eq(sbx_json_string(o.result, "outcome", ""), "published");
	commit(w, &change);
}

static void expect_sound(struct world *w)
{
	OUTCOME struct outcome o = ask(w, "verify", "");

	cr_expect_eq(
		o.r, 0, "%s %s", o.err.message, o.details ? sbx_json_text(o.details, NULL) : "");
}

static void expect_blame(struct world *w, const char *expected)
{
	OUTCOME struct outcome o = ask(w, "blame", ",\"args\":{\"path\":\"a\"}");

	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(sbx_json_text(sbx_json_member(o.result, "ranges"), NULL), expected);
}

static const char blame_text[] =
	"[{\"start_line\":1,\"line_count\":1,\"owner\":\"original\"},"
	"{\"start_line\":2,\"line_count\":1,\"owner\":\"operation:op_l2\"},"
	"{\"start_line\":3,\"line_count\":1,\"owner\":\"operation:op_l3\"}]";

static void publish_two(struct world *w)
{
	publish(w, "l2", "a", "one\\n2\\n");
	publish(w, "l3", "a", "one\\n2\\nthree\\n");
}

Test(upkeep, a_store_with_published_operations_is_sound)
{
	WORLD struct world w = {0};

	world_init(&w, 0);
	publish_two(&w);
	publish(&w, "l4", "new/deep/b", "b\\n");
	expect_sound(&w);
	expect_blame(&w, blame_text);
}

/* gc beside a session that stands on l3. */
static void collect(struct world *w)
{
	OUTCOME struct outcome o = ask(w, "gc", ",\"keep\":[\"l3\"]");

	cr_assert_eq(o.r, 0, "%s", o.err.message);
}

Test(upkeep, squash_and_gc_change_nothing_that_is_seen)
{
	WORLD struct world w = {0};
	OUTCOME struct outcome squashed = {0}, log = {0};
	SBX_STACK struct sbx_stack run = SBX_STACK_INIT, gone = SBX_STACK_INIT;
	struct sbx_head_change change = {.add_layer = "l9", .remove = &run};

	world_init(&w, 0);
	publish_two(&w);
	cr_assert_eq(sbx_stack_add(&run, "l2"), 0);
	cr_assert_eq(sbx_stack_add(&run, "l3"), 0);
	squashed = ask(&w, "squash", ",\"layer_id\":\"l9\",\"remove\":[\"l2\",\"l3\"]");
	cr_assert_eq(squashed.r, 0, "%s", squashed.err.message);
	cr_expect_str_eq(sbx_json_text(squashed.result, NULL),
		"{\"outcome\":\"published\",\"layer_id\":\"l9\",\"squashed\":2}");
	commit(&w, &change);
	expect_blame(&w, blame_text);
	log = ask(&w, "log", ",\"args\":{\"path\":\"a\"}");
	cr_expect_eq(json_object_array_length(sbx_json_member(log.result, "versions")), 2);
	collect(&w);
	cr_expect_eq(faccessat(w.f.context.layers_fd, "l2", F_OK, 0), 0, "a version's layer");
	cr_assert_eq(sbx_head_log_forget(w.log, w.f.context.store_fd,
			     sbx_head_log_head(w.log)->version, &gone, NULL),
		0);
	collect(&w);
	cr_expect_eq(faccessat(w.f.context.layers_fd, "l2", F_OK, 0), -1);
	cr_expect_eq(faccessat(w.f.context.layers_fd, "l3", F_OK, 0), 0, "a session's pin");
	expect_blame(&w, blame_text);
	expect_sound(&w);
}

Test(upkeep, squash_refuses_layers_that_are_not_in_a_row)
{
	static const char *const runs[] = {
		"[\"l3\",\"l2\"]", "[\"l2\",\"l4\"]", "[\"none\"]", "[]"};
	WORLD struct world w = {0};

	world_init(&w, 0);
	publish_two(&w);
	publish(&w, "l4", "b", "b\\n");
	for (size_t i = 0; i < SBX_N_ELEMENTS(runs); i++) {
		OUTCOME struct outcome o = {0};
		char more[128];

		(void)snprintf(more, sizeof(more), ",\"layer_id\":\"l9\",\"remove\":%s", runs[i]);
		o = ask(&w, "squash", more);
		cr_expect_eq(o.r, -EINVAL, "%s", runs[i]);
		cr_expect_eq(faccessat(w.f.context.layers_fd, "l9", F_OK, 0), -1);
	}
}

Test(upkeep, verify_names_what_is_damaged)
{
	WORLD struct world w = {0};
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int tree_fd = -EBADF;
	struct json_object *damages;

	world_init(&w, 0);
	publish_two(&w);
	tree_fd = fixture_tree(&w.f, "l3");
	fixture_write(tree_fd, "a", "one\n2\nTHREE\n", 12);
	o = ask(&w, "verify", "");
	cr_expect_eq(o.r, -EBADMSG);
	damages = sbx_json_member(o.details, "damages");
	cr_assert_geq(json_object_array_length(damages), 1);
	cr_expect_not_null(strstr(sbx_json_text(damages, NULL), "l3"));
}

Test(upkeep, stat_counts_the_head_and_the_store)
{
	WORLD struct world w = {0};
	OUTCOME struct outcome o = {0};

	world_init(&w, 0);
	publish_two(&w);
	o = ask(&w, "stat", "");
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_eq(sbx_json_int(o.result, "version", -1), 3);
	cr_expect_eq(sbx_json_int(o.result, "head_layers", -1), 3);
	cr_expect_eq(sbx_json_int(o.result, "stored_layers", -1), 3);
	cr_expect_eq(sbx_json_int(o.result, "rejects", -1), 0);
	cr_expect_eq(sbx_json_int(o.result, "head_bytes", -1), 8 + 6 + 12);
	cr_expect_gt(sbx_json_int(o.result, "disk_free_bytes", -1), 0);
}

static struct outcome export(struct world *w, const char *format, const char *name, uid_t uid)
{
	char more[512];

	(void)snprintf(more, sizeof(more),
		",\"uid\":%u,\"args\":{\"dest\":\"%s/%s\",\"format\":\"%s\"}", (unsigned int)uid,
		w->f.path, name, format);
	return ask(w, "export", more);
}

Test(upkeep, export_writes_the_head_as_a_directory)
{
	WORLD struct world w = {0};
	OUTCOME struct outcome o = {0}, again = {0};
	SBX_CLOSE int fd = -EBADF;
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

	world_init(&w, 0);
	publish_two(&w);
	o = export(&w, "dir", "out", 0);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	fd = open_dir(w.f.fd, "out");
	cr_assert_eq(sbx_fs_read_at(fd, "a", 100, &text), 0);
	cr_expect_str_eq(text.data, "one\n2\nthree\n");
	again = export(&w, "dir", "out", 0);
	cr_expect_eq(again.r, -EEXIST);
	cr_expect_eq(again.err.kind, SBX_KIND_INVALID);
}

Test(upkeep, export_writes_a_tar_that_tar_reads)
{
	WORLD struct world w = {0};
	OUTCOME struct outcome o = {0};
	char command[256];
	FILE *pipe;
	char line[64] = "";

	if (access("/bin/tar", X_OK) != 0 && access("/usr/bin/tar", X_OK) != 0)
		cr_skip_test("needs tar");
	world_init(&w, 0);
	publish_two(&w);
	o = export(&w, "tar", "out.tar", 0);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	(void)snprintf(command, sizeof(command),
		"cd %s && tar -xOf out.tar ./a 2>/dev/null || tar -xOf %s/out.tar a", w.f.path,
		w.f.path);
	pipe = popen(command, "re");
	cr_assert_not_null(pipe);
	cr_expect_eq(fread(line, 1, sizeof(line) - 1, pipe), 12);
	cr_expect_str_eq(line, "one\n2\nthree\n");
	cr_expect_eq(pclose(pipe), 0);
}

/* Reads blobs/sha256/<hex> and checks that it is what its name says. */
static void read_blob(int dir_fd, const char *digest, struct sbx_buf *ret)
{
	struct sbx_digest computed;
	char path[128], hex[SBX_DIGEST_HEX_SIZE];

	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", digest + strlen("sha256:"));
	cr_assert_eq(sbx_fs_read_at(dir_fd, path, 1 << 20, ret), 0, "%s", path);
	sbx_digest_bytes(ret->data, ret->size, &computed);
	sbx_digest_hex(&computed, hex);
	cr_expect_str_eq(hex, digest + strlen("sha256:"));
}

static struct json_object *parse(const struct sbx_buf *text)
{
	struct json_object *o = NULL;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_json_parse(text->data, text->size, &o, &err), 0, "%s", err.message);
	return o;
}

static const char *first_digest(struct json_object *o, const char *list)
{
	return sbx_json_string(
		json_object_array_get_idx(sbx_json_member(o, list), 0), "digest", "");
}

Test(upkeep, export_writes_an_image_layout_whose_digests_hold)
{
	WORLD struct world w = {0};
	OUTCOME struct outcome o = {0};
	SBX_CLOSE int fd = -EBADF;
	SBX_BUF struct sbx_buf index = SBX_BUF_INIT, manifest = SBX_BUF_INIT, config = SBX_BUF_INIT,
			       layer = SBX_BUF_INIT;
	SBX_JSON struct json_object *index_json = NULL, *manifest_json = NULL;

	world_init(&w, 0);
	publish_two(&w);
	o = export(&w, "oci", "image", 0);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	fd = open_dir(w.f.fd, "image");
	cr_assert_eq(sbx_fs_read_at(fd, "index.json", 1 << 20, &index), 0);
	index_json = parse(&index);
	read_blob(fd, first_digest(index_json, "manifests"), &manifest);
	manifest_json = parse(&manifest);
	read_blob(fd, first_digest(manifest_json, "layers"), &layer);
	read_blob(fd, sbx_json_string(sbx_json_member(manifest_json, "config"), "digest", ""),
		&config);
	cr_expect_not_null(strstr(config.data, first_digest(manifest_json, "layers")),
		"an uncompressed layer's diff_id is its digest");
	cr_expect_eq(faccessat(fd, "oci-layout", F_OK, 0), 0);
}

/* The worker is root; what it makes for somebody is what that somebody could have made. */
Test(upkeep, export_for_a_user_is_made_with_the_users_rights)
{
	static const char *const formats[] = {"tar", "oci"};
	WORLD struct world w = {0};
	struct stat st;

	world_init(&w, OWNER_UID);
	publish_two(&w);
	cr_assert_eq(fchmod(w.f.fd, 0755), 0);
	cr_assert_eq(mkdirat(w.f.fd, "home", 0755), 0);
	cr_assert_eq(fchownat(w.f.fd, "home", OWNER_UID, 0, 0), 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(formats); i++) {
		OUTCOME struct outcome mine = {0}, roots = {0};
		char name[32];

		(void)snprintf(name, sizeof(name), "home/%s", formats[i]);
		mine = export(&w, formats[i], name, OWNER_UID);
		cr_assert_eq(mine.r, 0, "%s", mine.err.message);
		cr_assert_eq(fstatat(w.f.fd, name, &st, 0), 0);
		cr_expect_eq(st.st_uid, OWNER_UID);
		roots = export(&w, formats[i], formats[i], OWNER_UID);
		cr_expect_eq(roots.r, -EACCES, "%s", roots.err.message);
		cr_expect_eq(roots.err.kind, SBX_KIND_INVALID);
		cr_expect_eq(faccessat(w.f.fd, formats[i], F_OK, 0), -1);
	}
}

Test(upkeep, export_as_a_directory_is_roots)
{
	WORLD struct world w = {0};
	OUTCOME struct outcome o = {0};

	world_init(&w, OWNER_UID);
	o = export(&w, "dir", "out", OWNER_UID);
	cr_expect_eq(o.err.kind, SBX_KIND_INVALID);
	cr_expect_not_null(strstr(o.err.message, "only root"), "%s", o.err.message);
	cr_expect_eq(faccessat(w.f.fd, "out", F_OK, 0), -1);
}

Test(upkeep, export_refuses_places_and_formats_that_cannot_be)
{
	static const struct {
		const char *args, *words;
	} cases[] = {
		{"\"dest\":\"out\"", "absolute path"},
		{"\"dest\":\"\"", "absolute path"},
		{"\"dest\":\"/tmp/\"", "absolute path"},
		{"\"dest\":\"/tmp/..\"", "absolute path"},
		{"\"dest\":\"/none/of/this\"", "cannot write into '/none/of/'"},
		{"\"dest\":\"/tmp/x\",\"format\":\"zip\"", "expected dir, tar or oci"},
	};
	WORLD struct world w = {0};

	world_init(&w, 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(cases); i++) {
		OUTCOME struct outcome o = {0};
		char more[256];

		(void)snprintf(more, sizeof(more), ",\"args\":{%s}", cases[i].args);
		o = ask(&w, "export", more);
		cr_expect_lt(o.r, 0, "%s", cases[i].args);
		cr_expect_eq(o.err.kind, SBX_KIND_INVALID);
		cr_expect_not_null(strstr(o.err.message, cases[i].words), "%s", o.err.message);
	}
}
