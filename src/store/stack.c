/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "sbx/view.h"

void sbx_stack_done(struct sbx_stack *stack)
{
	sbx_free_pointer(&stack->ids);
	*stack = SBX_STACK_INIT;
}

static int append(struct sbx_stack *stack, const char *layer_id, size_t max)
{
	char(*ids)[SBX_ID_SIZE];

	if (!sbx_id_valid(layer_id))
		return -EINVAL;
	if (stack->n >= max)
		return -E2BIG;
	ids = reallocarray(stack->ids, stack->n + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	stack->ids = ids;
	memset(ids[stack->n], 0, sizeof(*ids));
	memcpy(ids[stack->n], layer_id, strlen(layer_id));
	stack->n++;
	return 0;
}

int sbx_stack_add(struct sbx_stack *stack, const char *layer_id)
{
	return append(stack, layer_id, SBX_STACK_MAX);
}

int sbx_stack_include(struct sbx_stack *set, const char *layer_id)
{
	if (sbx_stack_find(set, layer_id) >= 0)
		return 0;
	return append(set, layer_id, SBX_STACK_SET_MAX);
}

int sbx_stack_include_all(struct sbx_stack *set, const struct sbx_stack *stack)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < stack->n; i++)
		r = sbx_stack_include(set, stack->ids[i]);
	return r;
}

int sbx_stack_copy(const struct sbx_stack *from, struct sbx_stack *ret)
{
	struct sbx_stack copy = {.n = from->n};

	if (from->n) {
		copy.ids = reallocarray(NULL, from->n, sizeof(*copy.ids));
		if (!copy.ids)
			return -ENOMEM;
		memcpy(copy.ids, from->ids, from->n * sizeof(*copy.ids));
	}
	*ret = copy;
	return 0;
}

ssize_t sbx_stack_find(const struct sbx_stack *stack, const char *layer_id)
{
	for (size_t i = 0; i < stack->n; i++)
		if (!strcmp(stack->ids[i], layer_id))
			return (ssize_t)i;
	return -ENOENT;
}
