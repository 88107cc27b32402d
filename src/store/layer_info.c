/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "fields.h"
#include "sbx/store.h"
#include "sealed.h"

#define U64(member) FIELD_OF(struct sbx_layer_info, member, #member, FIELD_U64)

static const struct field info_fields[] = {
	FIELD_OF(struct sbx_layer_info, id, "layer_id", FIELD_ARRAY),
	U64(parent_version),
	U64(created_ns),
	FIELD_OF(struct sbx_layer_info, owner, "owner", FIELD_STRING),
	FIELD_OPTIONAL(struct sbx_layer_info, command, "command"),
	U64(added),
	U64(modified),
	U64(deleted),
	U64(merged),
	U64(ignored),
	U64(n_entries),
	U64(n_bytes),
	FIELD_OF(struct sbx_layer_info, tree_digest, "tree_digest", FIELD_ARRAY),
};

void sbx_layer_info_done(struct sbx_layer_info *info)
{
	fields_done(info_fields, SBX_N_ELEMENTS(info_fields), info);
	*info = (struct sbx_layer_info){0};
}

void sbx_layer_info_to_json(const struct sbx_layer_info *info, struct json_object *ret_object)
{
	fields_to_json(info_fields, SBX_N_ELEMENTS(info_fields), info, ret_object);
}

int sbx_layer_info_load(int layer_fd, struct sbx_layer_info *ret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_layer_info_done) struct sbx_layer_info info = {0};
	SBX_JSON struct json_object *body = NULL;
	int r;

	r = sealed_read(layer_fd, SBX_LAYER_JSON, &body, err);
	if (r < 0)
		return r;
	r = fields_from_json(info_fields, SBX_N_ELEMENTS(info_fields), body, &info, err);
	if (r < 0)
		return sbx_err_wrap(err, r, SBX_LAYER_JSON " is damaged");
	*ret = info;
	info = (struct sbx_layer_info){0};
	return 0;
}

int sbx_layer_info_save(int layer_fd, const struct sbx_layer_info *info, struct sbx_err *err)
{
	SBX_JSON struct json_object *body = json_object_new_object();

	if (!body)
		return sbx_err_set(err, ENOMEM, "write " SBX_LAYER_JSON ": %m");
	sbx_layer_info_to_json(info, body);
	return sealed_write(layer_fd, SBX_LAYER_JSON, body, 0, err);
}
