/* SPDX-License-Identifier: MIT */
/* Aligned columns of text. */
#ifndef SBX_ADMIN_TABLE_H
#define SBX_ADMIN_TABLE_H

#include "sbx/buf.h"

#define TABLE_COLUMNS_MAX 32

struct table {
	size_t n_columns;
	size_t n_cells;
	char **cells; /* row by row; each ours */
	size_t widths[TABLE_COLUMNS_MAX];
	bool right[TABLE_COLUMNS_MAX]; /* numbers line up at their end */
};
#define TABLE SBX_CLEANUP(sbx_table_done)
void sbx_table_init(struct table *table, size_t n_columns);
void sbx_table_done(struct table *table);

/* Takes cell's bytes, which are empty afterwards. The next cell of the row, or of the next row. */
int sbx_table_add(struct table *table, struct sbx_buf *cell);
int sbx_table_add_string(struct table *table, const char *text);
/* All rows, two blanks between columns, no blanks at line ends. */
int sbx_table_print(const struct table *table, struct sbx_buf *out);

/* Columns that UTF-8 text fills, counting one for each character. */
size_t sbx_table_width(const char *text);

#endif
