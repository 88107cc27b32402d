/* SPDX-License-Identifier: MIT */
#include "publication.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "answer.h"
#include "capture.h"
#include "ownership.h"
#include "sbx/fs.h"
#include "sbx/store.h"

#define STAGE_NAME "staging"

void sbx_publication_done(struct sbx_publication *p)
{
	sbx_conflicts_done(&p->conflicts);
	sbx_changeset_done(&p->set);
	sbx_view_free(p->base);
	sbx_view_free(p->head);
	sbx_stack_done(&p->base_stack);
	sbx_stack_done(&p->head_stack);
	sbx_fd_close(&p->tree_fd);
	if (p->stage_fd >= 0)
		(void)sbx_fs_remove_tree(p->home_fd, STAGE_NAME); /* emptied by the next one too */
	sbx_fd_close(&p->stage_fd);
	sbx_fd_close(&p->home_fd);
}

static int open_stage(struct sbx_publication *p, struct sbx_err *err)
{
	int r = sbx_fs_remove_tree(p->home_fd, STAGE_NAME);

	if (r == 0)
		r = sbx_fs_ensure_dir(p->home_fd, STAGE_NAME, 0700, &p->stage_fd);
	return r < 0 ? sbx_err_set(err, -r, "make the staging directory: %m") : 0;
}

int sbx_publication_begin(struct sbx_publication *p, struct sbx_err *err)
{
	int layers_fd = p->job->context->layers_fd, r;

	p->tree_fd =
		openat(p->home_fd, p->tree_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->tree_fd < 0)
		return sbx_err_set(err, errno, "open the changed files: %m");
	r = sbx_view_open(layers_fd, &p->base_stack, &p->base, err);
	return r < 0 ? r : sbx_view_open(layers_fd, &p->head_stack, &p->head, err);
}

int sbx_publication_capture(struct sbx_publication *p, struct sbx_err *err)
{
	int r = sbx_capture(p->tree_fd, p->home_fd, p->base, 0, &p->set, err);

	if (r < 0)
		return r;
	p->is_captured = true;
	sbx_changeset_count(&p->set, &p->counts);
	return 0;
}

static bool has_changes(const struct sbx_counts *counts)
{
	return counts->added || counts->modified || counts->deleted;
}

static bool same_stack(const struct sbx_stack *a, const struct sbx_stack *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->ids, b->ids, a->n * sizeof(*a->ids)));
}

/* 1: there are conflicts. */
static int resolve(struct sbx_publication *p, struct sbx_err *err)
{
	struct sbx_resolve r = {.set = &p->set,
		.tree_fd = p->tree_fd,
		.layers_fd = p->job->context->layers_fd,
		.base = p->base,
		.head = p->head,
		.base_stack = &p->base_stack,
		.head_stack = &p->head_stack,
		.ours_owner = p->owner};
	int result = open_stage(p, err);

	r.stage_fd = p->stage_fd;
	if (result == 0)
		result = sbx_resolve_plan(&r, &p->conflicts, err);
	if (result < 0)
		return result;
	return p->conflicts.n ? 1 : sbx_resolve_apply(&r, err);
}

int sbx_publication_resolve(
	struct sbx_publication *p, enum sbx_publication_outcome *ret, struct sbx_err *err)
{
	int r = 0;

	if (has_changes(&p->counts) && !same_stack(&p->base_stack, &p->head_stack))
		r = resolve(p, err);
	if (r < 0)
		return r;
	if (r > 0) {
		*ret = SBX_PUBLICATION_CONFLICT;
		return 0;
	}
	sbx_changeset_count(&p->set, &p->counts);
	*ret = has_changes(&p->counts) ? SBX_PUBLICATION_READY : SBX_PUBLICATION_NO_OP;
	return 0;
}

static void add_dropped(struct sbx_publication *p)
{
	struct json_object *dropped =
		p->set.dropped ? json_object_get(p->set.dropped) : json_object_new_array();

	if (!dropped)
		abort(); /* as the adders of sbx/json.h do */
	sbx_json_add(p->job->result, "dropped", dropped);
}

void sbx_publication_no_op(struct sbx_publication *p)
{
	sbx_json_add_string(p->job->result, "outcome", "no_op");
	add_dropped(p);
}

static void published(struct sbx_publication *p)
{
	sbx_json_add_string(p->job->result, "outcome", "published");
	sbx_json_add_string(p->job->result, "layer_id", p->layer_id);
	sbx_counts_to_json(&p->counts, p->job->result);
	add_dropped(p);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * SBX_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int fill_info(const struct sbx_publication *p, const struct sbx_tally_result *tree,
	struct sbx_layer_info *info, struct sbx_err *err)
{
	memcpy(info->id, p->layer_id, strlen(p->layer_id) + 1); /* valid ids fit */
	info->parent_version = p->version;
	info->created_ns = now_ns();
	info->added = p->counts.added;
	info->modified = p->counts.modified;
	info->deleted = p->counts.deleted;
	info->merged = p->counts.merged;
	info->ignored = p->counts.ignored;
	info->owner = strdup(p->owner);
	info->command = p->command ? strdup(p->command) : NULL;
	if (!info->owner || (p->command && !info->command))
		return sbx_err_set(err, ENOMEM, "describe layer %s: %m", p->layer_id);
	memcpy(info->tree_digest, tree->hex, sizeof(tree->hex));
	info->n_entries = tree->n_entries;
	info->n_bytes = tree->n_bytes;
	return 0;
}

/* Writes lines and layer.json into the layer's directory. */
static int describe(struct sbx_publication *p, int layer_fd, const struct sbx_owners *prior,
	struct sbx_err *err)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	SBX_TALLY struct sbx_tally *tally = NULL;
	struct sbx_tally_result tree;
	struct sbx_ownership ownership = {.set = &p->set,
		.tree_fd = p->tree_fd,
		.base = p->base,
		.head = p->head,
		.owner = p->owner,
		.prior = prior};
	int r = sbx_tally_new(&tally);

	if (r < 0)
		return sbx_err_set(err, -r, "describe layer %s: %m", p->layer_id);
	ownership.tally = tally;
	r = sbx_ownership_write(&ownership, layer_fd, err);
	if (r < 0)
		return r;
	sbx_tally_end(tally, &tree);
	r = fill_info(p, &tree, &info, err);
	return r < 0 ? r : sbx_layer_info_save(layer_fd, &info, err);
}

/* One phase for all that belongs to the layer. */
static int sync_phase(
	struct sbx_publication *p, int layer_fd, enum sbx_sync_phase phase, struct sbx_err *err)
{
	static const char *const files[] = {SBX_LAYER_LINES, SBX_LAYER_JSON};
	int r = sbx_publish_sync_each(&p->set, p->tree_fd, phase, err);

	for (size_t i = 0; r == 0 && i < SBX_N_ELEMENTS(files); i++)
		r = sbx_publish_sync_phase(layer_fd, files[i], phase, err);
	if (phase != SBX_SYNC_DONE)
		return r;
	if (r == 0)
		r = sbx_publish_sync_name(layer_fd, ".", err);
	if (r == 0)
		r = sbx_publish_sync_name(p->job->context->layers_fd, ".", err);
	return r;
}

/* Few files one by one, since syncfs(2) would also write what others have made dirty. */
static int sync_layer(struct sbx_publication *p, int layer_fd, struct sbx_err *err)
{
	int r = 0;

	if (p->set.n > SBX_PUBLISH_SYNC_EACH_MAX)
		return sbx_publish_sync_all(p->tree_fd, err);
	for (int i = 0; r == 0 && i < SBX_SYNC_N_PHASES; i++)
		r = sync_phase(p, layer_fd, (enum sbx_sync_phase)i, err);
	return r;
}

/*
 * All is written and in its place before the first sync: a journaling file system then needs one
 * commit for all of it.
 */
static int seal(struct sbx_publication *p, const struct sbx_owners *prior, struct sbx_err *err)
{
	struct sbx_job_context *context = p->job->context;
	SBX_CLOSE int layer_fd = -EBADF;
	int r = sbx_fs_ensure_dir(context->layers_fd, p->layer_id, 0700, &layer_fd);

	if (r < 0)
		return sbx_err_set(err, -r, "make layer %s: %m", p->layer_id);
	r = describe(p, layer_fd, prior, err);
	if (r == 0)
		r = sbx_moved_move(
			context, p->home_fd, p->tree_name, SBX_MOVED_TO_LAYER, p->layer_id, err);
	return r < 0 ? r : sync_layer(p, layer_fd, err);
}

int sbx_publication_seal(
	struct sbx_publication *p, const struct sbx_owners *prior, struct sbx_err *err)
{
	enum sbx_moved_state state;
	int r = seal(p, prior, err);

	if (r == 0) {
		published(p);
		return 0;
	}
	/* what cannot be brought back now is found by its mark at the next try, or start */
	if (sbx_moved_recover(p->job->context, p->home_fd, p->tree_name, NULL, &state, NULL) == 0)
		(void)sbx_fs_remove_tree(p->job->context->layers_fd, p->layer_id); /* or swept */
	return r;
}

int sbx_publication_seal_again(
	struct sbx_publication *p, const struct sbx_owners *prior, struct sbx_err *err)
{
	int r = describe(p, p->home_fd, prior, err);

	if (r == 0)
		r = sync_layer(p, p->home_fd, err);
	if (r == 0)
		published(p);
	return r;
}
