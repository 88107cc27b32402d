/* SPDX-License-Identifier: MIT */
#include "head_record.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "checksum.h"

#define FORMAT 1

static const char *const kind_names[] = {
	[HEAD_SNAPSHOT] = "snapshot",
	[HEAD_ADD] = "add",
	[HEAD_SQUASH] = "squash",
};

void head_record_done(struct head_record *record)
{
	sbx_stack_done(&record->list);
}

static struct json_object *json_of_stack(const struct sbx_stack *stack)
{
	SBX_JSON struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < stack->n; i++) {
		struct json_object *id = json_object_new_string(stack->ids[i]);

		if (!id || json_object_array_add(array, id) < 0) {
			json_object_put(id);
			return NULL;
		}
	}
	return sbx_take(&array);
}

static struct json_object *body_of(const struct head_record *record)
{
	SBX_JSON struct json_object *body = json_object_new_object();
	SBX_JSON struct json_object *list = json_of_stack(&record->list);

	if (!body || !list)
		return NULL;
	if (record->kind == HEAD_SNAPSHOT) {
		sbx_json_add_int(body, "format", FORMAT);
		sbx_json_add(body, "layers", sbx_take(&list));
		return sbx_take(&body);
	}
	sbx_json_add_string(body, "layer", *record->layer ? record->layer : NULL);
	if (record->kind == HEAD_SQUASH)
		sbx_json_add(body, "remove", sbx_take(&list));
	return sbx_take(&body);
}

int head_record_put(const struct head_record *record, struct sbx_buf *out)
{
	SBX_JSON struct json_object *body = body_of(record);
	SBX_BUF struct sbx_buf rest = SBX_BUF_INIT;
	char sum[CHECKSUM_HEX_SIZE];
	int r;

	if (!body)
		return -ENOMEM;
	r = sbx_buf_printf(&rest, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s %s", record->version,
		record->after, record->time_ns, kind_names[record->kind],
		sbx_json_text(body, NULL));
	if (r < 0)
		return r;
	checksum_hex(rest.data, rest.size, sum);
	return sbx_buf_printf(out, "%s %s\n", sum, rest.data);
}

/* Cuts a decimal number and the blank behind it off *at. */
static int take_number(const char **at, const char *end, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = *at;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (unsigned int)(*p - '0'), &value))
			return -EPROTO;
	if (p == *at || p == end || *p != ' ')
		return -EPROTO;
	*at = p + 1;
	*ret = value;
	return 0;
}

static int take_kind(const char **at, const char *end, enum head_record_kind *ret)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(kind_names); i++) {
		size_t size = strlen(kind_names[i]);

		if ((size_t)(end - *at) > size && !memcmp(*at, kind_names[i], size) &&
			(*at)[size] == ' ') {
			*at += size + 1;
			*ret = (enum head_record_kind)i;
			return 0;
		}
	}
	return -EPROTO;
}

static int stack_of_json(struct json_object *array, struct sbx_stack *stack)
{
	if (!json_object_is_type(array, json_type_array))
		return -EPROTO;
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *id = json_object_array_get_idx(array, i);
		int r;

		if (!json_object_is_type(id, json_type_string))
			return -EPROTO;
		r = sbx_stack_add(stack, json_object_get_string(id));
		if (r < 0)
			return r == -ENOMEM ? r : -EPROTO;
	}
	return 0;
}

static int parse_body(struct json_object *body, struct head_record *record)
{
	const char *layer;

	if (record->kind == HEAD_SNAPSHOT) {
		if (sbx_json_int(body, "format", 0) != FORMAT)
			return -EPROTO;
		return stack_of_json(sbx_json_member(body, "layers"), &record->list);
	}
	layer = sbx_json_string(body, "layer", NULL);
	if (layer && !sbx_id_valid(layer))
		return -EPROTO;
	if (layer)
		memcpy(record->layer, layer, strlen(layer) + 1); /* valid ids fit */
	if (record->kind == HEAD_SQUASH)
		return stack_of_json(sbx_json_member(body, "remove"), &record->list);
	return layer ? 0 : -EPROTO;
}

/* What follows the checksum, which is right: whatever is odd here was written that way. */
static int parse_rest(const char *at, const char *end, struct head_record *record)
{
	SBX_JSON struct json_object *body = NULL;

	if (take_number(&at, end, &record->version) < 0 ||
		take_number(&at, end, &record->after) < 0 ||
		take_number(&at, end, &record->time_ns) < 0 ||
		take_kind(&at, end, &record->kind) < 0)
		return -EPROTO;
	if (sbx_json_parse(at, (size_t)(end - at), &body, NULL) < 0)
		return -EPROTO;
	return parse_body(body, record);
}

int head_record_parse(const char *line, size_t size, struct head_record *ret)
{
	HEAD_RECORD struct head_record record = {0};
	char sum[CHECKSUM_HEX_SIZE];
	int r;

	if (size < CHECKSUM_HEX_SIZE || line[CHECKSUM_HEX_SIZE - 1] != ' ')
		return -EBADMSG;
	checksum_hex(line + CHECKSUM_HEX_SIZE, size - CHECKSUM_HEX_SIZE, sum);
	if (memcmp(sum, line, CHECKSUM_HEX_SIZE - 1) != 0)
		return -EBADMSG;
	r = parse_rest(line + CHECKSUM_HEX_SIZE, line + size, &record);
	if (r < 0)
		return r;
	*ret = record;
	record = (struct head_record){0};
	return 0;
}

int head_record_of_change(const struct sbx_head_change *change, struct head_record *ret)
{
	HEAD_RECORD struct head_record record = {
		.kind = change->remove ? HEAD_SQUASH : HEAD_ADD,
	};
	struct timespec now;
	int r;

	if (change->add_layer && !sbx_id_valid(change->add_layer))
		return -EINVAL;
	if (change->remove ? !change->remove->n : !change->add_layer)
		return -EINVAL;
	if (change->remove) {
		r = sbx_stack_copy(change->remove, &record.list);
		if (r < 0)
			return r;
	}
	if (change->add_layer)
		memcpy(record.layer, change->add_layer, strlen(change->add_layer) + 1);
	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	record.time_ns = (uint64_t)now.tv_sec * SBX_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
	*ret = record;
	record = (struct head_record){0};
	return 0;
}

static bool is_run_at(const struct sbx_stack *stack, size_t at, const struct sbx_stack *run)
{
	if (run->n > stack->n - at)
		return false;
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(stack->ids[at + i], run->ids[i]) != 0)
			return false;
	return true;
}

int head_record_apply(const struct head_record *record, struct sbx_stack *stack)
{
	SBX_STACK struct sbx_stack next = SBX_STACK_INIT;
	size_t at = stack->n;
	int r = 0;

	if (*record->layer && sbx_stack_find(stack, record->layer) >= 0)
		return -EEXIST;
	if (record->kind == HEAD_SQUASH) {
		ssize_t found = record->list.n ? sbx_stack_find(stack, record->list.ids[0]) : -1;

		if (found < 0 || !is_run_at(stack, (size_t)found, &record->list))
			return -EINVAL;
		at = (size_t)found;
	}
	for (size_t i = 0; i < at && r == 0; i++)
		r = sbx_stack_add(&next, stack->ids[i]);
	if (r == 0 && *record->layer)
		r = sbx_stack_add(&next, record->layer);
	for (size_t i = at + record->list.n; i < stack->n && r == 0; i++)
		r = sbx_stack_add(&next, stack->ids[i]);
	if (r < 0)
		return r;
	sbx_stack_done(stack);
	*stack = next;
	next = SBX_STACK_INIT;
	return 0;
}
