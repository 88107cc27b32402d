/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "sbx/wire.h"

Test(wire, frames_come_out_as_they_went_in_however_they_are_cut)
{
	SBX_BUF struct sbx_buf all = SBX_BUF_INIT, in = SBX_BUF_INIT;
	struct sbx_wire_header header;
	const char *payload;
	size_t n = 0;

	cr_assert_eq(sbx_wire_put(&all, SBX_WIRE_REQUEST, 7, "hello", 5), 0);
	cr_assert_eq(sbx_wire_put(&all, SBX_WIRE_CANCEL, UINT64_MAX, NULL, 0), 0);
	for (size_t i = 0; i < all.size; i++) {
		cr_assert_eq(sbx_buf_append(&in, all.data + i, 1), 0);
		while (sbx_wire_peek(&in, &header, &payload) == 1) {
			if (n++ == 0) {
				cr_assert_eq(header.id, 7);
				cr_assert(!memcmp(payload, "hello", 5));
			} else {
				cr_assert_eq(header.kind, SBX_WIRE_CANCEL);
				cr_assert_eq(header.id, UINT64_MAX);
			}
			sbx_buf_consume(&in, sizeof(header) + header.size);
		}
	}
	cr_assert_eq(n, 2);
	cr_assert_eq(in.size, 0);
}

Test(wire, what_cannot_be_a_header_is_refused)
{
	const struct sbx_wire_header bad[] = {
		{.size = 1, .kind = 0},
		{.size = 1, .kind = SBX_WIRE_CHUNK + 1},
		{.size = SBX_WIRE_PAYLOAD_MAX + 1, .kind = SBX_WIRE_REQUEST},
	};

	for (size_t i = 0; i < SBX_N_ELEMENTS(bad); i++) {
		SBX_BUF struct sbx_buf in = SBX_BUF_INIT;
		struct sbx_wire_header header;
		const char *payload;

		cr_assert_eq(sbx_buf_append(&in, &bad[i], sizeof(bad[i])), 0);
		cr_assert_eq(sbx_wire_peek(&in, &header, &payload), -EPROTO);
	}
}

Test(wire, an_error_keeps_kind_message_and_details)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	SBX_JSON struct json_object *details = json_object_new_object();
	struct sbx_wire_header header;
	struct sbx_err err;
	const char *payload;

	sbx_json_add_string(details, "path", "x");
	(void)sbx_err_kind(&err, SBX_KIND_NOT_FOUND, ENOENT, "no %s", "x");
	cr_assert_eq(sbx_wire_put_error(&out, 3, &err, details), 0);
	cr_assert_eq(sbx_wire_peek(&out, &header, &payload), 1);
	cr_assert_eq(header.kind, SBX_WIRE_ERROR);
	cr_assert_eq(header.size, strlen("{\"kind\":\"not_found\",\"message\":\"no x\","
					 "\"details\":{\"path\":\"x\"}}"));
	cr_assert(!memcmp(payload,
		"{\"kind\":\"not_found\",\"message\":\"no x\",\"details\":{\"path\":\"x\"}}",
		header.size));
}

Test(err, context_is_put_before_and_long_messages_are_cut_at_a_character)
{
	char text[4 * SBX_ERR_MESSAGE_MAX];
	struct sbx_err err;

	cr_assert_eq(sbx_err_set(&err, ENOENT, "open %s: %m", "f"), -ENOENT);
	cr_assert_eq(sbx_err_wrap(&err, -ENOENT, "read layer %d", 5), -ENOENT);
	cr_assert_str_eq(err.message, "read layer 5: open f: No such file or directory");
	cr_assert_eq(err.kind, SBX_KIND_FAILED);
	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 4);
	(void)sbx_err_set(&err, EIO, "%s", text);
	cr_assert_lt(strlen(err.message), SBX_ERR_MESSAGE_MAX);
	cr_assert(sbx_utf8_valid(err.message, strlen(err.message)));
	cr_assert(strstr(err.message, "..."));
	for (int kind = SBX_KIND_FAILED; kind <= SBX_KIND_INTERNAL; kind++)
		cr_assert_eq(sbx_err_kind_parse(sbx_err_kind_name((enum sbx_err_kind)kind)), kind);
}
