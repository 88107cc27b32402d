/* SPDX-License-Identifier: MIT */
/* What is asked at the daemon's start, when no worker runs. */
#include "sbx/publish.h"

#include <dirent.h>
#include <fcntl.h>

#include "moved.h"
#include "reject.h"
#include "sbx/store.h"
#include "unshare.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int recover_home(struct sbx_job_context *context, int parent_fd, const char *name,
	const char *tree_name, enum sbx_moved_state *ret, struct sbx_err *err)
{
	SBX_CLOSE int home_fd = openat(parent_fd, name, OPEN_DIR_FLAGS);
	struct sbx_head_log *log = NULL;
	int r;

	if (home_fd < 0)
		return sbx_err_set(err, errno, "open %s: %m", name);
	r = sbx_head_log_open(context->store_fd, false, &log, err);
	if (r == 0)
		r = sbx_moved_recover(
			context, home_fd, tree_name, &sbx_head_log_head(log)->stack, ret, err);
	sbx_head_log_free(log);
	/* a session may live on with it */
	return r < 0 ? r : sbx_unshare_tree(home_fd, tree_name, err);
}

int sbx_publish_recover(
	struct sbx_job_context *context, const char *session_dir, struct sbx_err *err)
{
	enum sbx_moved_state state;

	return recover_home(
		context, context->sessions_fd, session_dir, SBX_UPPER_NAME, &state, err);
}

/*
 * One reject: its tree comes back from a retry that did not arrive, its base is added. One whose
 * retry arrived, but that was not dropped any more, is dropped.
 */
static int take_reject(
	struct sbx_job_context *context, const char *id, struct sbx_stack *ret, struct sbx_err *err)
{
	SBX_STACK struct sbx_stack base = SBX_STACK_INIT;
	SBX_JSON struct json_object *reject = NULL;
	SBX_CLOSE int fd = -EBADF;
	enum sbx_moved_state state;
	int r;

	r = sbx_reject_open(context, id, &fd, &reject, err);
	if (r == -ENOENT)
		return 0; /* half-made: its session has its tree again */
	if (r == 0)
		r = recover_home(context, context->rejects_fd, id, SBX_LAYER_TREE, &state, err);
	if (r == 0 && state == SBX_MOVED_COMMITTED)
		return sbx_reject_remove(context, id, err);
	if (r == 0)
		r = sbx_reject_base(reject, &base, err);
	if (r == 0)
		r = sbx_stack_include_all(ret, &base);
	return r < 0 && !err->code ? sbx_err_set(err, -r, "keep the base of reject %s: %m", id) : r;
}

static void close_dirp(DIR **dirp)
{
	int saved = errno;

	if (*dirp)
		(void)closedir(*dirp); /* only read from */
	errno = saved;
}

/* The others are taken all the same; the first that could not be read is told. */
static int take_all(
	struct sbx_job_context *context, DIR *dirp, struct sbx_stack *ret, struct sbx_err *err)
{
	struct dirent *entry;
	int first = 0;

	while (errno = 0, (entry = readdir(dirp))) {
		struct sbx_err why = SBX_ERR_INIT;
		int r = sbx_id_valid(entry->d_name) ? take_reject(context, entry->d_name, ret, &why)
						    : 0;

		if (r < 0 && first == 0) {
			first = r;
			*err = why;
		}
	}
	return errno && first == 0 ? sbx_err_set(err, errno, "list the rejects: %m") : first;
}

int sbx_reject_bases(struct sbx_job_context *context, struct sbx_stack *ret, struct sbx_err *err)
{
	SBX_CLEANUP(close_dirp) DIR *dirp = NULL;
	int fd = openat(context->rejects_fd, ".", OPEN_DIR_FLAGS);

	if (fd < 0)
		return sbx_err_set(err, errno, "list the rejects: %m");
	dirp = fdopendir(fd);
	if (!dirp) {
		sbx_fd_close(&fd);
		return sbx_err_set(err, ENOMEM, "list the rejects: %m");
	}
	return take_all(context, dirp, ret, err);
}
