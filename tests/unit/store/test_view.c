/* SPDX-License-Identifier: MIT */
/*
 * The view against the kernel's own overlayfs: random stacks, made by real overlay sessions or by
 * strewing marks by hand, must look the same through both.
 */
#include "sbx/view.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "sbx/digest.h"
#include "sbx/fs.h"
#include "scratch.h"

#define N_SEEDS  24
#define N_LAYERS 6
#define N_EDITS  25

/* Sebastiano Vigna's splitmix64: the same sequence everywhere for a seed. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static unsigned int pick(uint64_t *state, unsigned int n)
{
	return (unsigned int)(next_random(state) % n);
}

/* A path of one to three components out of few names, so that they meet often. */
static void random_path(uint64_t *state, char ret[static 16])
{
	unsigned int depth = 1 + pick(state, 3);

	*ret = '\0';
	for (unsigned int i = 0; i < depth; i++)
		(void)snprintf(ret + strlen(ret), 16 - strlen(ret), "%s%c", i ? "/" : "",
			'a' + (int)pick(state, 4));
}

/* Edits: whatever the tree does not allow just fails. */

static void edit_file(int root, const char *path, uint64_t *state)
{
	SBX_CLOSE int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK,
		0600 + (mode_t)pick(state, 0100));

	if (fd >= 0)
		(void)!dprintf(fd, "%s %u\n", path, pick(state, 1000));
}

static void edit_mkdir(int root, const char *path, uint64_t *state)
{
	(void)mkdirat(root, path, 0700 + (mode_t)pick(state, 0100));
}

static void edit_remove(int root, const char *path, uint64_t *state SBX_UNUSED)
{
	(void)sbx_fs_remove_tree(root, path);
}

/* A directory deleted and made again: overlayfs marks it opaque. */
static void edit_remake(int root, const char *path, uint64_t *state)
{
	edit_remove(root, path, state);
	edit_mkdir(root, path, state);
}

static void edit_symlink(int root, const char *path, uint64_t *state)
{
	static const char *const targets[] = {"a", "b/c", "no/where", "/no/where"};

	(void)symlinkat(targets[pick(state, 4)], root, path);
}

static void edit_fifo(int root, const char *path, uint64_t *state SBX_UNUSED)
{
	(void)mkfifoat(root, path, 0640);
}

static void edit_chmod(int root, const char *path, uint64_t *state)
{
	(void)fchmodat(root, path, 0700 + (mode_t)pick(state, 0100), 0);
}

static void edit_rename(int root, const char *path, uint64_t *state)
{
	char to[16];

	random_path(state, to);
	(void)renameat(root, path, root, to);
}

static void edit_link(int root, const char *path, uint64_t *state)
{
	char to[16];

	random_path(state, to);
	(void)linkat(root, path, root, to, 0);
}

/* Marks: only on a layer's tree itself. */

static void edit_whiteout(int root, const char *path, uint64_t *state SBX_UNUSED)
{
	(void)mknodat(root, path, S_IFCHR, makedev(0, 0));
}

static void edit_opaque(int root, const char *path, uint64_t *state)
{
	static const char *const values[] = {"y", "y", "y", "x", "n", "yes"};
	const char *value = values[pick(state, 6)];
	SBX_CLOSE int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		(void)fsetxattr(fd, "trusted.overlay.opaque", value, strlen(value), 0);
}

typedef void (*edit_fn)(int root, const char *path, uint64_t *state);

static const edit_fn session_edits[] = {edit_file, edit_file, edit_file, edit_mkdir, edit_mkdir,
	edit_remove, edit_remake, edit_symlink, edit_fifo, edit_chmod, edit_rename, edit_link};
static const edit_fn mark_edits[] = {edit_file, edit_file, edit_mkdir, edit_mkdir, edit_mkdir,
	edit_whiteout, edit_whiteout, edit_opaque, edit_symlink, edit_chmod};

static void run_edits(int root, const edit_fn *edits, size_t n_edits, uint64_t *state)
{
	for (int i = 0; i < N_EDITS; i++) {
		char path[16];

		random_path(state, path);
		edits[pick(state, (unsigned int)n_edits)](root, path, state);
	}
}

/* The comparison: in a child, so failures are printed and counted. */

struct compare {
	struct sbx_view *view;
	char where[256]; /* path of the directory being compared */
	unsigned int n_bad;
};

#define BAD(compare, fmt, ...)                                                                     \
	do {                                                                                       \
		(compare)->n_bad++;                                                                \
		(void)fprintf(stderr, "in \"%s\": " fmt "\n", (compare)->where, __VA_ARGS__);      \
	} while (0)

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid &&
	       (S_ISDIR(a->st_mode) || a->st_size == b->st_size) &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void compare_content(
	struct compare *compare, struct sbx_view_dir *dir, int mount_fd, const char *name)
{
	SBX_CLOSE int ours = sbx_view_dir_openat(dir, name, O_RDONLY);
	SBX_CLOSE int theirs = openat(mount_fd, name, O_RDONLY | O_CLOEXEC);
	struct sbx_digest a, b;

	if (ours < 0 || theirs < 0 || sbx_digest_fd(ours, &a, NULL) < 0 ||
		sbx_digest_fd(theirs, &b, NULL) < 0 || !sbx_digest_equal(&a, &b))
		BAD(compare, "%s differs", name);
}

static void compare_target(
	struct compare *compare, struct sbx_view_dir *dir, int mount_fd, const char *name)
{
	char ours[64] = "", theirs[64] = "";
	int fd = -EBADF;

	if (sbx_view_dir_fd_of(dir, name, &fd) < 0 ||
		readlinkat(fd, name, ours, sizeof(ours) - 1) < 0 ||
		readlinkat(mount_fd, name, theirs, sizeof(theirs) - 1) < 0 ||
		strcmp(ours, theirs) != 0)
		BAD(compare, "link %s: \"%s\", not \"%s\"", name, ours, theirs);
}

static void compare_dir(struct compare *compare, struct sbx_view_dir *dir, int mount_fd);

static void compare_subdir(
	struct compare *compare, struct sbx_view_dir *dir, int mount_fd, const char *name)
{
	SBX_CLOSE int fd = openat(mount_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	SBX_VIEW_DIR struct sbx_view_dir *sub = NULL;
	size_t size = strlen(compare->where);

	if (fd < 0 || sbx_view_dir_enter(dir, name, &sub) < 0) {
		BAD(compare, "cannot enter %s", name);
		return;
	}
	(void)snprintf(compare->where + size, sizeof(compare->where) - size, "/%s", name);
	compare_dir(compare, sub, fd);
	compare->where[size] = '\0';
}

/* The same node by its path from the root. */
static void compare_by_path(struct compare *compare, const char *name, const struct stat *expect)
{
	struct sbx_node node;
	char path[300];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", compare->where, name);
	r = sbx_view_lookup(compare->view, path, &node);
	if (r < 0 || !same_stat(&node.st, expect))
		BAD(compare, "lookup of %s by path: %d", name, r);
}

static void compare_entry(
	struct compare *compare, struct sbx_view_dir *dir, int mount_fd, const char *name)
{
	struct sbx_node node;
	struct stat st;
	int r = sbx_view_dir_lookup(dir, name, &node);

	if (fstatat(mount_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (r != -ENOENT)
			BAD(compare, "%s is shown (%d), but is not there", name, r);
		return;
	}
	if (r < 0 || !same_stat(&st, &node.st)) {
		BAD(compare, "%s: %d, mode %o, not %o", name, r, node.st.st_mode, st.st_mode);
		return;
	}
	compare_by_path(compare, name, &st);
	if (S_ISREG(st.st_mode))
		compare_content(compare, dir, mount_fd, name);
	else if (S_ISLNK(st.st_mode))
		compare_target(compare, dir, mount_fd, name);
	else if (S_ISDIR(st.st_mode))
		compare_subdir(compare, dir, mount_fd, name);
}

static bool is_listed(char **names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

/* Every name that can occur is tried; those that are there must be listed and no others. */
static void compare_dir(struct compare *compare, struct sbx_view_dir *dir, int mount_fd)
{
	SBX_NAMES char **names = NULL;
	size_t n = 0, n_there = 0;

	if (sbx_view_dir_list(dir, &names, &n) < 0) {
		BAD(compare, "cannot %s", "list");
		return;
	}
	for (size_t i = 1; i < n; i++)
		if (strcmp(names[i - 1], names[i]) >= 0)
			BAD(compare, "%s is listed out of order", names[i]);
	for (char name[] = "a"; *name <= 'd'; ++*name) {
		struct stat st;
		bool there = fstatat(mount_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

		n_there += there;
		if (there != is_listed(names, name))
			BAD(compare, "%s is %slisted", name, there ? "not " : "");
		compare_entry(compare, dir, mount_fd, name);
	}
	if (n != n_there)
		BAD(compare, "%zu names, not %zu", n, n_there);
}

/* Mounts; the current directory is the scratch, which keeps the option string short. */

static void layer_id(int i, char ret[static 16])
{
	(void)snprintf(ret, 16, "l%d", i);
}

static int mount_overlay(int n_layers, const char *more)
{
	char options[1024] = "redirect_dir=off,metacopy=off,index=off,lowerdir=";

	for (int i = n_layers - 1; i >= 0; i--)
		(void)snprintf(options + strlen(options), sizeof(options) - strlen(options),
			"layers/l%d/tree:", i);
	(void)snprintf(
		options + strlen(options), sizeof(options) - strlen(options), "empty%s", more);
	return mount("overlay", "merged", "overlay", 0, options) < 0 ? -errno : 0;
}

static int make_layer(int i, char path[static 32])
{
	char id[16];

	layer_id(i, id);
	(void)snprintf(path, 32, "layers/%s", id);
	if (mkdir(path, 0755) < 0)
		return -errno;
	(void)snprintf(path, 32, "layers/%s/tree", id);
	return mkdir(path, 0755) < 0 ? -errno : 0;
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Layer i is what a session on the layers before leaves in its upper directory. */
static int session_layer(int i, uint64_t *state)
{
	SBX_CLOSE int root = -EBADF;
	char path[32], more[96];
	int r = make_layer(i, path);

	(void)snprintf(more, sizeof(more), ",upperdir=%s,workdir=work", path);
	if (r == 0)
		r = sbx_fs_remove_tree(AT_FDCWD, "work");
	if (r == 0 && mkdir("work", 0700) < 0)
		r = -errno;
	if (r == 0)
		r = mount_overlay(i, more);
	if (r < 0)
		return r;
	root = open_dir("merged");
	run_edits(root, session_edits, SBX_N_ELEMENTS(session_edits), state);
	sbx_fd_close(&root);
	return umount("merged") < 0 ? -errno : 0;
}

static int marks_layer(int i, uint64_t *state)
{
	SBX_CLOSE int root = -EBADF;
	char path[32];
	int r = make_layer(i, path);

	if (r < 0)
		return r;
	root = open_dir(path);
	run_edits(root, mark_edits, SBX_N_ELEMENTS(mark_edits), state);
	return 0;
}

static int compare_stack(int n_layers)
{
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;
	SBX_CLOSE int layers = open_dir("layers"), root = -EBADF;
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	SBX_VIEW struct sbx_view *view = NULL;
	struct compare compare = {0};
	int r;

	for (int i = 0; i < n_layers; i++) {
		char id[16];

		layer_id(i, id);
		r = sbx_stack_add(&stack, id);
		if (r < 0)
			return r;
	}
	r = sbx_view_open(layers, &stack, &view, NULL);
	if (r == 0)
		r = sbx_view_dir_open(view, "", &dir);
	if (r == 0)
		r = mount_overlay(n_layers, "");
	if (r < 0)
		return r;
	root = open_dir("merged");
	compare.view = view;
	compare_dir(&compare, dir, root);
	sbx_fd_close(&root);
	if (umount("merged") < 0)
		return -errno;
	return compare.n_bad ? -EBADMSG : 0;
}

struct plan {
	const char *scratch;
	uint64_t seed;
	int (*layer)(int i, uint64_t *state);
};

/* 0, or -errno when the kernel does not let us. */
static int enter_namespace(const char *scratch)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		chdir(scratch) < 0 || mkdir("layers", 0755) < 0 || mkdir("merged", 0755) < 0 ||
		mkdir("empty", 0755) < 0)
		return -errno;
	return 0;
}

static int run_plan(const struct plan *plan)
{
	uint64_t state = plan->seed;
	int r = enter_namespace(plan->scratch);

	for (int i = 0; i < N_LAYERS && r == 0; i++) {
		r = plan->layer(i, &state);
		if (r == 0)
			r = compare_stack(i + 1);
	}
	return r;
}

/* Exit status of the plan as a child: the errno, so that 0 is success. */
static int in_child(const struct plan *plan)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(-run_plan(plan));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "the child was killed");
	return WEXITSTATUS(status);
}

static void run_seeds(int (*layer)(int i, uint64_t *state))
{
	if (geteuid() != 0)
		cr_skip_test("needs root: mounts overlayfs in a mount namespace");
	for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
		SCRATCH struct scratch scratch = scratch_new();
		struct plan plan = {scratch.path, seed, layer};
		int error = in_child(&plan);

		if (error == EPERM)
			cr_skip_test("needs CAP_SYS_ADMIN: mounts overlayfs in a mount namespace");
		cr_expect_eq(error, 0, "seed %d: %s", (int)seed, strerror(error));
	}
}

Test(view, shows_what_overlayfs_shows_of_layers_that_sessions_made, .timeout = 120)
{
	run_seeds(session_layer);
}

Test(view, shows_what_overlayfs_shows_of_marks_in_any_place, .timeout = 120)
{
	run_seeds(marks_layer);
}
