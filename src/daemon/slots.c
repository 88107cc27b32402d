/* SPDX-License-Identifier: MIT */
#include "slots.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

struct layer_ref {
	char id[SBX_ID_SIZE]; /* "" when it is not attached */
	uint32_t users;       /* slots */
	bool stuck;           /* could not be detached: the number is not used again */
};

struct slot {
	bool used;
	struct sbx_cgroup *group; /* may outlive the session; NULL: none (yet) */
	uint32_t *layers;         /* numbers, bottom first */
	size_t n_layers;
};

enum pending_kind {
	PENDING_OTHER,
	PENDING_PREPARE,
	PENDING_DROP,
	PENDING_ATTACH,
	PENDING_DETACH,
};

/* The spawner answers in order: callbacks wait in a queue. */
struct pending {
	STAILQ_ENTRY(pending) entry;
	slot_done_fn done;
	void *data;
	enum pending_kind kind;
	uint32_t number;          /* of the slot, or of the layer */
	struct sbx_cgroup *group; /* to be removed when this is answered */
};
STAILQ_HEAD(pending_list, pending);

struct slots {
	struct daemon *daemon;
	struct sbx_spawner *spawner;
	struct sbx_watch *reply_watch, *death_watch;
	struct layer_ref *layers; /* the index is the layer's number in the spawner */
	size_t n_layers;
	struct slot slots[SBX_SPAWN_SLOTS_MAX];
	size_t n_used;
	struct pending_list pending;
	uint64_t next_tag;
	unsigned int n_groups_made; /* ever: their names are not used twice */
};

static struct pending *pending_add(
	struct slots *slots, slot_done_fn done, void *data, enum pending_kind kind, uint32_t number)
{
	struct pending *pending = calloc(1, sizeof(*pending));

	if (!pending)
		return NULL;
	*pending = (struct pending){.done = done, .data = data, .kind = kind, .number = number};
	STAILQ_INSERT_TAIL(&slots->pending, pending, entry);
	slots->next_tag++;
	return pending;
}

static void pending_undo(struct slots *slots, struct pending *pending)
{
	STAILQ_REMOVE(&slots->pending, pending, pending, entry);
	free(pending);
}

/* Nothing of the spawner is in the group any more, or the spawner is gone. */
static void pending_done(struct pending *pending)
{
	sbx_cgroup_free(pending->group);
	free(pending);
}

/* One that could not be entered also fails the slot's next session. */
static void on_group(void *data SBX_UNUSED, int fd, const struct sbx_err *err)
{
	sbx_fd_close(&fd);
	if (err)
		daemon_log("change the control group of sessions: %s", err->message);
}

static void take_group_away(struct slots *slots, uint32_t number)
{
	struct pending *pending = pending_add(slots, on_group, NULL, PENDING_OTHER, number);

	if (!pending)
		return; /* it is kept, as those of lower numbers are */
	if (sbx_spawner_seat(slots->spawner, slots->next_tag, number, NULL) < 0)
		pending_undo(slots, pending);
	else
		pending->group = sbx_take(&slots->slots[number].group);
}

static void release_slot(struct slots *slots, uint32_t number)
{
	struct slot *slot = &slots->slots[number];

	for (size_t i = 0; i < slot->n_layers; i++)
		slots->layers[slot->layers[i]].users--;
	free(slot->layers);
	*slot = (struct slot){.group = slot->group};
	slots->n_used--;
	if (slot->group && number >= SLOT_GROUPS_KEPT)
		take_group_away(slots, number);
	slots_head_changed(slots);
}

/* What the spawner has of slots and layers now. */
static void keep_account(struct slots *slots, const struct pending *pending, bool failed)
{
	switch (pending->kind) {
	case PENDING_OTHER:
		break;
	case PENDING_PREPARE:
		if (failed)
			release_slot(slots, pending->number);
		break;
	case PENDING_DROP:
		if (!failed) /* else it is still mounted, and its number taken */
			release_slot(slots, pending->number);
		break;
	case PENDING_ATTACH:
		if (failed) /* whoever needs it next tries again, under another number */
			slots->layers[pending->number].id[0] = '\0';
		break;
	case PENDING_DETACH:
		slots->layers[pending->number].stuck = failed;
		break;
	}
}

static void handle_reply(struct slots *slots, struct sbx_spawner_reply *reply)
{
	struct pending *pending = STAILQ_FIRST(&slots->pending);
	struct sbx_err err = SBX_ERR_INIT;
	bool failed = reply->code < 0;

	if (!pending) {
		sbx_fd_close(&reply->fd);
		return;
	}
	STAILQ_REMOVE_HEAD(&slots->pending, entry);
	if (failed)
		(void)sbx_err_set(&err, -reply->code, "%s", reply->message);
	keep_account(slots, pending, failed);
	if (pending->done)
		pending->done(pending->data, reply->fd, failed ? &err : NULL);
	else
		sbx_fd_close(&reply->fd);
	pending_done(pending);
}

static void on_reply(void *data, uint32_t events SBX_UNUSED)
{
	struct slots *slots = data;
	struct sbx_spawner_reply reply;
	int r;

	while ((r = sbx_spawner_read(slots->spawner, &reply)) == 0)
		handle_reply(slots, &reply);
	if (r == -EAGAIN || r == -EPIPE)
		return; /* nothing more now; or it died, which its pidfd tells */
	/* one was lost (there was no descriptor for what it carried): from now on each would be
	 * taken for the answer to another request */
	daemon_log("read an answer of the spawner: %s; sandboxd ends and recovers at its next "
		   "start",
		strerror(-r));
	daemon_stop(slots->daemon);
}

static void on_death(void *data, uint32_t events SBX_UNUSED)
{
	struct slots *slots = data;

	/* no session can be made any more; the next start finds and publishes what is there */
	daemon_log("the spawner ended unexpectedly: sandboxd ends and recovers at its next start");
	sbx_watch_free(sbx_take(&slots->death_watch));
	sbx_watch_free(sbx_take(&slots->reply_watch));
	daemon_stop(slots->daemon);
}

int slots_new(struct daemon *daemon, struct sbx_spawner *spawner, struct slots **ret)
{
	struct slots *slots = calloc(1, sizeof(*slots));
	int r;

	if (!slots)
		return -ENOMEM;
	slots->daemon = daemon;
	slots->spawner = spawner;
	STAILQ_INIT(&slots->pending);
	r = sbx_watch_new(daemon->loop, sbx_spawner_fd(spawner), EPOLLIN, on_reply, slots,
		&slots->reply_watch);
	if (r == 0)
		r = sbx_watch_new(daemon->loop, sbx_spawner_pidfd(spawner), EPOLLIN, on_death,
			slots, &slots->death_watch);
	if (r < 0) {
		slots_free(slots);
		return r;
	}
	*ret = slots;
	return 0;
}

void slots_free(struct slots *slots)
{
	struct pending *pending;

	if (!slots)
		return;
	sbx_watch_free(slots->reply_watch);
	sbx_watch_free(slots->death_watch);
	sbx_spawner_free(slots->spawner);
	while ((pending = STAILQ_FIRST(&slots->pending))) {
		STAILQ_REMOVE_HEAD(&slots->pending, entry);
		pending_done(pending);
	}
	for (size_t i = 0; i < SBX_SPAWN_SLOTS_MAX; i++) {
		free(slots->slots[i].layers);
		/* what the spawner's last processes still hold is swept by the next start */
		sbx_cgroup_free(slots->slots[i].group);
	}
	free(slots->layers);
	free(slots);
}

size_t slots_in_use(const struct slots *slots)
{
	return slots->n_used;
}

static bool is_taken(const struct layer_ref *layer)
{
	return layer->id[0] || layer->users || layer->stuck;
}

static int find_free_number(struct slots *slots, uint32_t *ret_number)
{
	struct layer_ref *layers;
	uint32_t number = 0;

	while (number < slots->n_layers && is_taken(&slots->layers[number]))
		number++;
	if (number >= SBX_SPAWN_NAMES_MAX)
		return -EMFILE;
	if (number == slots->n_layers) {
		layers = reallocarray(slots->layers, slots->n_layers + 1, sizeof(*layers));
		if (!layers)
			return -ENOMEM;
		layers[slots->n_layers++] = (struct layer_ref){0};
		slots->layers = layers;
	}
	*ret_number = number;
	return 0;
}

/* A layer that cannot be attached also fails the slot that needs it, with its own message. */
static void on_layer(void *data SBX_UNUSED, int fd, const struct sbx_err *err)
{
	sbx_fd_close(&fd);
	if (err)
		daemon_log("attach or detach a layer: %s", err->message);
}

static int attach(struct slots *slots, const char *layer_id, uint32_t *ret_number)
{
	struct pending *pending;
	uint32_t number;
	int r;

	for (number = 0; number < slots->n_layers; number++)
		if (!strcmp(slots->layers[number].id, layer_id)) {
			*ret_number = number;
			return 0;
		}
	r = find_free_number(slots, &number);
	if (r < 0)
		return r;
	pending = pending_add(slots, on_layer, NULL, PENDING_ATTACH, number);
	if (!pending)
		return -ENOMEM;
	r = sbx_spawner_layer(slots->spawner, slots->next_tag, number, layer_id);
	if (r < 0) {
		pending_undo(slots, pending);
		return r;
	}
	(void)snprintf(slots->layers[number].id, SBX_ID_SIZE, "%s", layer_id); /* ids fit */
	*ret_number = number;
	return 0;
}

static bool in_stack(const struct sbx_stack *stack, const char *layer_id)
{
	for (size_t i = 0; i < stack->n; i++)
		if (!strcmp(stack->ids[i], layer_id))
			return true;
	return false;
}

void slots_head_changed(struct slots *slots)
{
	const struct sbx_head *head = daemon_head(slots->daemon);

	for (uint32_t i = 0; i < slots->n_layers; i++) {
		struct layer_ref *layer = &slots->layers[i];
		struct pending *pending;

		if (!layer->id[0] || layer->users || in_stack(&head->stack, layer->id))
			continue;
		pending = pending_add(slots, on_layer, NULL, PENDING_DETACH, i);
		if (!pending)
			return; /* tried again at the next change */
		if (sbx_spawner_unlayer(slots->spawner, slots->next_tag, i) < 0) {
			pending_undo(slots, pending);
			return;
		}
		layer->id[0] = '\0';
	}
}

static int fill_slot(struct slots *slots, struct slot *slot, const struct sbx_stack *stack)
{
	int r;

	if (stack->n > SBX_SPAWN_LAYERS_MAX)
		return -E2BIG;
	slot->layers = calloc(SBX_MAX(stack->n, (size_t)1), sizeof(*slot->layers));
	if (!slot->layers)
		return -ENOMEM;
	for (; slot->n_layers < stack->n; slot->n_layers++) {
		r = attach(slots, stack->ids[slot->n_layers], &slot->layers[slot->n_layers]);
		if (r < 0)
			return r;
		slots->layers[slot->layers[slot->n_layers]].users++;
	}
	return 0;
}

static int send_group(
	struct slots *slots, uint32_t number, const struct sbx_cgroup *group, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_cgroup_entry_done)
	struct sbx_cgroup_entry entry = {.unified_fd = -EBADF};
	struct pending *pending;
	int r = sbx_cgroup_entry_open(group, &entry, err);

	if (r < 0)
		return r;
	pending = pending_add(slots, on_group, NULL, PENDING_OTHER, number);
	if (!pending)
		return sbx_err_set(err, ENOMEM, "use a control group: %m");
	r = sbx_spawner_seat(slots->spawner, slots->next_tag, number, &entry);
	if (r < 0) {
		pending_undo(slots, pending);
		return sbx_err_set(err, -r, "use a control group: %m");
	}
	return 0;
}

/* A failure here fails the session: a limit that was promised would not hold. */
static int give_group(struct slots *slots, uint32_t number)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_cgroup *group;
	char name[32];
	int r;

	(void)snprintf(name, sizeof(name), "s%u-%u", number, ++slots->n_groups_made);
	r = sbx_cgroup_new(slots->daemon->cgroups, name, &group, &err);
	if (r == 0) {
		r = send_group(slots, number, group, &err);
		if (r == 0)
			slots->slots[number].group = group;
		else
			sbx_cgroup_free(group);
	}
	if (r < 0)
		daemon_log("%s", err.message);
	return r;
}

int slot_prepare(struct slots *slots, const char *session_dir, const struct sbx_stack *stack,
	slot_done_fn done, void *data, uint32_t *ret_slot)
{
	struct pending *pending;
	struct slot *slot;
	uint32_t number = 0;
	int r;

	while (number < SBX_SPAWN_SLOTS_MAX && slots->slots[number].used)
		number++;
	if (number == SBX_SPAWN_SLOTS_MAX)
		return -EMFILE;
	slot = &slots->slots[number];
	slot->used = true;
	slots->n_used++;
	r = slot->group ? 0 : give_group(slots, number);
	if (r == 0)
		r = fill_slot(slots, slot, stack);
	pending = r == 0 ? pending_add(slots, done, data, PENDING_PREPARE, number) : NULL;
	if (r == 0 && !pending)
		r = -ENOMEM;
	if (r == 0)
		r = sbx_spawner_prepare(slots->spawner, slots->next_tag, number, session_dir,
			slot->layers, slot->n_layers);
	if (r < 0) {
		if (pending)
			pending_undo(slots, pending);
		release_slot(slots, number);
		return r;
	}
	*ret_slot = number;
	return 0;
}

int slot_run(struct slots *slots, uint32_t slot, int control_fd, slot_done_fn done, void *data)
{
	struct pending *pending = pending_add(slots, done, data, PENDING_OTHER, slot);
	int r;

	if (!pending)
		return -ENOMEM;
	r = sbx_spawner_run(slots->spawner, slots->next_tag, slot, control_fd);
	if (r < 0)
		pending_undo(slots, pending);
	return r;
}

int slot_renew(struct slots *slots, uint32_t slot, slot_done_fn done, void *data)
{
	struct pending *pending = pending_add(slots, done, data, PENDING_OTHER, slot);
	int r;

	if (!pending)
		return -ENOMEM;
	r = sbx_spawner_renew(slots->spawner, slots->next_tag, slot);
	if (r < 0)
		pending_undo(slots, pending);
	return r;
}

int slot_drop(struct slots *slots, uint32_t slot, slot_done_fn done, void *data)
{
	struct pending *pending = pending_add(slots, done, data, PENDING_DROP, slot);
	int r;

	if (!pending)
		return -ENOMEM;
	r = sbx_spawner_drop(slots->spawner, slots->next_tag, slot);
	if (r < 0)
		pending_undo(slots, pending);
	return r;
}

static const struct sbx_cgroup *group_of(const struct slots *slots, uint32_t slot)
{
	return slot == SLOT_NONE ? NULL : slots->slots[slot].group;
}

void slot_count(const struct slots *slots, uint32_t slot, struct sbx_cgroup_counts *ret)
{
	const struct sbx_cgroup *group = group_of(slots, slot);

	*ret = (struct sbx_cgroup_counts){0};
	if (group)
		sbx_cgroup_count(group, ret);
}

void slot_use(const struct slots *slots, uint32_t slot, struct sbx_cgroup_usage *ret)
{
	const struct sbx_cgroup *group = group_of(slots, slot);

	*ret = (struct sbx_cgroup_usage){0};
	if (group)
		sbx_cgroup_use(group, ret);
}
