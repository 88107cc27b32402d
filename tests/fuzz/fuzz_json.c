/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as JSON: they are refused with a message in UTF-8, or what they mean can be written and
 * read again and is then written in the same way.
 */
#include <assert.h>
#include <string.h>

#include "sbx/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBX_JSON struct json_object *value = NULL;
	SBX_JSON struct json_object *again = NULL;
	struct sbx_err err = SBX_ERR_INIT;
	const char *text, *text_again;
	size_t n, n_again;

	if (sbx_json_parse((const char *)data, size, &value, &err) < 0) {
		assert(err.code == EINVAL && err.kind == SBX_KIND_INVALID && !value);
		assert(sbx_utf8_valid(err.message, strlen(err.message)));
		return 0;
	}
	assert(sbx_utf8_valid(data, size));
	text = sbx_json_text(value, &n);
	if (strstr(text, "Infinity"))
		return 0; /* a number beyond a double, or a string with this word */
	assert(sbx_json_parse(text, n, &again, &err) == 0);
	text_again = sbx_json_text(again, &n_again);
	assert(n == n_again && memcmp(text, text_again, n) == 0);
	return 0;
}
