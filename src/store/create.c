/* SPDX-License-Identifier: MIT */
/*
 * Making a sandbox. Everything is built in <state>/.new-<id>, whose flock(2) says that somebody is
 * at it, synced, and renamed to <state>/<id>. The id range is chosen and noted in sandbox.json
 * while the state root is locked, so that two creates never take the same.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "head_log.h"
#include "import.h"
#include "sbx/digest.h"
#include "sbx/fs.h"
#include "sbx/owners.h"
#include "state.h"

/* What of a sandbox must be open while it is made. */
struct making {
	int state_fd;
	int sandbox_fd;
	char name[STATE_NAME_SIZE]; /* "": nothing to clean up */
	int store_fd;
	int layer_fd;
	int tree_fd;
	char base_id[SBX_ID_SIZE];
};

/* Takes back what was made, unless it is complete. */
static void making_done(struct making *making)
{
	if (*making->name)
		(void)sbx_fs_remove_tree(making->state_fd, making->name); /* else a sweep's */
	sbx_fd_close(&making->tree_fd);
	sbx_fd_close(&making->layer_fd);
	sbx_fd_close(&making->store_fd);
	sbx_fd_close(&making->sandbox_fd);
	sbx_fd_close(&making->state_fd);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * SBX_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int choose_id(int state_fd, struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	struct stat st;
	int r;

	if (!*sandbox->id) {
		r = sbx_id_new(SBX_ID_SANDBOX, sandbox->id);
		return r < 0 ? sbx_err_set(err, -r, "make an id: %m") : 0;
	}
	if (!sbx_id_valid(sandbox->id))
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"\"%s\" cannot be a sandbox's id: use a-z, 0-9, '_', '-' and '.'",
			sandbox->id);
	if (fstatat(state_fd, sandbox->id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return sbx_err_kind(err, SBX_KIND_CONFLICT, EEXIST,
			"there is a sandbox %s already: choose another id or destroy it first",
			sandbox->id);
	return errno == ENOENT ? 0 : sbx_err_set(err, errno, "look for %s: %m", sandbox->id);
}

static int make_dir(int dir_fd, const char *name, struct sbx_err *err, int *ret_fd)
{
	int r = sbx_fs_ensure_dir(dir_fd, name, 0700, ret_fd);

	return r < 0 ? sbx_err_set(err, -r, "make directory %s: %m", name) : 0;
}

static int make_dirs(struct making *making, struct sbx_err *err)
{
	SBX_CLOSE int layers = -EBADF, rejects = -EBADF, sessions = -EBADF, commands = -EBADF;
	const struct {
		const int *parent;
		const char *name;
		int *fd;
	} dirs[] = {
		/* in order: parents first */
		{&making->sandbox_fd, "sessions", &sessions},
		{&making->sandbox_fd, "commands", &commands},
		{&making->sandbox_fd, "store", &making->store_fd},
		{&making->store_fd, "rejects", &rejects},
		{&making->store_fd, "layers", &layers},
		{&layers, making->base_id, &making->layer_fd},
		{&making->layer_fd, SBX_LAYER_TREE, &making->tree_fd},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(dirs); i++) {
		int r = make_dir(*dirs[i].parent, dirs[i].name, err, dirs[i].fd);

		if (r < 0)
			return r;
	}
	return 0;
}

static int describe_base(
	const struct making *making, const struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	char owner[] = SBX_OWNER_ORIGINAL;
	struct sbx_layer_info info = {.created_ns = sandbox->created_ns, .owner = owner};
	int r;

	memcpy(info.id, making->base_id, sizeof(info.id));
	r = sbx_layer_digest(
		making->tree_fd, info.tree_digest, &info.n_entries, &info.n_bytes, err);
	if (r < 0)
		return r;
	info.added = info.n_entries;
	return sbx_layer_info_save(making->layer_fd, &info, err);
}

/* A file that only the owner (and root) can read: whoever may not use the sandbox need not be told
 * by anybody that it is there, also when no sandboxd runs. */
static int mark_owner(
	const struct making *making, const struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	SBX_CLOSE int fd = openat(making->sandbox_fd, SBX_SANDBOX_OWNER,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);

	if (fd < 0 || fchmod(fd, 0400) < 0 || fchown(fd, sandbox->owner_uid, (gid_t)-1) < 0)
		return sbx_err_set(err, errno, "mark the sandbox's owner: %m");
	return 0;
}

/* sandbox.json has its digest already; finish() makes both durable before they are seen. */
static int copy_policy(
	const struct making *making, const struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	const struct sbx_buf *policy = sandbox->seccomp_policy;
	int r = 0;

	if (policy)
		r = sbx_fs_write_at(making->sandbox_fd, SBX_SANDBOX_SECCOMP, 0600, policy->data,
			policy->size, 0);
	return r < 0 ? sbx_err_set(err, -r, "write " SBX_SANDBOX_SECCOMP ": %m") : 0;
}

static int note_policy(struct sbx_sandbox *sandbox)
{
	const struct sbx_buf *policy = sandbox->seccomp_policy;
	char hex[SBX_DIGEST_HEX_SIZE];
	struct sbx_digest digest;

	if (!policy)
		return 0;
	sbx_digest_bytes(policy->data, policy->size, &digest);
	sbx_digest_hex(&digest, hex);
	free(sandbox->seccomp_digest);
	sandbox->seccomp_digest = strdup(hex);
	return sandbox->seccomp_digest ? 0 : -ENOMEM;
}

/* Makes it durable, then visible. */
static int finish(struct making *making, const struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	if (syncfs(making->sandbox_fd) < 0)
		return sbx_err_set(err, errno, "sync the new sandbox: %m");
	if (renameat2(making->state_fd, making->name, making->state_fd, sandbox->id,
		    RENAME_NOREPLACE) < 0) {
		if (errno == EEXIST)
			return sbx_err_kind(err, SBX_KIND_CONFLICT, EEXIST,
				"there is a sandbox %s already: choose another id", sandbox->id);
		return sbx_err_set(err, errno, "name the new sandbox %s: %m", sandbox->id);
	}
	/* from here on it is complete, and stays also when the rename is not yet durable */
	making->name[0] = '\0';
	if (fsync(making->state_fd) < 0)
		return sbx_err_set(err, errno, "sync the state root: %m");
	return 0;
}

int sbx_sandbox_create(const char *state_root, struct sbx_sandbox *sandbox, int source_fd,
	sbx_progress_fn progress, void *data, struct json_object *ret_report, struct sbx_err *err)
{
	SBX_CLEANUP(making_done)
	struct making making = {-EBADF, -EBADF, "", -EBADF, -EBADF, -EBADF, ""};
	struct stat source;
	int r;

	if (fstat(source_fd, &source) < 0)
		return sbx_err_set(err, errno, "stat the directory to import: %m");
	r = state_open(state_root, &making.state_fd, err);
	if (r == 0)
		r = state_check_apart(making.state_fd, source_fd, err);
	if (r == 0)
		r = choose_id(making.state_fd, sandbox, err);
	if (r == 0)
		r = state_sweep(making.state_fd, err);
	if (r < 0)
		return r;
	sandbox->source_uid = source.st_uid;
	sandbox->source_gid = source.st_gid;
	sandbox->created_ns = now_ns();
	r = note_policy(sandbox);
	if (r < 0)
		return sbx_err_set(err, -r, "create %s: %m", sandbox->id);
	r = state_reserve(making.state_fd, sandbox, &making.sandbox_fd, err);
	if (r < 0)
		return r;
	(void)snprintf(making.name, sizeof(making.name), STATE_NEW_PREFIX "%s", sandbox->id);
	r = sbx_id_new(SBX_ID_LAYER, making.base_id);
	if (r < 0)
		return sbx_err_set(err, -r, "make an id: %m");
	r = make_dirs(&making, err);
	if (r == 0)
		r = import_tree(
			source_fd, &source, making.tree_fd, progress, data, ret_report, err);
	if (r == 0)
		r = mark_owner(&making, sandbox, err);
	if (r == 0)
		r = copy_policy(&making, sandbox, err);
	if (r == 0)
		r = describe_base(&making, sandbox, err);
	if (r == 0)
		r = head_log_create(making.store_fd, making.base_id, sandbox->created_ns, err);
	return r < 0 ? r : finish(&making, sandbox, err);
}
