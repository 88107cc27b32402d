/* SPDX-License-Identifier: MIT */
#include "sbx/aside.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sbx/fs.h"

static bool may_be_long(const char *name)
{
	static const char *const names[] = {"cmd", "content", "new_string", "old_string", "stdin"};

	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

int sbx_op_parse(const char *payload, size_t size, const struct sbx_op **ret_op,
	struct json_object **ret_args, struct sbx_err *err)
{
	SBX_JSON struct json_object *body = NULL;
	const struct sbx_op *op;
	struct json_object *args;
	int r = sbx_json_parse(payload, size, &body, err);

	if (r < 0)
		return r;
	op = sbx_op_find(sbx_json_string(body, "op", ""));
	if (!op)
		return sbx_err_kind(err, SBX_KIND_INVALID, ENOSYS, "there is no operation '%.64s'",
			sbx_json_string(body, "op", ""));
	args = sbx_json_member(body, "args");
	if (!json_object_is_type(args, json_type_object))
		return sbx_err_kind(
			err, SBX_KIND_INVALID, EINVAL, "%s: arguments must be an object", op->name);
	r = sbx_op_check(op, args, err);
	if (r < 0)
		return r;
	*ret_op = op;
	*ret_args = json_object_get(args);
	return 0;
}

static int put_text(struct json_object *parent, const char *name, struct json_object *value, int fd,
	off_t *at, struct sbx_err *err)
{
	size_t size = (size_t)json_object_get_string_len(value);
	struct json_object *place, *aside;
	int r;

	if (!may_be_long(name))
		return sbx_err_kind(err, SBX_KIND_INVALID, E2BIG,
			"argument \"%.64s\" has %zu bytes, more than the limit of %u", name, size,
			SBX_ASIDE_TEXT_MIN);
	r = sbx_fs_write_all(fd, json_object_get_string(value), size);
	if (r < 0)
		return sbx_err_set(err, -r, "put a long argument aside: %m");
	place = json_object_new_object();
	aside = json_object_new_array();
	if (!place || !aside || json_object_array_add(aside, json_object_new_int64(*at)) < 0 ||
		json_object_array_add(aside, json_object_new_int64((int64_t)size)) < 0)
		abort();
	sbx_json_add(place, "aside", aside);
	*at += (off_t)size;
	sbx_json_add(parent, name, place); /* in place of value */
	return 0;
}

static int put(struct json_object *object, int fd, off_t *at, struct sbx_err *err)
{
	int r = 0;

	json_object_object_foreach (object, name, value) {
		size_t n = json_object_is_type(value, json_type_array)
				   ? json_object_array_length(value)
				   : 0;

		for (size_t i = 0; r == 0 && i < n; i++)
			r = put(json_object_array_get_idx(value, i), fd, at, err);
		if (r == 0 && json_object_is_type(value, json_type_string) &&
			json_object_get_string_len(value) > (int)SBX_ASIDE_TEXT_MIN)
			r = put_text(object, name, value, fd, at, err); /* frees value */
	}
	return r;
}

int sbx_aside_put(struct json_object *args, int fd, struct sbx_err *err)
{
	off_t at = lseek(fd, 0, SEEK_END);

	if (at < 0)
		return sbx_err_set(err, errno, "put a long argument aside: %m");
	return put(args, fd, &at, err);
}

static struct json_object *place_of(struct json_object *value)
{
	struct json_object *place = sbx_json_member(value, "aside");

	return json_object_is_type(place, json_type_array) ? place : NULL;
}

static int read_place(struct json_object *place, int fd, struct sbx_buf *ret, struct sbx_err *err)
{
	off_t at = json_object_get_int64(json_object_array_get_idx(place, 0));
	size_t size = (size_t)json_object_get_int64(json_object_array_get_idx(place, 1));
	int r = sbx_buf_reserve(ret, size + 1);

	if (r < 0)
		return sbx_err_set(err, -r, "read a long argument: %m");
	while (ret->size < size) {
		ssize_t n =
			pread(fd, ret->data + ret->size, size - ret->size, at + (off_t)ret->size);

		if (n <= 0)
			return sbx_err_set(err, n < 0 ? errno : EIO, "read a long argument: %m");
		ret->size += (size_t)n;
	}
	ret->data[size] = '\0';
	return 0;
}

int sbx_aside_text(struct json_object *value, int fd, struct sbx_buf *ret_text, struct sbx_err *err)
{
	struct json_object *place = place_of(value);
	int r;

	if (place)
		return read_place(place, fd, ret_text, err);
	r = sbx_buf_append(
		ret_text, json_object_get_string(value), (size_t)json_object_get_string_len(value));
	return r < 0 ? sbx_err_set(err, -r, "read an argument: %m") : 0;
}

int sbx_aside_restore(struct json_object *args, int fd, struct sbx_err *err)
{
	int r = 0;

	json_object_object_foreach (args, name, value) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
		size_t n = json_object_is_type(value, json_type_array)
				   ? json_object_array_length(value)
				   : 0;

		for (size_t i = 0; r == 0 && i < n; i++)
			r = sbx_aside_restore(json_object_array_get_idx(value, i), fd, err);
		if (r < 0 || !place_of(value))
			continue;
		r = read_place(place_of(value), fd, &text, err);
		if (r == 0)
			sbx_json_add_bytes(args, name, text.data, text.size);
	}
	return r;
}

static int parse_file(
	int fd, const struct sbx_op **ret_op, struct json_object **ret_args, struct sbx_err *err)
{
	struct stat st;
	void *map;
	int r;

	if (fstat(fd, &st) < 0)
		return sbx_err_set(err, errno, "look at a long request: %m");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return sbx_err_set(err, errno, "map a long request: %m");
	r = sbx_op_parse(map, (size_t)st.st_size, ret_op, ret_args, err);
	(void)munmap(map, (size_t)st.st_size); /* ours: cannot fail */
	return r;
}

int sbx_job_intake(struct sbx_job *job, struct sbx_err *err)
{
	SBX_JSON struct json_object *args = NULL;
	const struct sbx_op *op = NULL;
	int r = parse_file(job->fd, &op, &args, err);

	if (r < 0)
		return r;
	if (ftruncate(job->fd, 0) < 0) /* what comes aside takes its room */
		return sbx_err_set(err, errno, "put a long argument aside: %m");
	r = sbx_aside_put(args, job->fd, err);
	if (r < 0)
		return r;
	sbx_json_add_string(job->result, "op", op->name);
	sbx_json_add(job->result, "args", sbx_take(&args));
	return 0;
}
