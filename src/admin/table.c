/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <assert.h>
#include <string.h>

#define GAP 2

void sbx_table_init(struct table *table, size_t n_columns)
{
	assert(n_columns > 0 && n_columns <= TABLE_COLUMNS_MAX);
	*table = (struct table){.n_columns = n_columns};
}

void sbx_table_done(struct table *table)
{
	for (size_t i = 0; i < table->n_cells; i++)
		free(table->cells[i]);
	sbx_free_pointer(&table->cells);
	table->n_cells = 0;
}

size_t sbx_table_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

int sbx_table_add(struct table *table, struct sbx_buf *cell)
{
	size_t column = table->n_cells % table->n_columns;
	char **cells, *text;

	/* Grown in powers of two: whenever the count is one, it is full. */
	if ((table->n_cells & (table->n_cells - 1)) == 0) {
		size_t n = SBX_MAX(table->n_cells * 2, (size_t)1);

		cells = reallocarray(table->cells, n, sizeof(*cells));
		if (!cells)
			return -ENOMEM;
		table->cells = cells;
	}
	text = sbx_buf_take(cell);
	if (!text)
		return -ENOMEM;
	table->cells[table->n_cells++] = text;
	table->widths[column] = SBX_MAX(table->widths[column], sbx_table_width(text));
	return 0;
}

int sbx_table_add_string(struct table *table, const char *text)
{
	SBX_BUF struct sbx_buf cell = SBX_BUF_INIT;
	int r = sbx_buf_append_string(&cell, text);

	return r < 0 ? r : sbx_table_add(table, &cell);
}

static bool rest_is_empty(char *const *row, size_t from, size_t n)
{
	for (size_t i = from; i < n; i++)
		if (*row[i])
			return false;
	return true;
}

static int print_row(const struct table *table, char *const *row, struct sbx_buf *out)
{
	int r = 0;

	for (size_t i = 0;
		r == 0 && i < table->n_columns && !rest_is_empty(row, i, table->n_columns); i++) {
		int pad = (int)(table->widths[i] - sbx_table_width(row[i]));
		bool last = rest_is_empty(row, i + 1, table->n_columns);

		if (table->right[i])
			r = sbx_buf_printf(out, "%*s%s%*s", pad, "", row[i], last ? 0 : GAP, "");
		else
			r = sbx_buf_printf(out, "%s%*s", row[i], last ? 0 : pad + GAP, "");
	}
	return r < 0 ? r : sbx_buf_append(out, "\n", 1);
}

int sbx_table_print(const struct table *table, struct sbx_buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < table->n_cells; i += table->n_columns)
		r = print_row(table, table->cells + i, out);
	return r;
}
