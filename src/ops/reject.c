/* SPDX-License-Identifier: MIT */
#include "reject.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "answer.h"
#include "sbx/digest.h"
#include "sbx/fs.h"
#include "sbx/id.h"
#include "sbx/store.h"

#define FORMAT 1

static struct json_object *stack_to_json(const struct sbx_stack *stack)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < stack->n; i++)
		sbx_answer_push(array, json_object_new_string(stack->ids[i]));
	return array;
}

static struct json_object *conflict_list(const struct sbx_publication *p)
{
	return p->conflicts.list ? json_object_get(p->conflicts.list) : json_object_new_array();
}

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
	return (int64_t)now.tv_sec * (int64_t)SBX_NSEC_PER_SEC + now.tv_nsec;
}

static struct json_object *describe(
	const struct sbx_publication *p, const char *class, const char *message)
{
	struct json_object *o = json_object_new_object();

	sbx_json_add_string(o, "reject_id", p->reject_id);
	sbx_json_add_string(o, "class", class);
	sbx_json_add_string(o, "message", message);
	sbx_json_add_string(o, "owner", p->owner);
	sbx_json_add_string(o, "command", p->command);
	sbx_json_add_int(o, "created_ns", now_ns());
	sbx_json_add_int(o, "base_version", (int64_t)p->base_version);
	sbx_json_add_int(o, "version", (int64_t)p->version);
	sbx_json_add_int(o, "n_conflicts", (int64_t)p->conflicts.n);
	sbx_json_add(o, "base", stack_to_json(&p->base_stack));
	sbx_json_add(o, "conflicts", conflict_list(p));
	return o;
}

static void checksum_of(const char *text, size_t size, char ret_hex[static SBX_DIGEST_HEX_SIZE])
{
	struct sbx_digest digest;

	sbx_digest_bytes(text, size, &digest);
	sbx_digest_hex(&digest, ret_hex);
}

/* {"format":1,"checksum":"...","body":{...}}: the checksum is that of the body's bytes. */
static int write_json(int fd, struct json_object *body, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	char checksum[SBX_DIGEST_HEX_SIZE];
	size_t size;
	const char *body_text = sbx_json_text(body, &size);
	int r;

	checksum_of(body_text, size, checksum);
	r = sbx_buf_printf(&text, "{\"format\":%d,\"checksum\":\"%s\",\"body\":", FORMAT, checksum);
	if (r == 0)
		r = sbx_buf_append(&text, body_text, size);
	if (r == 0)
		r = sbx_buf_append_string(&text, "}\n");
	if (r == 0)
		r = sbx_fs_write_at(
			fd, SBX_REJECT_JSON, 0600, text.data, text.size, SBX_FS_DURABLE);
	return r < 0 ? sbx_err_set(err, -r, "write " SBX_REJECT_JSON ": %m") : 0;
}

static void rejected(struct sbx_publication *p, const char *class, const char *message)
{
	struct json_object *result = p->job->result;

	sbx_json_add_string(result, "outcome", "rejected");
	sbx_json_add_string(result, "class", class);
	if (message)
		sbx_json_add_string(result, "message", message);
	sbx_json_add(result, "conflicts", conflict_list(p));
	sbx_json_add_int(result, "n_conflicts", (int64_t)p->conflicts.n);
	sbx_json_add_string(result, "reject_id", p->reject_id);
}

/* The tree goes to the reject. */
static int move(struct sbx_publication *p, struct sbx_err *err)
{
	int r = sbx_moved_move(
		p->job->context, p->home_fd, p->tree_name, SBX_MOVED_TO_REJECT, p->reject_id, err);

	if (r < 0)
		return r;
	/* what was not captured to its end has no complete list of files */
	return p->is_captured && p->set.n <= SBX_PUBLISH_SYNC_EACH_MAX
		       ? sbx_publish_sync_each(&p->set, p->tree_fd, SBX_SYNC_DONE, err)
		       : sbx_publish_sync_all(p->tree_fd, err);
}

static bool is_home(const struct sbx_publication *p, int reject_fd)
{
	struct stat a, b;

	return fstat(p->home_fd, &a) == 0 && fstat(reject_fd, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

static int keep(
	struct sbx_publication *p, const char *class, const char *message, struct sbx_err *err)
{
	SBX_JSON struct json_object *body = describe(p, class, message);
	SBX_CLOSE int fd = -EBADF;
	int r;

	r = sbx_fs_ensure_dir(p->job->context->rejects_fd, p->reject_id, 0700, &fd);
	if (r < 0)
		return sbx_err_set(err, -r, "make reject %s: %m", p->reject_id);
	if (!is_home(p, fd))
		r = move(p, err);
	if (r == 0)
		r = write_json(fd, body, err);
	if (r == 0)
		r = sbx_publish_sync_name(p->job->context->rejects_fd, ".", err);
	return r;
}

/*
 * The reject that could not be made: the tree comes home and the directory goes. What is not
 * brought back now is found by its mark at the next try, or start.
 */
static void give_up(struct sbx_publication *p)
{
	struct sbx_job_context *context = p->job->context;
	enum sbx_moved_state state;
	SBX_CLOSE int fd = -EBADF;

	if (sbx_moved_recover(context, p->home_fd, p->tree_name, NULL, &state, NULL) < 0 ||
		(state != SBX_MOVED_NOT && state != SBX_MOVED_BACK))
		return;
	fd = openat(
		context->rejects_fd, p->reject_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !is_home(p, fd))
		(void)sbx_fs_remove_tree(context->rejects_fd, p->reject_id); /* or swept */
}

int sbx_reject_keep(
	struct sbx_publication *p, const char *class, const char *message, struct sbx_err *err)
{
	int r = keep(p, class, message, err);

	if (r == 0)
		rejected(p, class, message);
	else
		give_up(p);
	return r;
}

/* Checks the frame around the body. The text is ours, so the body begins where we put it. */
static int check(const char *text, size_t size, struct json_object *json, struct sbx_err *err)
{
	static const char key[] = "\"body\":";
	const char *body = memmem(text, size, key, sizeof(key) - 1);
	char checksum[SBX_DIGEST_HEX_SIZE];

	if (sbx_json_int(json, "format", 0) != FORMAT)
		return sbx_err_set(err, EPROTO, "its format is not known here");
	if (!body || size < 3 || text[size - 2] != '}')
		return sbx_err_set(err, EBADMSG, "it is cut short");
	body += sizeof(key) - 1;
	checksum_of(body, (size_t)(text + size - 2 - body), checksum);
	if (strcmp(checksum, sbx_json_string(json, "checksum", "")) != 0)
		return sbx_err_set(err, EBADMSG, "its checksum is wrong");
	return 0;
}

static int read_json(int fd, struct json_object **ret, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf text = SBX_BUF_INIT;
	SBX_JSON struct json_object *json = NULL;
	struct json_object *body;
	int r;

	r = sbx_fs_read_at(fd, SBX_REJECT_JSON, SBX_REJECT_JSON_MAX, &text);
	if (r < 0)
		return sbx_err_set(err, -r, "read it: %m");
	r = sbx_json_parse(text.data, text.size, &json, err);
	if (r == 0)
		r = check(text.data, text.size, json, err);
	if (r < 0)
		return r;
	body = sbx_json_member(json, "body");
	if (!json_object_is_type(body, json_type_object))
		return sbx_err_set(err, EBADMSG, "it has no body");
	*ret = json_object_get(body);
	return 0;
}

int sbx_reject_open(struct sbx_job_context *context, const char *id, int *ret_fd,
	struct json_object **ret_json, struct sbx_err *err)
{
	SBX_CLOSE int fd = -EBADF;
	int r;

	if (sbx_id_valid(id))
		fd = openat(
			context->rejects_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, SBX_REJECT_JSON, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
			"there is no reject %s; 'sbx-admin reject list' shows those there are", id);
	r = read_json(fd, ret_json, err);
	if (r < 0)
		return sbx_err_wrap(err, r, SBX_REJECT_JSON " of reject %s is damaged", id);
	*ret_fd = sbx_fd_take(&fd);
	return 0;
}

int sbx_reject_remove(struct sbx_job_context *context, const char *id, struct sbx_err *err)
{
	char trash[SBX_ID_SIZE + 8];
	int r;

	(void)snprintf(trash, sizeof(trash), ".drop-%s", id); /* only used when id is valid */
	if (!sbx_id_valid(id) || renameat(context->rejects_fd, id, context->rejects_fd, trash) < 0)
		return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
			"there is no reject %s; 'sbx-admin reject list' shows those there are", id);
	r = sbx_fs_remove_tree(context->rejects_fd, trash);
	return r < 0 ? sbx_err_set(err, -r, "remove reject %s: %m", id) : 0;
}

int sbx_reject_base(struct json_object *reject, struct sbx_stack *ret, struct sbx_err *err)
{
	struct json_object *ids = sbx_json_member(reject, "base");
	SBX_STACK struct sbx_stack stack = SBX_STACK_INIT;
	size_t n = json_object_is_type(ids, json_type_array) ? json_object_array_length(ids) : 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *id = json_object_array_get_idx(ids, i);
		int r = sbx_stack_add(&stack, id ? json_object_get_string(id) : "");

		if (r < 0)
			return sbx_err_set(err, -r, "layer %zu of a reject's base: %m", i);
	}
	*ret = stack;
	stack = SBX_STACK_INIT;
	return 0;
}
