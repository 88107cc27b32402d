/* SPDX-License-Identifier: MIT */
/* A store of layers in a temporary directory, and jobs run on it: for the tests of the file jobs.
 */
#ifndef TEST_OPS_FIXTURE_H
#define TEST_OPS_FIXTURE_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sbx/fs.h"
#include "sbx/job.h"
#include "sbx/view.h"

struct fixture {
	char path[64];
	int fd;
	struct sbx_job_context context;
};

static inline int fixture_dir(int at, const char *name)
{
	int fd = -EBADF;

	cr_assert_eq(sbx_fs_ensure_dir(at, name, 0755, &fd), 0);
	return fd;
}

static inline void fixture_init(struct fixture *f)
{
	(void)snprintf(f->path, sizeof(f->path), "/tmp/sbx-test-ops-XXXXXX");
	cr_assert_not_null(mkdtemp(f->path));
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(f->fd, 0);
	f->context = (struct sbx_job_context){.sandbox_fd = f->fd};
	f->context.store_fd = fixture_dir(f->fd, "store");
	f->context.layers_fd = fixture_dir(f->context.store_fd, "layers");
	f->context.rejects_fd = fixture_dir(f->context.store_fd, "rejects");
	f->context.sessions_fd = fixture_dir(f->fd, "sessions");
}

static inline void fixture_done(struct fixture *f)
{
	sbx_view_free(f->context.head);
	sbx_fd_close(&f->context.sessions_fd);
	sbx_fd_close(&f->context.rejects_fd);
	sbx_fd_close(&f->context.layers_fd);
	sbx_fd_close(&f->context.store_fd);
	sbx_fd_close(&f->fd);
	(void)sbx_fs_remove_tree(AT_FDCWD, f->path);
}
#define FIXTURE SBX_CLEANUP(fixture_done)

/* The descriptor of layers/<id>/tree, made when missing. */
static inline int fixture_tree(struct fixture *f, const char *id)
{
	SBX_CLOSE int layer_fd = fixture_dir(f->context.layers_fd, id);

	return fixture_dir(layer_fd, "tree");
}

/* Writes a file below dir_fd; its directory is there. */
static inline void fixture_write(int dir_fd, const char *path, const void *data, size_t size)
{
	SBX_CLOSE int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0, "%s: %m", path);
	cr_assert_eq(sbx_fs_write_all(fd, data, size), 0);
}

static inline void fixture_file(
	struct fixture *f, const char *layer_id, const char *path, const char *text)
{
	SBX_CLOSE int tree_fd = fixture_tree(f, layer_id);

	fixture_write(tree_fd, path, text, strlen(text));
}

struct outcome {
	int r;
	struct sbx_err err;
	struct json_object *result;
	struct json_object *details;
};

static inline void outcome_done(struct outcome *o)
{
	sbx_json_put(&o->result);
	sbx_json_put(&o->details);
}
#define OUTCOME SBX_CLEANUP(outcome_done)

/* Runs a job. args: JSON, as sandboxd gives them; fd: a session's root or -EBADF. */
static inline struct outcome fixture_run(
	struct fixture *f, const char *name, const char *args, int fd)
{
	const struct sbx_job_entry *entry = sbx_job_find(name);
	SBX_JSON struct json_object *parsed = NULL;
	struct sbx_job job = {.context = &f->context, .fd = fd};
	struct outcome o = {.err = SBX_ERR_INIT};

	cr_assert_not_null(entry, "no job %s", name);
	cr_assert_eq(sbx_json_parse(args, strlen(args), &parsed, &o.err), 0, "%s", o.err.message);
	job.args = parsed;
	job.result = json_object_new_object();
	o.r = entry->run(&job, &o.err);
	o.result = job.result;
	o.details = job.details;
	return o;
}

#endif
