/* SPDX-License-Identifier: MIT */
/* file_blame: who owns which lines, from the newest record that the head's layers have. */
#include <string.h>

#include "answer.h"
#include "jobs.h"
#include "sbx/owners.h"
#include "target.h"

#define CHUNK_SIZE  (64u << 10)
#define COUNTED_MAX (UINT64_C(1) << 30) /* bytes of a whole file whose lines are counted */

/* Whatever has no lines that somebody could own is not found: the contract has no other word. */
static int not_found(struct sbx_err *err, int r)
{
	if (err->kind == SBX_KIND_INVALID)
		err->kind = SBX_KIND_NOT_FOUND;
	return r;
}

static int find(struct sbx_view *view, const char *path, struct sbx_owner_record *ret,
	const struct sbx_owners **ret_from, struct sbx_err *err)
{
	int r = sbx_owners_lookup(view, path, ret, ret_from, err);

	if (r == -ENOENT)
		return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
			"'%s' has no owners yet: it is as it was imported, nothing has been "
			"published over it",
			path);
	if (r < 0) {
		err->kind = SBX_KIND_INTERNAL;
		return sbx_err_wrap(err, r, "owners of '%s'", path);
	}
	return 0;
}

static void add_range(struct json_object *ranges, uint64_t line, uint64_t count, const char *owner)
{
	struct json_object *range = json_object_new_object();

	sbx_json_add_int(range, "start_line", (int64_t)line);
	sbx_json_add_int(range, "line_count", (int64_t)count);
	sbx_json_add_string(range, "owner", owner);
	sbx_answer_push(ranges, range);
}

/* Neighbouring runs of one owner are one range, whoever wrote the record. */
static int add_ranges(const struct sbx_owner_record *record, const struct sbx_owners *from,
	struct json_object *ranges, struct sbx_err *err)
{
	uint32_t line = 1;

	for (uint32_t i = 0; i < record->n_runs;) {
		uint32_t owner = record->runs[i].owner, count = 0;
		const char *name = sbx_owners_name(from, owner);

		while (i < record->n_runs && record->runs[i].owner == owner)
			count += record->runs[i++].count;
		if (!name)
			return sbx_err_kind(err, SBX_KIND_INTERNAL, EBADMSG,
				"the record of '%s' names an owner that is not in its layer's "
				"table; run \"sbx-admin verify\"",
				record->path);
		if (count)
			add_range(ranges, line, count, name);
		line += count;
	}
	return 0;
}

/* Lines as file_read counts them: a record of a whole file does not tell. -errno. */
static int count_lines(int fd, uint64_t *ret)
{
	char chunk[CHUNK_SIZE];
	uint64_t n = 0;
	char last = '\n';
	ssize_t size;

	while ((size = read(fd, chunk, sizeof(chunk))) != 0) {
		const char *p = chunk, *end = chunk + SBX_MAX(size, 0);

		if (size < 0 && errno != EINTR)
			return -errno;
		if (size > 0)
			last = end[-1];
		while ((p = memchr(p, '\n', (size_t)(end - p)))) {
			n++;
			p++;
		}
	}
	*ret = n + (last != '\n');
	return 0;
}

/* The one owner of a file that is not looked at by lines. */
static int add_whole(int fd, const struct sbx_owner_record *record, const struct sbx_owners *from,
	struct json_object *ranges, struct sbx_err *err)
{
	uint64_t n = 1; /* of a file that is too long to count */
	int r = record->size > COUNTED_MAX ? 0 : count_lines(fd, &n);

	if (r < 0)
		return sbx_err_set(err, -r, "read '%s': %m", record->path);
	if (n && record->n_runs)
		add_range(ranges, 1, n, sbx_owners_name(from, record->runs[0].owner));
	return 0;
}

int sbx_target_blame(const struct sbx_target *target, struct sbx_job *job, struct sbx_err *err)
{
	struct json_object *ranges = json_object_new_array();
	const struct sbx_owners *from = NULL;
	struct sbx_owner_record record;
	SBX_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	sbx_json_add_path(job->result, "path", target->path);
	sbx_json_add(job->result, "ranges", ranges);
	r = sbx_target_open(target, &fd, &st, err);
	if (r < 0)
		return not_found(err, r);
	r = find(target->view, target->path, &record, &from, err);
	if (r < 0)
		return r;
	if (record.size != (uint64_t)st.st_size)
		return sbx_err_kind(err, SBX_KIND_INTERNAL, EBADMSG,
			"the record of '%s' describes %llu bytes, but the file has %lld; run "
			"\"sbx-admin verify\"",
			target->path, (unsigned long long)record.size, (long long)st.st_size);
	return record.whole ? add_whole(fd, &record, from, ranges, err)
			    : add_ranges(&record, from, ranges, err);
}

int sbx_job_file_blame(struct sbx_job *job, struct sbx_err *err)
{
	SBX_TARGET struct sbx_target target = SBX_TARGET_INIT;
	int r;

	r = sbx_job_path(job, target.path, err);
	if (r < 0)
		return not_found(err, r);
	r = sbx_job_view(job, "head", &target.view, err);
	if (r < 0)
		return r;
	return sbx_target_blame(&target, job, err);
}
