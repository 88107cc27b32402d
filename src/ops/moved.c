/* SPDX-License-Identifier: MIT */
#include "moved.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sbx/fs.h"
#include "sbx/id.h"
#include "sbx/store.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *const words[] = {
	[SBX_MOVED_TO_LAYER] = "layers/",
	[SBX_MOVED_TO_REJECT] = "rejects/",
};

struct mark {
	enum sbx_moved_kind kind;
	char id[SBX_ID_SIZE];
};

static int place_fd(const struct sbx_job_context *context, enum sbx_moved_kind kind)
{
	return kind == SBX_MOVED_TO_LAYER ? context->layers_fd : context->rejects_fd;
}

/* 1, 0 for no mark, or -errno. */
static int read_mark(int home_fd, struct mark *ret)
{
	char text[SBX_ID_SIZE + 16];
	ssize_t n = readlinkat(home_fd, SBX_MOVED_MARK, text, sizeof(text) - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	text[n] = '\0';
	for (size_t i = 0; i < SBX_N_ELEMENTS(words); i++) {
		const char *id = text + strlen(words[i]);

		if (strncmp(text, words[i], strlen(words[i])) != 0 || !sbx_id_valid(id))
			continue;
		ret->kind = (enum sbx_moved_kind)i;
		memcpy(ret->id, id, strlen(id) + 1); /* valid ids fit */
		return 1;
	}
	return -EBADMSG;
}

static int set_mark(int home_fd, enum sbx_moved_kind kind, const char *id)
{
	char text[SBX_ID_SIZE + 16];

	(void)snprintf(text, sizeof(text), "%s%s", words[kind], id); /* ids are short */
	if (unlinkat(home_fd, SBX_MOVED_MARK, 0) < 0 && errno != ENOENT)
		return -errno;
	return symlinkat(text, home_fd, SBX_MOVED_MARK) < 0 ? -errno : 0;
}

int sbx_moved_move(struct sbx_job_context *context, int home_fd, const char *tree_name,
	enum sbx_moved_kind kind, const char *id, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(place_fd(context, kind), id, OPEN_DIR_FLAGS);
	int r;

	if (fd < 0)
		return sbx_err_set(err, errno, "open %s%s: %m", words[kind], id);
	r = set_mark(home_fd, kind, id);
	if (r < 0)
		return sbx_err_set(err, -r, "note the move to %s%s: %m", words[kind], id);
	if (renameat(home_fd, tree_name, fd, SBX_LAYER_TREE) < 0)
		return sbx_err_set(err, errno, "move the changes to %s%s: %m", words[kind], id);
	return 0;
}

static bool exists(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Ends the traces of a move that did not happen or was taken back. */
static int forget(struct sbx_job_context *context, int home_fd, const struct mark *mark)
{
	int r = sbx_fs_remove_tree(place_fd(context, mark->kind), mark->id);

	if (r == 0 && unlinkat(home_fd, SBX_MOVED_MARK, 0) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

/* Where the chain of marks ends. */
struct search {
	struct mark first; /* what home says */
	struct mark last;
	int fd; /* of the last place, or -EBADF: it does not exist */
};

/* Follows marks until a place has the tree or no further mark. */
static int follow(struct sbx_job_context *context, int home_fd, struct search *s)
{
	SBX_CLOSE int fd = -EBADF;
	struct mark mark;
	int r = read_mark(home_fd, &mark);

	if (r <= 0)
		return r;
	s->first = mark;
	for (int i = 0; i < SBX_MOVED_CHAIN_MAX && r > 0; i++) {
		s->last = mark;
		sbx_fd_close(&fd);
		fd = openat(place_fd(context, mark.kind), mark.id, OPEN_DIR_FLAGS);
		if (fd < 0)
			return errno == ENOENT ? 1 : -errno;
		r = exists(fd, SBX_LAYER_TREE) ? 0 : read_mark(fd, &mark);
	}
	if (r < 0)
		return r;
	s->fd = sbx_fd_take(&fd);
	return 1;
}

/* What has become of a tree that is not at home, and brings it back if it is under way. */
static int settle(struct sbx_job_context *context, int home_fd, const char *tree_name,
	const struct sbx_stack *head, const struct search *s, enum sbx_moved_state *ret)
{
	int r;

	if (head && s->last.kind == SBX_MOVED_TO_LAYER && sbx_stack_find(head, s->last.id) >= 0) {
		*ret = SBX_MOVED_COMMITTED;
		return 0;
	}
	if (s->fd < 0 || !exists(s->fd, SBX_LAYER_TREE)) {
		*ret = SBX_MOVED_GONE;
		return 0;
	}
	if (s->last.kind == SBX_MOVED_TO_REJECT && exists(s->fd, SBX_REJECT_JSON)) {
		*ret = SBX_MOVED_REJECTED;
		return 0;
	}
	if (renameat(s->fd, SBX_LAYER_TREE, home_fd, tree_name) < 0)
		return -errno;
	r = forget(context, home_fd, &s->last);
	if (r == 0)
		r = forget(context, home_fd, &s->first);
	*ret = SBX_MOVED_BACK;
	return r;
}

int sbx_moved_recover(struct sbx_job_context *context, int home_fd, const char *tree_name,
	const struct sbx_stack *head, enum sbx_moved_state *ret, struct sbx_err *err)
{
	struct search s = {.fd = -EBADF};
	int r = follow(context, home_fd, &s);

	*ret = SBX_MOVED_NOT;
	if (r > 0 && exists(home_fd, tree_name))
		r = forget(context, home_fd, &s.first); /* marked, but not moved yet */
	else if (r > 0)
		r = settle(context, home_fd, tree_name, head, &s, ret);
	sbx_fd_close(&s.fd);
	return r < 0 ? sbx_err_set(err, -r, "bring back changes that were not published: %m") : 0;
}
