/* SPDX-License-Identifier: MIT */
#include "sbx/word.h"

#include <ctype.h>

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Three rows of the usual table: rows[0] is being filled, rows[1] and rows[2] are those above. */
struct rows {
	size_t cells[3][SBX_WORD_MAX + 1];
	size_t *row[3];
};

static void rotate(struct rows *rows)
{
	size_t *oldest = rows->row[2];

	rows->row[2] = rows->row[1];
	rows->row[1] = rows->row[0];
	rows->row[0] = oldest;
}

static size_t cell(const struct rows *rows, const char *a, size_t i, const char *b, size_t j)
{
	size_t best = SBX_MIN(rows->row[1][j], rows->row[0][j - 1]) + 1;

	best = SBX_MIN(best, rows->row[1][j - 1] + !same(a[i - 1], b[j - 1]));
	if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
		best = SBX_MIN(best, rows->row[2][j - 2] + 1);
	return best;
}

size_t sbx_word_distance(const char *a, const char *b)
{
	size_t n_a = strlen(a), n_b = strlen(b);
	struct rows rows;

	if (n_a > SBX_WORD_MAX || n_b > SBX_WORD_MAX)
		return SIZE_MAX;
	for (size_t k = 0; k < 3; k++)
		rows.row[k] = rows.cells[k];
	for (size_t j = 0; j <= n_b; j++)
		rows.row[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		rotate(&rows);
		rows.row[0][0] = i;
		for (size_t j = 1; j <= n_b; j++)
			rows.row[0][j] = cell(&rows, a, i, b, j);
	}
	return rows.row[0][n_b];
}
