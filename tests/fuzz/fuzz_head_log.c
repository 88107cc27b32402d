/* SPDX-License-Identifier: MIT */
/*
 * Any line of head.log: one that is taken for a record can be written again and read again. The
 * input is the line without its checksum, so that the rest of the reader is met as well; its first
 * byte says whether it gets the right one.
 */
#include <assert.h>
#include <string.h>

#include "../../src/store/checksum.h"
#include "../../src/store/head_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HEAD_RECORD struct head_record record = {0};
	SBX_BUF struct sbx_buf line = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf again = SBX_BUF_INIT;
	char hex[CHECKSUM_HEX_SIZE];
	int r;

	if (!size)
		return 0;
	checksum_hex(data + 1, size - 1, hex);
	if (data[0] & 1)
		assert(sbx_buf_printf(&line, "%s ", hex) == 0);
	assert(sbx_buf_append(&line, data + 1, size - 1) == 0);
	r = head_record_parse(line.data, line.size, &record);
	if (r < 0) {
		assert(r == -EBADMSG || r == -EPROTO || r == -ENOMEM);
		return 0;
	}
	assert(head_record_put(&record, &again) == 0);
	assert(again.size > 0 && again.data[again.size - 1] == '\n');
	head_record_done(&record);
	assert(head_record_parse(again.data, again.size - 1, &record) == 0);
	return 0;
}
