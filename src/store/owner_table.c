/* SPDX-License-Identifier: MIT */
/* Names by number and numbers by name: an array and an open-addressed hash over it. */
#include <string.h>

#include "sbx/owners.h"

struct sbx_owner_table {
	char **names;
	size_t n;
	size_t capacity;
	uint32_t *slots; /* index + 1, or 0: empty */
	size_t n_slots;  /* a power of two, at least twice n */
};

void sbx_owner_table_free(struct sbx_owner_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n; i++)
		sbx_free_pointer(&table->names[i]);
	sbx_free_pointer(&table->names);
	sbx_free_pointer(&table->slots);
	sbx_free_pointer(&table);
}

/* FNV-1a: names are ours, so nobody can choose them to collide. */
static size_t hash_name(const char *name)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * UINT64_C(1099511628211);
	return (size_t)(h ^ (h >> 32));
}

/* The slot that holds name, or the empty one where it belongs. */
static uint32_t *find_slot(const struct sbx_owner_table *table, const char *name)
{
	size_t i = hash_name(name) & (table->n_slots - 1);

	while (table->slots[i] && strcmp(table->names[table->slots[i] - 1], name) != 0)
		i = (i + 1) & (table->n_slots - 1);
	return &table->slots[i];
}

static int grow(struct sbx_owner_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : 16;
	SBX_FREE uint32_t *slots = NULL;
	char **names;

	slots = calloc(capacity * 2, sizeof(*slots));
	names = reallocarray(table->names, capacity, sizeof(*names));
	if (names)
		table->names = names;
	if (!slots || !names)
		return -ENOMEM;
	free(table->slots);
	table->slots = sbx_take(&slots);
	table->n_slots = capacity * 2;
	table->capacity = capacity;
	for (size_t i = 0; i < table->n; i++)
		*find_slot(table, table->names[i]) = (uint32_t)i + 1;
	return 0;
}

int sbx_owner_table_new(struct sbx_owner_table **ret)
{
	SBX_OWNER_TABLE struct sbx_owner_table *table = NULL;
	uint32_t index;
	int r;

	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	r = sbx_owner_table_add(table, SBX_OWNER_ORIGINAL, &index);
	if (r < 0)
		return r;
	*ret = sbx_take(&table);
	return 0;
}

int sbx_owner_table_add(struct sbx_owner_table *table, const char *name, uint32_t *ret_index)
{
	size_t size = strlen(name);
	uint32_t *slot;

	if (!size || size > SBX_OWNER_MAX)
		return -EINVAL;
	if (table->n_slots && *(slot = find_slot(table, name))) {
		*ret_index = *slot - 1;
		return 0;
	}
	if (table->n >= SBX_OWNERS_MAX)
		return -E2BIG;
	if (table->n == table->capacity) {
		int r = grow(table);

		if (r < 0)
			return r;
	}
	table->names[table->n] = strdup(name);
	if (!table->names[table->n])
		return -ENOMEM;
	*ret_index = (uint32_t)table->n;
	table->n++;
	*find_slot(table, name) = *ret_index + 1;
	return 0;
}

const char *sbx_owner_table_name(const struct sbx_owner_table *table, uint32_t index)
{
	return index < table->n ? table->names[index] : NULL;
}

size_t sbx_owner_table_size(const struct sbx_owner_table *table)
{
	return table->n;
}
