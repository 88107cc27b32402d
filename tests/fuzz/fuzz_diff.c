/* SPDX-License-Identifier: MIT */
/*
 * Any two texts: the regions turn one into the other, the unified text can be written, and owners
 * tile the new one. The input is both texts with a byte of 0xff between them.
 */
#include <assert.h>
#include <string.h>

#include "sbx/diff.h"
#include "sbx/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_equal_lines(
	const struct sbx_lines *a, uint32_t i, const struct sbx_lines *b, uint32_t j, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		assert(sbx_line_equal(a, i + k, b, j + k));
}

static void check_diff(
	const struct sbx_lines *a, const struct sbx_lines *b, enum sbx_diff_flags flags)
{
	SBX_DIFF struct sbx_diff diff = SBX_DIFF_INIT;
	uint32_t i = 0;
	uint32_t j = 0;

	assert(sbx_diff(a, b, flags, &diff, NULL) == 0);
	for (size_t n = 0; n < diff.n_regions; n++) {
		const struct sbx_diff_region *region = &diff.regions[n];

		assert(region->a_start - i == region->b_start - j);
		assert(n == 0 || region->a_start > i);
		check_equal_lines(a, i, b, j, region->a_start - i);
		i = region->a_start + region->a_count;
		j = region->b_start + region->b_count;
	}
	assert(a->n - i == b->n - j);
	check_equal_lines(a, i, b, j, a->n - i);
}

static void check_owners(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	struct sbx_own_file files[] = {
		{.path = "f",
			.has_old = true,
			.old_data = a,
			.old_size = a_size,
			.has_new = true,
			.new_data = b,
			.new_size = b_size},
		{.path = "g", .has_old = true, .old_data = b, .old_size = b_size},
		{.path = "h", .has_new = true, .new_data = a, .new_size = a_size},
	};

	assert(sbx_own_compute(files, SBX_N_ELEMENTS(files), 1, NULL) == 0);
	for (size_t i = 0; i < SBX_N_ELEMENTS(files); i++) {
		uint32_t n = 0;

		for (uint32_t run = 0; run < files[i].n_runs; run++)
			n += files[i].runs[run].count;
		assert(n == files[i].n_lines);
		sbx_own_file_done(&files[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *separator = size ? memchr(data, 0xff, size) : NULL;
	size_t a_size = separator ? (size_t)(separator - data) : size;
	const uint8_t *b = separator ? separator + 1 : data + size;
	size_t b_size = size - (size_t)(b - data);

	for (int flags = 0; flags < 2; flags++) {
		SBX_LINES struct sbx_lines a_lines = SBX_LINES_INIT;
		SBX_LINES struct sbx_lines b_lines = SBX_LINES_INIT;
		SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

		assert(sbx_lines_split(data, a_size, flags, &a_lines, NULL) == 0);
		assert(sbx_lines_split(b, b_size, flags, &b_lines, NULL) == 0);
		check_diff(&a_lines, &b_lines, 0);
		check_diff(&a_lines, &b_lines, SBX_DIFF_PLAIN);
		assert(sbx_diff_unified(&a_lines, &b_lines, "a", NULL, 2, &out, NULL) == 0);
	}
	check_owners(data, a_size, b, b_size);
	return 0;
}
