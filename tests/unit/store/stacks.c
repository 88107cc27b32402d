/* SPDX-License-Identifier: MIT */
#include "stacks.h"

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
#include "scratch.h"

#define N_EDITS 25

/* Sebastiano Vigna's splitmix64: the same sequence everywhere for a seed. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

unsigned int stack_pick(uint64_t *state, unsigned int n)
{
	return (unsigned int)(next_random(state) % n);
}

/* A path of one to three components out of few names, so that they meet often. */
static void random_path(uint64_t *state, char ret[static 16])
{
	unsigned int depth = 1 + stack_pick(state, 3);

	*ret = '\0';
	for (unsigned int i = 0; i < depth; i++)
		(void)snprintf(ret + strlen(ret), 16 - strlen(ret), "%s%c", i ? "/" : "",
			'a' + (int)stack_pick(state, 4));
}

/* Edits: whatever the tree does not allow just fails. */

static void edit_file(int root, const char *path, uint64_t *state)
{
	SBX_CLOSE int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK,
		0600 + (mode_t)stack_pick(state, 0100));

	if (fd >= 0)
		(void)!dprintf(fd, "%s %u\n", path, stack_pick(state, 1000));
}

static void edit_mkdir(int root, const char *path, uint64_t *state)
{
	(void)mkdirat(root, path, 0700 + (mode_t)stack_pick(state, 0100));
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

	(void)symlinkat(targets[stack_pick(state, 4)], root, path);
}

static void edit_fifo(int root, const char *path, uint64_t *state SBX_UNUSED)
{
	(void)mkfifoat(root, path, 0640);
}

static void edit_chmod(int root, const char *path, uint64_t *state)
{
	(void)fchmodat(root, path, 0700 + (mode_t)stack_pick(state, 0100), 0);
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
	const char *value = values[stack_pick(state, 6)];
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
		edits[stack_pick(state, (unsigned int)n_edits)](root, path, state);
	}
}

static void layer_path(int i, const char *more, char ret[static 32])
{
	(void)snprintf(ret, 32, "layers/l%d%s", i, more);
}

int stack_open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void stack_ids(int n_layers, struct sbx_stack *ret)
{
	for (int i = 0; i < n_layers; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "l%d", i);
		if (sbx_stack_add(ret, id) < 0)
			abort();
	}
}

int stack_mount(const struct sbx_stack *stack, const char *at, const char *more)
{
	char options[1024] = "redirect_dir=off,metacopy=off,index=off,lowerdir=";

	for (size_t i = stack->n; i-- > 0;)
		(void)snprintf(options + strlen(options), sizeof(options) - strlen(options),
			"layers/%s/tree:", stack->ids[i]);
	(void)snprintf(
		options + strlen(options), sizeof(options) - strlen(options), "empty%s", more);
	return mount("overlay", at, "overlay", 0, options) < 0 ? -errno : 0;
}

static int make_layer(int i, char path[static 32])
{
	layer_path(i, "", path);
	if (mkdir(path, 0755) < 0)
		return -errno;
	layer_path(i, "/tree", path);
	return mkdir(path, 0755) < 0 ? -errno : 0;
}

int stack_session(int i, void (*edit)(int root_fd, uint64_t *state), uint64_t *state)
{
	SBX_STACK struct sbx_stack below = SBX_STACK_INIT;
	SBX_CLOSE int root = -EBADF;
	char path[32], more[96];
	int r = make_layer(i, path);

	stack_ids(i, &below);
	(void)snprintf(more, sizeof(more), ",upperdir=%s,workdir=work", path);
	if (r == 0)
		r = sbx_fs_remove_tree(AT_FDCWD, "work");
	if (r == 0 && mkdir("work", 0700) < 0)
		r = -errno;
	if (r == 0)
		r = stack_mount(&below, "merged", more);
	if (r < 0)
		return r;
	root = stack_open_dir("merged");
	edit(root, state);
	sbx_fd_close(&root);
	return umount("merged") < 0 ? -errno : 0;
}

static void random_session(int root_fd, uint64_t *state)
{
	run_edits(root_fd, session_edits, SBX_N_ELEMENTS(session_edits), state);
}

int stack_session_layer(int i, uint64_t *state)
{
	return stack_session(i, random_session, state);
}

int stack_marks_layer(int i, uint64_t *state)
{
	SBX_CLOSE int root = -EBADF;
	char path[32];
	int r = make_layer(i, path);

	if (r < 0)
		return r;
	root = stack_open_dir(path);
	run_edits(root, mark_edits, SBX_N_ELEMENTS(mark_edits), state);
	return 0;
}

/* 0, or -errno when the kernel does not let us. */
static int enter_namespace(const char *scratch)
{
	static const char *const dirs[] = {"layers", "merged", "other", "empty"};

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		chdir(scratch) < 0)
		return -errno;
	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0)
			return -errno;
	return 0;
}

static int run_plan(const char *scratch, const struct stack_plan *plan, uint64_t seed)
{
	uint64_t state = seed;
	int r = enter_namespace(scratch);

	for (int i = 0; i < STACK_LAYERS && r == 0; i++) {
		r = plan->layer(i, &state);
		if (r == 0)
			r = plan->check(i + 1, &state);
	}
	return r;
}

/* The plan as a child: the errno that it ends with, 0 for success. */
static int in_child(const char *scratch, const struct stack_plan *plan, uint64_t seed)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(-run_plan(scratch, plan, seed));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "the child was killed");
	return WEXITSTATUS(status);
}

void stack_run(const struct stack_plan *plan, unsigned int n_seeds)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: mounts overlayfs in a mount namespace");
	for (uint64_t seed = 1; seed <= n_seeds; seed++) {
		SCRATCH struct scratch scratch = scratch_new();
		int error = in_child(scratch.path, plan, seed);

		if (error == EPERM)
			cr_skip_test("needs CAP_SYS_ADMIN: mounts overlayfs in a mount namespace");
		cr_expect_eq(error, 0, "seed %d: %s", (int)seed, strerror(error));
	}
}
