/* SPDX-License-Identifier: MIT */
/*
 * Squashing random runs of random stacks: mounted by overlayfs, the stack must look the same
 * before and after, and every line keep its owner.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "sbx/digest.h"
#include "sbx/fs.h"
#include "sbx/owners.h"
#include "sbx/store.h"
#include "scratch.h"
#include "stacks.h"

#define N_SEEDS 16

struct compare {
	struct sbx_view *before, *after;
	char where[256];
	unsigned int n_bad;
};

#define BAD(compare, fmt, ...)                                                                     \
	do {                                                                                       \
		(compare)->n_bad++;                                                                \
		(void)fprintf(stderr, "in \"%s\": " fmt "\n", (compare)->where, __VA_ARGS__);      \
	} while (0)

/* Lines files: every regular file of layer i gets one line of each of two owners. */

static int add_records(struct sbx_owners_writer *writer, int dir_fd, const char *prefix, int i)
{
	for (char name[] = {STACK_FIRST_NAME, 0}; *name <= STACK_LAST_NAME; ++*name) {
		struct sbx_run runs[] = {{1, 1 + (uint32_t)(i % 2)}, {(uint32_t)i + 1, 3}};
		struct sbx_owner_record record = {.runs = runs, .n_runs = 2};
		char path[64];
		struct stat st;
		int r = 0;

		if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", prefix, name);
		record.path = path;
		record.n_lines = (uint32_t)i + 2;
		if (S_ISREG(st.st_mode))
			r = sbx_owners_writer_add(writer, &record);
		if (S_ISDIR(st.st_mode)) {
			SBX_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

			(void)strcat(path, "/"); /* three levels of one character fit */
			r = add_records(writer, fd, path, i);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_lines(int layer_fd, int i)
{
	SBX_OWNERS_WRITER struct sbx_owners_writer *writer = NULL;
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	SBX_CLOSE int tree = openat(layer_fd, SBX_LAYER_TREE, O_RDONLY | O_CLOEXEC);
	uint32_t index;
	char name[32];
	int r = sbx_owners_writer_new(&writer);

	if (r == 0)
		r = sbx_owner_table_new(&table);
	for (int k = 0; k < 3 && r == 0; k++) {
		(void)snprintf(name, sizeof(name), "operation:op_%d", k < 2 ? k : i + 2);
		r = sbx_owner_table_add(table, name, &index);
	}
	if (r == 0)
		r = add_records(writer, tree, "", i);
	return r < 0 ? r : sbx_owners_writer_write(writer, table, layer_fd, SBX_LAYER_LINES, NULL);
}

static int write_info(int layer_fd, const char *id)
{
	char owner[] = "operation:op_x";
	struct sbx_layer_info info = {.owner = owner, .added = 1, .modified = 2};

	(void)snprintf(info.id, sizeof(info.id), "%s", id);
	return sbx_layer_info_save(layer_fd, &info, NULL);
}

/* What a publication writes beside the tree of layer i. */
static int describe_layer(int i)
{
	SBX_CLOSE int fd = -EBADF;
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "layers/l%d", i);
	fd = stack_open_dir(path);
	r = write_info(fd, path + strlen("layers/"));
	return r < 0 ? r : write_lines(fd, i);
}

static int random_layer(int i, uint64_t *state)
{
	int r = stack_session_layer(i, state);

	return r < 0 ? r : describe_layer(i);
}

/* The comparison of two mounted trees */

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid &&
	       (S_ISDIR(a->st_mode) || a->st_size == b->st_size) &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool same_content(int a_dir, int b_dir, const char *name)
{
	SBX_CLOSE int a = openat(a_dir, name, O_RDONLY | O_CLOEXEC);
	SBX_CLOSE int b = openat(b_dir, name, O_RDONLY | O_CLOEXEC);
	struct sbx_digest x, y;

	return a >= 0 && b >= 0 && sbx_digest_fd(a, &x, NULL) == 0 &&
	       sbx_digest_fd(b, &y, NULL) == 0 && sbx_digest_equal(&x, &y);
}

static bool same_target(int a_dir, int b_dir, const char *name)
{
	char a[64] = "", b[64] = "";

	return readlinkat(a_dir, name, a, sizeof(a) - 1) > 0 &&
	       readlinkat(b_dir, name, b, sizeof(b) - 1) > 0 && !strcmp(a, b);
}

static void compare_owners(struct compare *compare, const char *name)
{
	struct sbx_owner_record a, b;
	const struct sbx_owners *a_from, *b_from;
	char path[300];
	int r;

	(void)snprintf(path, sizeof(path), "%s%s", compare->where, name);
	r = sbx_owners_lookup(compare->before, path, &a, &a_from, NULL);
	if (r != sbx_owners_lookup(compare->after, path, &b, &b_from, NULL) || r < 0 ||
		a.n_runs != b.n_runs) {
		BAD(compare, "owners of %s: %d", name, r);
		return;
	}
	for (uint32_t i = 0; i < a.n_runs; i++)
		if (a.runs[i].count != b.runs[i].count ||
			strcmp(sbx_owners_name(a_from, a.runs[i].owner),
				sbx_owners_name(b_from, b.runs[i].owner)) != 0)
			BAD(compare, "owners of %s differ in run %u", name, i);
}

static void compare_dirs(struct compare *compare, int a_dir, int b_dir);

static void compare_subdirs(struct compare *compare, int a_dir, int b_dir, const char *name)
{
	SBX_CLOSE int a = openat(a_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SBX_CLOSE int b = openat(b_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t size = strlen(compare->where);

	(void)snprintf(compare->where + size, sizeof(compare->where) - size, "%s/", name);
	compare_dirs(compare, a, b);
	compare->where[size] = '\0';
}

static void compare_entry(struct compare *compare, int a_dir, int b_dir, const char *name)
{
	struct stat a, b;
	bool in_a = fstatat(a_dir, name, &a, AT_SYMLINK_NOFOLLOW) == 0;
	bool in_b = fstatat(b_dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0;

	if (in_a != in_b || (in_a && !same_stat(&a, &b))) {
		BAD(compare, "%s differs: %s before, %s after", name, in_a ? "there" : "absent",
			in_b ? "there" : "absent");
		return;
	}
	if (!in_a)
		return;
	if (S_ISREG(a.st_mode)) {
		if (!same_content(a_dir, b_dir, name))
			BAD(compare, "%s has other content", name);
		compare_owners(compare, name);
	}
	if (S_ISLNK(a.st_mode) && !same_target(a_dir, b_dir, name))
		BAD(compare, "%s has another target", name);
	if (S_ISDIR(a.st_mode))
		compare_subdirs(compare, a_dir, b_dir, name);
}

/* A whiteout that hides nothing shows up as a name that is listed and not there. */
static void find_stray_names(struct compare *compare, int dir_fd)
{
	DIR *dirp = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct stat st;

	for (struct dirent *entry; dirp && (entry = readdir(dirp));)
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			BAD(compare, "%s is listed and not there", entry->d_name);
	if (dirp)
		(void)closedir(dirp); /* only read from */
}

static void compare_dirs(struct compare *compare, int a_dir, int b_dir)
{
	for (char name[] = {STACK_FIRST_NAME, 0}; *name <= STACK_LAST_NAME; ++*name)
		compare_entry(compare, a_dir, b_dir, name);
	find_stray_names(compare, b_dir);
}

static int compare_mounted(
	struct compare *compare, const struct sbx_stack *before, const struct sbx_stack *after)
{
	SBX_CLOSE int a = -EBADF, b = -EBADF;
	struct stat a_st, b_st;
	int r = stack_mount(before, "merged", "");

	if (r == 0)
		r = stack_mount(after, "other", "");
	if (r < 0)
		return r;
	a = stack_open_dir("merged");
	b = stack_open_dir("other");
	if (fstat(a, &a_st) < 0 || fstat(b, &b_st) < 0 || !same_stat(&a_st, &b_st))
		BAD(compare, "%s", "the root differs");
	compare_dirs(compare, a, b);
	sbx_fd_close(&a);
	sbx_fd_close(&b);
	return umount("other") < 0 || umount("merged") < 0 ? -errno : 0;
}

/* Cuts [first, end) out of a stack. */
static void cut(const struct sbx_stack *from, size_t first, size_t end, struct sbx_stack *ret)
{
	for (size_t i = first; i < end; i++)
		if (sbx_stack_add(ret, from->ids[i]) < 0)
			abort();
}

/* Squashes the layers [first, end) of the first n_layers. */
static int squash_and_compare(int n_layers, size_t first, size_t end)
{
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT, below = SBX_STACK_INIT,
				   run = SBX_STACK_INIT, after = SBX_STACK_INIT;
	SBX_VIEW struct sbx_view *view_before = NULL, *view_after = NULL;
	SBX_CLOSE int layers = stack_open_dir("layers");
	struct sbx_err err = SBX_ERR_INIT;
	struct compare compare = {0};
	char owner[] = "operation:op_squash";
	struct sbx_layer_info info = {.id = "squashed", .owner = owner};
	int r;

	stack_ids(n_layers, &stack);
	cut(&stack, 0, first, &below);
	cut(&stack, first, end, &run);
	cut(&stack, 0, first, &after);
	if (sbx_stack_add(&after, info.id) < 0)
		abort();
	cut(&stack, end, stack.n, &after);
	r = sbx_store_squash(layers, &below, &run, &info, &err);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", err.message);
	if (r == 0 && info.modified != 2 * run.n)
		BAD(&compare, "%d modified", (int)info.modified);
	if (r == 0)
		r = sbx_view_open(layers, &stack, &view_before, NULL);
	if (r == 0)
		r = sbx_view_open(layers, &after, &view_after, NULL);
	compare.before = view_before;
	compare.after = view_after;
	if (r == 0)
		r = compare_mounted(&compare, &stack, &after);
	if (r == 0)
		r = sbx_fs_remove_tree(layers, info.id);
	if (r == 0 && compare.n_bad)
		(void)fprintf(stderr, "layers %zu to %zu of %d\n", first, end - 1, n_layers);
	return r == 0 && compare.n_bad ? -EBADMSG : r;
}

static int squash_random_run(int n_layers, uint64_t *state)
{
	size_t first = stack_pick(state, (unsigned int)n_layers);
	size_t end = first + 1 + stack_pick(state, (unsigned int)(n_layers - (int)first));

	return squash_and_compare(n_layers, first, end);
}

Test(squash, shows_the_same_and_blames_the_same, .timeout = 120)
{
	stack_run(&(struct stack_plan){random_layer, squash_random_run}, N_SEEDS);
}

/* A file deleted in a directory that the run made anew in the place of an older one. */

static void make_abc(int root_fd, uint64_t *state SBX_UNUSED)
{
	(void)sbx_fs_remove_tree(root_fd, "a"); /* what is missing shows in the comparison */
	(void)mkdirat(root_fd, "a", 0755);
	(void)mkdirat(root_fd, "a/b", 0755);
	(void)mknodat(root_fd, "a/b/c", S_IFREG | 0644, 0);
}

static void delete_abc(int root_fd, uint64_t *state SBX_UNUSED)
{
	(void)unlinkat(root_fd, "a/b/c", 0); /* likewise */
}

static int abc_layer(int i, uint64_t *state)
{
	int r = stack_session(i, i % 3 == 2 ? delete_abc : make_abc, state);

	return r < 0 ? r : describe_layer(i);
}

static int squash_newest_two(int n_layers, uint64_t *state SBX_UNUSED)
{
	return n_layers < 2 ? 0
			    : squash_and_compare(n_layers, (size_t)n_layers - 2, (size_t)n_layers);
}

Test(squash, leaves_no_whiteout_that_hides_nothing)
{
	stack_run(&(struct stack_plan){abc_layer, squash_newest_two}, 1);
}

/* A chain of directories "d" with a file in each. */
static void make_chain(int layers_fd, const char *id, int n_levels)
{
	SBX_CLOSE int layer_fd = -EBADF;
	int fd = -EBADF, next;

	cr_assert_eq(sbx_fs_ensure_dir(layers_fd, id, 0700, &layer_fd), 0);
	cr_assert_eq(write_info(layer_fd, id), 0);
	cr_assert_eq(sbx_fs_ensure_dir(layer_fd, SBX_LAYER_TREE, 0755, &fd), 0);
	for (int i = 0; i < n_levels; i++) {
		char name[] = "file_of_x";

		name[sizeof(name) - 2] = *id;
		cr_assert_eq(mknodat(fd, name, S_IFREG | 0644, 0), 0);
		cr_assert_eq(sbx_fs_ensure_dir(fd, "d", 0755, &next), 0);
		sbx_fd_close(&fd);
		fd = next;
	}
	sbx_fd_close(&fd);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* cannot fail for this clock */
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Squashes chains of different depths, each with directories that the deeper ones lack. */
static double squash_chains(int n_levels)
{
	static const char *const ids[] = {"a", "b", "c"};
	SCRATCH struct scratch scratch = scratch_new();
	SBX_STACK struct sbx_stack run = SBX_STACK_INIT, none = SBX_STACK_INIT;
	char owner[] = "operation:op_squash";
	struct sbx_layer_info info = {.id = "squashed", .owner = owner};
	struct sbx_err err = SBX_ERR_INIT;
	uint64_t expect = 0;
	double begin;

	for (int i = 0; i < (int)SBX_N_ELEMENTS(ids); i++) {
		int depth = n_levels * (i + 1) / (int)SBX_N_ELEMENTS(ids);

		make_chain(scratch.fd, ids[i], depth);
		cr_assert_eq(sbx_stack_add(&run, ids[i]), 0);
		expect += (uint64_t)depth; /* files */
	}
	begin = cpu_seconds();
	cr_assert_eq(sbx_store_squash(scratch.fd, &none, &run, &info, &err), 0, "%s", err.message);
	cr_expect_eq(info.n_entries, expect + (uint64_t)n_levels);
	return cpu_seconds() - begin;
}

/* Paths grow with the depth, and they are digested; but no directory is walked to from the top. */
Test(squash, of_a_deep_tree_does_not_take_the_square_of_the_depth, .timeout = 120)
{
	double low = squash_chains(500), high = squash_chains(2000);

	cr_expect_lt(high, 10 * low + 0.2, "%.2f s, then %.2f s for 4 times the depth", low, high);
}
