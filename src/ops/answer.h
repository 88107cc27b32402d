/* SPDX-License-Identifier: MIT */
/* What answers and messages of the ops layer are made with. */
#ifndef SBX_OPS_ANSWER_H
#define SBX_OPS_ANSWER_H

#include "sbx/json.h"

/* Puts value (taken) at the end of array; aborts on no memory, as sbx_json_add() does. */
static inline void sbx_answer_push(struct json_object *array, struct json_object *value)
{
	if (json_object_array_add(array, value) < 0)
		abort();
}

/* How many of the first max of size bytes to show so that no UTF-8 character is split. */
static inline size_t sbx_answer_cut(const char *data, size_t size, size_t max)
{
	size_t n = SBX_MIN(size, max);

	if (n == size)
		return n;
	while (n > 0 && ((unsigned char)data[n] & 0xc0) == 0x80)
		n--;
	return n;
}

#endif
