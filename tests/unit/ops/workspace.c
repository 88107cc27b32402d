/* SPDX-License-Identifier: MIT */
#include "workspace.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "sbx/store.h"

#define OUTPUT_MAX (1u << 20)

static char output[OUTPUT_MAX + 1];

/* Layers as overlayfs wants them, topmost first, relative to store/layers. */
static void lower_option(const struct sbx_stack *stack, struct sbx_buf *ret)
{
	for (size_t i = stack->n; i-- > 0;)
		cr_assert_eq(sbx_buf_printf(ret, "%s/tree:", stack->ids[i]), 0);
	cr_assert_eq(sbx_buf_append_string(ret, "../../empty"), 0);
}

/* In the child: a mount that only it and its command see. */
static int mount_overlay(struct workspace *w, const struct sbx_stack *stack, const char *session)
{
	SBX_BUF struct sbx_buf options = SBX_BUF_INIT;

	/* by name: the descriptors are of the mount namespace that we leave */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		chdir(w->f.path) < 0 || chdir("store/layers") < 0)
		return -errno;
	if (sbx_buf_append_string(
		    &options, "redirect_dir=on,metacopy=off,index=off,xino=off,lowerdir=") < 0)
		return -ENOMEM;
	lower_option(stack, &options);
	if (session &&
		sbx_buf_printf(&options,
			",volatile,upperdir=../../sessions/%s/upper,workdir=../../sessions/%s/work",
			session, session) < 0)
		return -ENOMEM;
	if (mount("overlay", "../../mnt", "overlay", session ? 0 : MS_RDONLY, options.data) < 0)
		return -errno;
	return chdir("../../mnt") < 0 ? -errno : 0;
}

/* A command without the test's surprises: a fixed umask and locale. */
static void exec_script(const char *script, int out_fd)
{
	if (out_fd >= 0 && dup2(out_fd, 1) < 0)
		_exit(126);
	(void)umask(022);
	(void)setenv("LC_ALL", "C", 1);
	(void)execl("/bin/bash", "bash", "--noprofile", "--norc", "-c", script, (char *)NULL);
	_exit(127);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *run_child(struct workspace *w, const struct sbx_stack *stack,
	const char *session, const char *script, int expected)
{
	int fds[2], status;
	size_t size = 0;
	ssize_t n;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		(void)close(fds[0]);
		if (stack ? mount_overlay(w, stack, session) < 0 : fchdir(w->f.fd) < 0)
			_exit(125);
		exec_script(script, fds[1]);
	}
	(void)close(fds[1]);
	while ((n = read(fds[0], output + size, OUTPUT_MAX - size)) > 0)
		size += (size_t)n;
	(void)close(fds[0]);
	output[size] = '\0';
	status = wait_for(pid);
	if (expected >= 0)
		cr_assert_eq(status, expected, "exit %d of: %s\n%s", status, script, output);
	return status == 125 ? NULL : output;
}

void workspace_init(struct workspace *w)
{
	*w = (struct workspace){.version = 1};
	if (geteuid() != 0)
		cr_skip_test("needs root, to mount overlays");
	fixture_init(&w->f);
	(void)close(fixture_dir(w->f.fd, "empty"));
	(void)close(fixture_dir(w->f.fd, "mnt"));
	(void)close(fixture_tree(&w->f, "base"));
	cr_assert_eq(sbx_stack_add(&w->head, "base"), 0);
	if (!run_child(w, &w->head, NULL, "true", -1)) {
		workspace_done(w);
		cr_skip_test("overlays cannot be mounted here");
	}
}

void workspace_done(struct workspace *w)
{
	sbx_stack_done(&w->head);
	fixture_done(&w->f);
}

void session_begin(struct workspace *w, struct session *s, const char *name)
{
	SBX_CLOSE int fd = -EBADF;

	*s = (struct session){.base_version = w->version};
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	cr_assert_eq(sbx_stack_copy(&w->head, &s->base), 0);
	fd = fixture_dir(w->f.context.sessions_fd, name);
	(void)close(fixture_dir(fd, "upper"));
	(void)close(fixture_dir(fd, "work"));
}

void session_done(struct session *s)
{
	sbx_stack_done(&s->base);
}

void session_run(struct workspace *w, const struct session *s, const char *script)
{
	SBX_BUF struct sbx_buf clean = SBX_BUF_INIT;

	(void)run_child(w, &s->base, s->name, script, 0);
	/* each mount wants a fresh workdir: a used volatile one is refused */
	cr_assert_eq(
		sbx_buf_printf(&clean, "cd sessions/%s && rm -rf work && mkdir work", s->name), 0);
	(void)run_child(w, NULL, NULL, clean.data, 0);
}

static struct json_object *stack_json(const struct sbx_stack *stack)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < stack->n; i++)
		(void)json_object_array_add(array, json_object_new_string(stack->ids[i]));
	return array;
}

static void add_id(struct workspace *w, struct json_object *args, const char *key)
{
	char id[32];

	(void)snprintf(id, sizeof(id), "%s%d", key, ++w->n_ids);
	sbx_json_add_string(args, key, id);
}

struct outcome session_job(
	struct workspace *w, const struct session *s, const char *job, const char *more)
{
	SBX_JSON struct json_object *args = json_object_new_object();
	SBX_JSON struct json_object *extra = NULL;
	SBX_BUF struct sbx_buf owner = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;

	cr_assert_eq(sbx_buf_printf(&owner, "workspace_session:%s", s->name), 0);
	sbx_json_add_string(args, "session_dir", s->name);
	sbx_json_add(args, "base", stack_json(&s->base));
	sbx_json_add(args, "head", stack_json(&w->head));
	sbx_json_add_int(args, "version", w->version);
	sbx_json_add_int(args, "base_version", s->base_version);
	sbx_json_add_string(args, "owner", owner.data);
	sbx_json_add_string(args, "command", "a command");
	add_id(w, args, "layer_id");
	add_id(w, args, "reject_id");
	if (more) {
		cr_assert_eq(sbx_json_parse(more, strlen(more), &extra, &err), 0);
		json_object_object_foreach (extra, key, value)
			sbx_json_add(args, key, json_object_get(value));
	}
	return fixture_run(&w->f, job, sbx_json_text(args, NULL), -EBADF);
}

/* What layer.json says of the tree is what a walk of the tree finds. */
static void check_description(struct workspace *w, const char *layer_id)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	SBX_CLOSE int layer_fd = fixture_dir(w->f.context.layers_fd, layer_id);
	SBX_CLOSE int tree_fd = fixture_dir(layer_fd, SBX_LAYER_TREE);
	struct sbx_err err = SBX_ERR_INIT;
	uint64_t n_entries, n_bytes;
	char digest[65];

	cr_assert_eq(sbx_layer_info_load(layer_fd, &info, &err), 0, "%s", err.message);
	cr_assert_eq(sbx_layer_digest(tree_fd, digest, &n_entries, &n_bytes, &err), 0, "%s",
		err.message);
	cr_assert_eq(info.n_entries, n_entries);
	cr_assert_eq(info.n_bytes, n_bytes);
	cr_assert_str_eq(info.tree_digest, digest);
}

void workspace_commit(struct workspace *w, const struct outcome *o)
{
	check_description(w, outcome_text(o, "layer_id"));
	cr_assert_eq(sbx_stack_add(&w->head, outcome_text(o, "layer_id")), 0);
	w->version++;
}

struct outcome session_publish(struct workspace *w, const struct session *s)
{
	struct outcome o = session_job(w, s, "publish", NULL);

	if (o.r == 0 && !strcmp(outcome_text(&o, "outcome"), "published"))
		workspace_commit(w, &o);
	return o;
}

void workspace_do(struct workspace *w, const char *name, const char *script)
{
	SESSION struct session s;
	OUTCOME struct outcome o = {0};

	session_begin(w, &s, name);
	session_run(w, &s, script);
	o = session_publish(w, &s);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_assert_str_eq(outcome_text(&o, "outcome"), "published", "%s: %s", script,
		sbx_json_text(o.result, NULL));
}

const char *workspace_see(struct workspace *w, const char *script)
{
	return run_child(w, &w->head, NULL, script, 0);
}

const char *workspace_look(struct workspace *w, const char *script)
{
	return run_child(w, NULL, NULL, script, 0);
}

const char *workspace_blame(struct workspace *w, const char *path)
{
	static struct sbx_buf text;
	SBX_JSON struct json_object *args = json_object_new_object();
	struct json_object *inner = json_object_new_object(), *ranges;
	OUTCOME struct outcome o = {0};

	sbx_json_add_string(inner, "path", path);
	sbx_json_add(args, "args", inner);
	sbx_json_add(args, "head", stack_json(&w->head));
	sbx_json_add_string(args, "root_at", "/workspace");
	o = fixture_run(&w->f, "file_blame", sbx_json_text(args, NULL), -EBADF);
	sbx_buf_clear(&text);
	if (o.r == -ENOENT)
		return "none";
	cr_assert_eq(o.r, 0, "blame %s: %s", path, o.err.message);
	ranges = sbx_json_member(o.result, "ranges");
	cr_assert_eq(sbx_buf_append_string(&text, ""), 0);
	for (size_t i = 0; i < json_object_array_length(ranges); i++) {
		struct json_object *range = json_object_array_get_idx(ranges, i);
		const char *owner = sbx_json_string(range, "owner", "?");
		const char *colon = strchr(owner, ':');

		cr_assert_eq(sbx_buf_printf(&text, "%s%d+%d=%s", i ? " " : "",
				     (int)sbx_json_int(range, "start_line", 0),
				     (int)sbx_json_int(range, "line_count", 0),
				     colon ? colon + 1 : owner),
			0);
	}
	return text.data;
}

const char *outcome_text(const struct outcome *o, const char *key)
{
	return sbx_json_string(o->result, key, "(none)");
}

int64_t outcome_int(const struct outcome *o, const char *key)
{
	return sbx_json_int(o->result, key, -1);
}

const char *outcome_conflicts(const struct outcome *o)
{
	static struct sbx_buf text;
	struct json_object *list = sbx_json_member(o->result, "conflicts");

	sbx_buf_clear(&text);
	cr_assert_eq(sbx_buf_append_string(&text, ""), 0);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		cr_assert_eq(sbx_buf_printf(&text, "%s%s:%s", i ? " " : "",
				     sbx_json_string(item, "path", "?"),
				     sbx_json_string(item, "kind", "?")),
			0);
	}
	return text.data;
}
