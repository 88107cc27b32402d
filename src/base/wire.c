/* SPDX-License-Identifier: MIT */
#include "sbx/wire.h"

#include <string.h>

int sbx_wire_put(
	struct sbx_buf *out, enum sbx_wire_kind kind, uint64_t id, const void *payload, size_t size)
{
	struct sbx_wire_header header = {.size = (uint32_t)size, .kind = kind, .id = id};
	int r;

	if (size > SBX_WIRE_PAYLOAD_MAX)
		return -EMSGSIZE;
	r = sbx_buf_reserve(out, sizeof(header) + size);
	if (r < 0)
		return r;
	(void)sbx_buf_append(out, &header, sizeof(header)); /* reserved above */
	(void)sbx_buf_append(out, payload, size);
	return 0;
}

int sbx_wire_peek(
	const struct sbx_buf *in, struct sbx_wire_header *ret_header, const char **ret_payload)
{
	struct sbx_wire_header header;

	if (in->size < sizeof(header))
		return 0;
	memcpy(&header, in->data, sizeof(header));
	if (header.kind < SBX_WIRE_REQUEST || header.kind > SBX_WIRE_CHUNK ||
		header.size > SBX_WIRE_PAYLOAD_MAX)
		return -EPROTO;
	if (in->size - sizeof(header) < header.size)
		return 0;
	*ret_header = header;
	*ret_payload = in->data + sizeof(header);
	return 1;
}

int sbx_wire_put_error(
	struct sbx_buf *out, uint64_t id, const struct sbx_err *err, struct json_object *details)
{
	SBX_JSON struct json_object *body = json_object_new_object();
	const char *text;
	size_t size;

	if (!body)
		return -ENOMEM;
	sbx_json_add_string(body, "kind", sbx_err_kind_name(err->kind));
	sbx_json_add_string(body, "message", err->message);
	sbx_json_add(
		body, "details", details ? json_object_get(details) : json_object_new_object());
	text = sbx_json_text(body, &size);
	return sbx_wire_put(out, SBX_WIRE_ERROR, id, text, size);
}
