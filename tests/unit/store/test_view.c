/* SPDX-License-Identifier: MIT */
/*
 * The view against the kernel's own overlayfs: random stacks must look the same through both.
 */
#include "sbx/view.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sbx/digest.h"
#include "stacks.h"

#define N_SEEDS 24

/* The comparison runs in a child: what is wrong is printed and counted. */

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
	for (char name[] = {STACK_FIRST_NAME, 0}; *name <= STACK_LAST_NAME; ++*name) {
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

static int compare_stack(int n_layers, uint64_t *state SBX_UNUSED)
{
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;
	SBX_CLOSE int layers = stack_open_dir("layers"), root = -EBADF;
	SBX_VIEW_DIR struct sbx_view_dir *dir = NULL;
	SBX_VIEW struct sbx_view *view = NULL;
	struct compare compare = {0};
	int r;

	stack_ids(n_layers, &stack);
	r = sbx_view_open(layers, &stack, &view, NULL);
	if (r == 0)
		r = sbx_view_dir_open(view, "", &dir);
	if (r == 0)
		r = stack_mount(&stack, "merged", "");
	if (r < 0)
		return r;
	root = stack_open_dir("merged");
	compare.view = view;
	compare_dir(&compare, dir, root);
	sbx_fd_close(&root);
	if (umount("merged") < 0)
		return -errno;
	return compare.n_bad ? -EBADMSG : 0;
}

Test(view, shows_what_overlayfs_shows_of_layers_that_sessions_made, .timeout = 120)
{
	stack_run(&(struct stack_plan){stack_session_layer, compare_stack}, N_SEEDS);
}

Test(view, shows_what_overlayfs_shows_of_marks_in_any_place, .timeout = 120)
{
	stack_run(&(struct stack_plan){stack_marks_layer, compare_stack}, N_SEEDS);
}
