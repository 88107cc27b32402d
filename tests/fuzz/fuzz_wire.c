/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a row of frames: a frame is handed out only when all of it is there, lies inside the
 * bytes, and is the same when it is written again; what comes before it is never looked at twice.
 */
#include <assert.h>
#include <string.h>

#include "sbx/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_frame(
	const struct sbx_buf *in, const struct sbx_wire_header *header, const char *payload)
{
	SBX_BUF struct sbx_buf again = SBX_BUF_INIT;

	assert(payload == in->data + sizeof(*header));
	assert(header->size <= in->size - sizeof(*header));
	assert(sbx_wire_put(&again, (enum sbx_wire_kind)header->kind, header->id, payload,
		       header->size) == 0);
	assert(again.size == sizeof(*header) + header->size);
	assert(memcmp(again.data, in->data, again.size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBX_BUF struct sbx_buf in = SBX_BUF_INIT;
	struct sbx_wire_header header;
	const char *payload;
	int r;

	assert(sbx_buf_append(&in, data, size) == 0);
	while ((r = sbx_wire_peek(&in, &header, &payload)) > 0) {
		size_t before = in.size;

		check_frame(&in, &header, payload);
		sbx_buf_consume(&in, sizeof(header) + header.size);
		assert(in.size == before - sizeof(header) - header.size);
	}
	assert(r == 0 || r == -EPROTO);
	return 0;
}
