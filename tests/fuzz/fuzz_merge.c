/* SPDX-License-Identifier: MIT */
/*
 * Any three texts: merging them is symmetric, a side that equals base or the other side is clean,
 * and markers can be written. The input is base, ours and theirs with bytes of 0xff between them.
 */
#include <assert.h>
#include <string.h>

#include "sbx/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sbx_merge_text next_text(const uint8_t **data, size_t *size)
{
	const uint8_t *separator = *size ? memchr(*data, 0xff, *size) : NULL;
	struct sbx_merge_text text = {.data = *data};
	size_t used;

	text.size = separator ? (size_t)(separator - *data) : *size;
	used = separator ? text.size + 1 : text.size;
	*data += used;
	*size -= used;
	return text;
}

static bool is_text(const struct sbx_merge *merge, const struct sbx_merge_text *text)
{
	return merge->clean && merge->merged.size == text->size &&
	       (text->size == 0 || !memcmp(merge->merged.data, text->data, text->size));
}

static void check_result(const struct sbx_merge_text *base, const struct sbx_merge_text *ours,
	const struct sbx_merge_text *theirs, const struct sbx_merge_text *expected)
{
	SBX_MERGE struct sbx_merge merge = SBX_MERGE_INIT;

	assert(sbx_merge(base, ours, theirs, &merge, NULL) == 0);
	assert(is_text(&merge, expected));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbx_merge_text base = next_text(&data, &size);
	struct sbx_merge_text ours = next_text(&data, &size);
	struct sbx_merge_text theirs = {.data = data, .size = size};
	SBX_MERGE struct sbx_merge merge = SBX_MERGE_INIT;
	SBX_MERGE struct sbx_merge turned = SBX_MERGE_INIT;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;

	assert(sbx_merge(&base, &ours, &theirs, &merge, NULL) == 0);
	assert(sbx_merge(&base, &theirs, &ours, &turned, NULL) == 0);
	assert(merge.clean == turned.clean && merge.n_conflicts == turned.n_conflicts);
	assert(merge.clean == (merge.n_conflicts == 0));
	if (merge.clean) {
		struct sbx_merge_text merged = {
			.data = merge.merged.data, .size = merge.merged.size};

		assert(is_text(&turned, &merged));
	}
	assert(sbx_merge_markers(&base, &ours, &theirs, &out, NULL) == 0);
	check_result(&base, &ours, &base, &ours);
	check_result(&base, &base, &theirs, &theirs);
	check_result(&base, &ours, &ours, &ours);
	return 0;
}
