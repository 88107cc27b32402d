/* SPDX-License-Identifier: MIT */
/* The jobs publish, reject_retry, reresolve, recover, commit and preview. */
#include <fcntl.h>

#include "capture.h"
#include "changeset_diff.h"
#include "disjoint.h"
#include "job_args.h"
#include "publication.h"
#include "publish_jobs.h"
#include "reject.h"
#include "sbx/fs.h"
#include "sbx/store.h"
#include "unshare.h"

#define OPEN_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The arguments that name what is made of a tree; layer_id's validity is the daemon's promise. */
static int take_names(struct sbx_publication *p, struct sbx_err *err)
{
	int64_t version;
	int r;

	r = sbx_job_stack(p->job, "base", &p->base_stack, err);
	if (r == 0)
		r = sbx_job_stack(p->job, "head", &p->head_stack, err);
	if (r == 0)
		r = sbx_job_int(p->job, "version", &version, err);
	if (r == 0)
		r = sbx_job_string(p->job, "layer_id", &p->layer_id, err);
	if (r == 0)
		r = sbx_job_string(p->job, "reject_id", &p->reject_id, err);
	if (r < 0)
		return r;
	if (!sbx_id_valid(p->layer_id) || !sbx_id_valid(p->reject_id))
		return sbx_err_kind(err, SBX_KIND_INTERNAL, EINVAL, "a job with a bad id");
	p->version = (uint64_t)version;
	p->base_version = (uint64_t)sbx_json_int(p->job->args, "base_version", 0);
	return 0;
}

static int open_session(struct sbx_job *job, int *ret_fd, struct sbx_err *err)
{
	const char *session_dir;
	int r = sbx_job_string(job, "session_dir", &session_dir, err);

	if (r < 0)
		return r;
	if (!sbx_id_valid(session_dir))
		return sbx_err_kind(err, SBX_KIND_INTERNAL, EINVAL, "a job with a bad id");
	*ret_fd = openat(job->context->sessions_fd, session_dir, OPEN_DIR_FLAGS);
	if (*ret_fd < 0)
		return sbx_err_set(err, errno, "open session %s: %m", session_dir);
	return 0;
}

/* Capture to seal. Conflicts become a reject here, errors at the caller's. */
static int publish(struct sbx_publication *p, struct sbx_err *err)
{
	enum sbx_publication_outcome outcome;
	int r = sbx_publication_capture(p, err);

	if (r == 0)
		r = sbx_publication_resolve(p, &outcome, err);
	if (r < 0)
		return r;
	switch (outcome) {
	case SBX_PUBLICATION_NO_OP:
		sbx_publication_no_op(p);
		return 0;
	case SBX_PUBLICATION_CONFLICT:
		return sbx_reject_keep(p, SBX_REJECT_CLASS_CONFLICT, NULL, err);
	case SBX_PUBLICATION_READY:
		break;
	}
	return sbx_publication_seal(p, NULL, err);
}

/* Keeps what could not be published for another reason than a conflict. */
static int keep_failed(struct sbx_publication *p, int failure, struct sbx_err *err)
{
	struct sbx_err why = *err;

	if (sbx_reject_keep(p, SBX_REJECT_CLASS_ERROR, why.message, err) == 0) {
		*err = SBX_ERR_INIT;
		return 0;
	}
	*err = why; /* the first failure is the one to mend */
	return failure;
}

int sbx_job_publish(struct sbx_job *job, struct sbx_err *err)
{
	SBX_PUBLICATION struct sbx_publication p = {.job = job,
		.home_fd = -EBADF,
		.tree_fd = -EBADF,
		.stage_fd = -EBADF,
		.tree_name = SBX_UPPER_NAME};
	enum sbx_moved_state state;
	int r;

	r = take_names(&p, err);
	if (r == 0)
		r = sbx_job_string(job, "owner", &p.owner, err);
	if (r == 0)
		r = open_session(job, &p.home_fd, err);
	if (r == 0)
		r = sbx_moved_recover(
			job->context, p.home_fd, p.tree_name, &p.head_stack, &state, err);
	if (r < 0)
		return r;
	p.command = sbx_json_string(job->args, "command", NULL);
	r = sbx_publication_begin(&p, err);
	if (r < 0)
		return r;
	r = publish(&p, err);
	return r < 0 ? keep_failed(&p, r, err) : 0;
}

/* A reject as the home of a publication. *ret_landed: it is in the head already. */
static int begin_retry(struct sbx_publication *p, struct json_object **ret_json, bool *ret_landed,
	struct sbx_err *err)
{
	struct sbx_job *job = p->job;
	enum sbx_moved_state state = SBX_MOVED_NOT;
	int64_t version;
	int r = sbx_job_string(job, "reject_id", &p->reject_id, err);

	if (r == 0)
		r = sbx_job_stack(job, "head", &p->head_stack, err);
	if (r == 0)
		r = sbx_job_string(job, "layer_id", &p->layer_id, err);
	if (r == 0)
		r = sbx_job_int(job, "version", &version, err);
	if (r == 0)
		r = sbx_reject_open(job->context, p->reject_id, &p->home_fd, ret_json, err);
	if (r == 0)
		r = sbx_moved_recover(
			job->context, p->home_fd, p->tree_name, &p->head_stack, &state, err);
	if (r == 0)
		r = sbx_reject_base(*ret_json, &p->base_stack, err);
	if (r < 0)
		return r;
	p->version = (uint64_t)version;
	p->base_version = (uint64_t)sbx_json_int(*ret_json, "base_version", 0);
	p->owner = sbx_json_string(*ret_json, "owner", "unknown");
	p->command = sbx_json_string(*ret_json, "command", NULL);
	*ret_landed = state == SBX_MOVED_COMMITTED;
	return *ret_landed ? 0 : sbx_publication_begin(p, err);
}

int sbx_job_reject_retry(struct sbx_job *job, struct sbx_err *err)
{
	SBX_PUBLICATION struct sbx_publication p = {.job = job,
		.home_fd = -EBADF,
		.tree_fd = -EBADF,
		.stage_fd = -EBADF,
		.tree_name = SBX_LAYER_TREE};
	SBX_JSON struct json_object *json = NULL;
	bool landed;
	int r = begin_retry(&p, &json, &landed, err);

	if (r < 0)
		return r;
	if (!landed)
		return publish(&p, err);
	sbx_publication_no_op(&p);
	return 0;
}

/* The publication of a layer that was prepared against another head. */
static int begin_again(
	struct sbx_publication *p, struct sbx_layer_info *ret_info, struct sbx_err *err)
{
	int r = take_names(p, err);

	if (r < 0)
		return r;
	p->home_fd = openat(p->job->context->layers_fd, p->layer_id, OPEN_DIR_FLAGS);
	if (p->home_fd < 0)
		return sbx_err_set(err, errno, "open layer %s: %m", p->layer_id);
	r = sbx_layer_info_load(p->home_fd, ret_info, err);
	if (r < 0)
		return r;
	p->owner = ret_info->owner ? ret_info->owner : "unknown";
	p->command = ret_info->command;
	p->base_version = ret_info->parent_version;
	return 0;
}

static void published_as_before(struct sbx_publication *p, const struct sbx_layer_info *info)
{
	struct sbx_counts counts = {.added = info->added,
		.modified = info->modified,
		.deleted = info->deleted,
		.merged = info->merged,
		.ignored = info->ignored};

	sbx_json_add_string(p->job->result, "outcome", "published");
	sbx_json_add_string(p->job->result, "layer_id", p->layer_id);
	sbx_counts_to_json(&counts, p->job->result);
	sbx_json_add(p->job->result, "dropped", json_object_new_array());
}

/* What merging brought about before still counts: the layer then says so of itself. */
static int seal_again(
	struct sbx_publication *p, const struct sbx_layer_info *info, struct sbx_err *err)
{
	struct sbx_owners *prior = NULL;
	int r = sbx_owners_open(p->home_fd, SBX_LAYER_LINES, &prior, err);

	p->counts.merged += info->merged;
	if (r == 0)
		r = sbx_publication_seal_again(p, prior, err);
	sbx_owners_free(prior);
	return r;
}

static int resolve_again(
	struct sbx_publication *p, const struct sbx_layer_info *info, struct sbx_err *err)
{
	struct sbx_job_context *context = p->job->context;
	enum sbx_publication_outcome outcome;
	int r = sbx_publication_capture(p, err);

	if (r == 0)
		r = sbx_publication_resolve(p, &outcome, err);
	if (r < 0)
		return r;
	if (outcome == SBX_PUBLICATION_READY)
		return seal_again(p, info, err);
	if (outcome == SBX_PUBLICATION_NO_OP)
		sbx_publication_no_op(p);
	else
		r = sbx_reject_keep(p, SBX_REJECT_CLASS_CONFLICT, NULL, err);
	if (r == 0)
		(void)sbx_fs_remove_tree(context->layers_fd, p->layer_id); /* else swept */
	return r;
}

int sbx_job_reresolve(struct sbx_job *job, struct sbx_err *err)
{
	SBX_PUBLICATION struct sbx_publication p = {.job = job,
		.home_fd = -EBADF,
		.tree_fd = -EBADF,
		.stage_fd = -EBADF,
		.tree_name = SBX_LAYER_TREE};
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	int r;

	r = begin_again(&p, &info, err);
	if (r < 0)
		return r;
	r = sbx_layers_disjoint(
		job->context->layers_fd, p.layer_id, &p.base_stack, &p.head_stack, err);
	if (r < 0)
		return r;
	if (r > 0) {
		published_as_before(&p, &info);
		return 0;
	}
	r = sbx_publication_begin(&p, err);
	return r < 0 ? r : resolve_again(&p, &info, err);
}

static const char *state_name(enum sbx_moved_state state)
{
	static const char *const names[] = {
		[SBX_MOVED_NOT] = "not_moved",
		[SBX_MOVED_BACK] = "brought_back",
		[SBX_MOVED_COMMITTED] = "committed",
		[SBX_MOVED_REJECTED] = "rejected",
		[SBX_MOVED_GONE] = "gone",
	};

	return names[state];
}

int sbx_job_recover(struct sbx_job *job, struct sbx_err *err)
{
	const char *reject_id = sbx_json_string(job->args, "reject_id", NULL);
	SBX_STACK struct sbx_stack head = SBX_STACK_INIT;
	SBX_CLOSE int home_fd = -EBADF;
	enum sbx_moved_state state;
	int r = sbx_job_stack(job, "head", &head, err);

	if (r < 0)
		return r;
	if (!reject_id)
		r = open_session(job, &home_fd, err);
	else if (sbx_id_valid(reject_id))
		home_fd = openat(job->context->rejects_fd, reject_id, OPEN_DIR_FLAGS);
	if (r == 0 && home_fd < 0)
		r = sbx_err_set(err, ENOENT, "open reject %s: %m", reject_id);
	if (r == 0)
		r = sbx_moved_recover(job->context, home_fd,
			reject_id ? SBX_LAYER_TREE : SBX_UPPER_NAME, &head, &state, err);
	if (r == 0 && !reject_id)
		r = sbx_unshare_tree(home_fd, SBX_UPPER_NAME, err);
	if (r == 0)
		sbx_json_add_string(job->result, "state", state_name(state));
	return r;
}

int sbx_job_commit(struct sbx_job *job, struct sbx_err *err)
{
	struct json_object *batch = sbx_json_member(job->args, "batch");

	if (!json_object_is_type(batch, json_type_string) || job->fd < 0)
		return sbx_err_kind(err, SBX_KIND_INTERNAL, EINVAL,
			"the job came without a batch or without head.log");
	return sbx_head_log_write(job->fd, json_object_get_string(batch),
		(size_t)json_object_get_string_len(batch), err);
}

int sbx_job_preview(struct sbx_job *job, struct sbx_err *err)
{
	SBX_CHANGESET struct sbx_changeset set = SBX_CHANGESET_INIT;
	SBX_VIEW struct sbx_view *base = NULL;
	SBX_CLOSE int home_fd = -EBADF;
	SBX_CLOSE int tree_fd = -EBADF;
	int r;

	r = open_session(job, &home_fd, err);
	if (r == 0)
		r = sbx_job_view(job, "base", &base, err);
	if (r < 0)
		return r;
	tree_fd = openat(home_fd, SBX_UPPER_NAME, OPEN_DIR_FLAGS);
	if (tree_fd < 0)
		return sbx_err_set(err, errno, "open the changed files: %m");
	r = sbx_capture(tree_fd, -EBADF, base, SBX_CAPTURE_READ_ONLY, &set, err);
	if (r == 0)
		r = sbx_changeset_show(&set, job->result, err);
	return r < 0 ? r : sbx_changeset_diff(&set, tree_fd, base, job->result, err);
}
