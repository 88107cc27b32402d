/* SPDX-License-Identifier: MIT */
#include "history.h"

#include <string.h>

#include "commit.h"
#include "pool.h"
#include "session.h"
#include "stack_ops.h"

int history_pinned_layers(const struct daemon *daemon, struct sbx_stack *ret)
{
	int r = session_pinned_layers(daemon, ret);

	if (r == 0)
		r = commits_pinned_layers(daemon->commits, ret);
	if (r == 0)
		r = pool_pinned_layers(daemon->pool, ret);
	return r;
}

static void on_removed(void *data, const char *text SBX_UNUSED, size_t size SBX_UNUSED,
	const struct sbx_err *err, struct json_object *details SBX_UNUSED)
{
	struct daemon *daemon = data;

	daemon->removing = false;
	if (err)
		daemon_log("remove layers of forgotten versions: %s; the next start does",
			err->message);
	history_unpinned(daemon); /* more of it may be free by now */
	stack_serve_gc(daemon);
}

/* What is pinned stays in garbage until the next time. */
static int take_unpinned(struct daemon *daemon, struct sbx_stack *ret)
{
	SBX_STACK struct sbx_stack pinned = SBX_STACK_INIT;
	SBX_STACK struct sbx_stack stay = SBX_STACK_INIT;
	int r = history_pinned_layers(daemon, &pinned);

	for (size_t i = 0; r == 0 && i < daemon->garbage.n; i++) {
		const char *id = daemon->garbage.ids[i];

		r = sbx_stack_include(sbx_stack_find(&pinned, id) < 0 ? ret : &stay, id);
	}
	if (r == 0) {
		sbx_stack_done(&daemon->garbage);
		daemon->garbage = stay;
		stay = SBX_STACK_INIT;
	}
	return r;
}

/* One job at a time, and none beside gc, which removes them too. */
static int remove_garbage(struct daemon *daemon)
{
	struct job_request job = {
		.name = "remove", .fd = -EBADF, .done = on_removed, .data = daemon};
	SBX_STACK struct sbx_stack go = SBX_STACK_INIT;
	int r;

	if (daemon->removing || daemon->collecting)
		return 0;
	r = take_unpinned(daemon, &go);
	if (r == 0 && go.n) {
		job.args = json_object_new_object();
		sbx_json_add(job.args, "layers", stack_to_json(&go));
		r = pool_submit(daemon->pool, &job);
		daemon->removing = r == 0;
	}
	return r;
}

void history_unpinned(struct daemon *daemon)
{
	int r = daemon->garbage.n && !daemon->stopping ? remove_garbage(daemon) : 0;

	if (r < 0)
		daemon_log(
			"layers of forgotten versions stay until the next start: %s", strerror(-r));
}

void history_forgotten(struct daemon *daemon, const struct sbx_stack *layers)
{
	if (sbx_stack_include_all(&daemon->garbage, layers) < 0)
		daemon_log("no memory: layers of forgotten versions stay until the next start");
	history_unpinned(daemon);
}

static void on_weighed(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details SBX_UNUSED)
{
	struct daemon *daemon = data;
	SBX_JSON struct json_object *result = NULL;
	struct sbx_err why = SBX_ERR_INIT;

	daemon->weighing = false;
	if (daemon->weigh_again) {
		history_trim(daemon); /* what this one saw is old already */
		return;
	}
	if (!err && sbx_json_parse(text, size, &result, &why) < 0)
		err = &why;
	if (err) {
		daemon_log("weigh older versions: %s; after the next squash again", err->message);
		return;
	}
	sbx_json_put(&daemon->history_weights);
	daemon->history_weights = json_object_get(sbx_json_member(result, "weights"));
	commits_forget(daemon->commits, (uint64_t)sbx_json_int(result, "oldest", 0));
}

void history_trim(struct daemon *daemon)
{
	struct job_request job = {
		.name = "history", .fd = -EBADF, .done = on_weighed, .data = daemon};
	uint64_t max = daemon->sandbox.history_max ? daemon->sandbox.history_max : SBX_HISTORY_MAX;

	daemon->weigh_again = daemon->weighing;
	if (daemon->weighing)
		return;
	job.args = json_object_new_object();
	sbx_json_add_int(job.args, "max", (int64_t)max);
	sbx_json_add(job.args, "weights", json_object_get(daemon->history_weights));
	daemon->weighing = pool_submit(daemon->pool, &job) == 0;
}
