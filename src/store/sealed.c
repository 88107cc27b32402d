/* SPDX-License-Identifier: MIT */
#include "sealed.h"

#include <string.h>

#include "checksum.h"

#define FRONT  "{\"format\":1,\"checksum\":\""
#define MIDDLE "\",\"body\":"
#define BACK   "}\n"

#define BODY_AT (sizeof(FRONT) - 1 + CHECKSUM_HEX_SIZE - 1 + sizeof(MIDDLE) - 1)

int sealed_write(int dir_fd, const char *name, struct json_object *body,
	enum sbx_fs_write_flags flags, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	char sum[CHECKSUM_HEX_SIZE];
	const char *text;
	size_t size;
	int r;

	text = sbx_json_text(body, &size);
	checksum_hex(text, size, sum);
	r = sbx_buf_printf(&file, FRONT "%s" MIDDLE "%s" BACK, sum, text);
	if (r == 0 && file.size > SEALED_MAX)
		r = -EFBIG;
	if (r == 0)
		r = sbx_fs_write_at(dir_fd, name, 0600, file.data, file.size, flags);
	return r < 0 ? sbx_err_set(err, -r, "write %s: %m", name) : 0;
}

/* What is wrong with the frame around the body, or NULL. */
static const char *frame_damage(const struct sbx_buf *file)
{
	char sum[CHECKSUM_HEX_SIZE];
	size_t back = sizeof(BACK) - 1;

	if (file->size < BODY_AT + back)
		return "it is too short";
	if (memcmp(file->data, FRONT, sizeof(FRONT) - 1) != 0)
		return "it does not begin as format 1 does";
	if (memcmp(file->data + BODY_AT - (sizeof(MIDDLE) - 1), MIDDLE, sizeof(MIDDLE) - 1) != 0 ||
		memcmp(file->data + file->size - back, BACK, back) != 0)
		return "it is cut or mangled";
	checksum_hex(file->data + BODY_AT, file->size - BODY_AT - back, sum);
	if (memcmp(file->data + sizeof(FRONT) - 1, sum, sizeof(sum) - 1) != 0)
		return "its checksum does not match";
	return NULL;
}

int sealed_read(int dir_fd, const char *name, struct json_object **ret_body, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	struct sbx_err parse_err = SBX_ERR_INIT;
	const char *damage;
	int r;

	r = sbx_fs_read_at(dir_fd, name, SEALED_MAX, &file);
	if (r == -EFBIG)
		return sbx_err_set(err, EBADMSG, "%s is damaged: it is too long", name);
	if (r < 0)
		return sbx_err_set(err, -r, "read %s: %m", name);
	damage = frame_damage(&file);
	if (damage)
		return sbx_err_set(err, EBADMSG, "%s is damaged: %s", name, damage);
	r = sbx_json_parse(file.data + BODY_AT, file.size - BODY_AT - (sizeof(BACK) - 1), ret_body,
		&parse_err);
	if (r < 0)
		return sbx_err_set(err, EBADMSG, "%s is damaged: %s", name, parse_err.message);
	return 0;
}
