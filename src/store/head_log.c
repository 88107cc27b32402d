/* SPDX-License-Identifier: MIT */
/*
 * The log in memory: the stack that its snapshot gives, the records since, and the head that they
 * lead to.
 *
 * What a crash can leave at the end of the file is a batch that was never acknowledged, with any
 * part of it missing. Every record says after which durable version it was formatted, and the
 * records of one batch say the same. So a broken record with a sound one behind it is damage only
 * if that one is from a later batch; else all of it is a torn tail.
 */
#include "sbx/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "checksum.h"
#include "head_log.h"
#include "head_mark.h"
#include "head_record.h"
#include "sbx/fs.h"

#define FILE_MAX   (256u << 20) /* bytes; far beyond what compaction lets grow */
#define KEEP       1024u        /* records that a compaction keeps as history */
#define COMPACT_AT (2 * KEEP)

struct sbx_head_log {
	int fd;
	int mark_fd; /* head.mark, when the log is writable */
	struct sbx_head head;
	struct sbx_head first;       /* the snapshot */
	struct head_record *records; /* since the snapshot */
	size_t n, capacity;
};

void sbx_head_done(struct sbx_head *head)
{
	sbx_stack_done(&head->stack);
	head->version = 0;
}

void sbx_head_log_free(struct sbx_head_log *log)
{
	if (!log)
		return;
	sbx_fd_close(&log->fd);
	sbx_fd_close(&log->mark_fd);
	sbx_head_done(&log->head);
	sbx_head_done(&log->first);
	for (size_t i = 0; i < log->n; i++)
		head_record_done(&log->records[i]);
	sbx_free_pointer(&log->records);
	sbx_free_pointer(&log);
}

const struct sbx_head *sbx_head_log_head(const struct sbx_head_log *log)
{
	return &log->head;
}

int sbx_head_log_fd(const struct sbx_head_log *log)
{
	return log->fd;
}

static int copy_head(const struct sbx_head *from, struct sbx_head *ret)
{
	int r = sbx_stack_copy(&from->stack, &ret->stack);

	if (r == 0)
		ret->version = from->version;
	return r;
}

/* Takes the record over when it returns 0; the log stays as it was otherwise. */
static int push_record(struct sbx_head_log *log, struct head_record *record)
{
	int r;

	if (record->version <= log->head.version)
		return -EINVAL;
	if (sbx_grow(&log->records, &log->capacity, log->n) < 0)
		return -ENOMEM;
	r = head_record_apply(record, &log->head.stack);
	if (r < 0)
		return r;
	log->head.version = record->version;
	log->records[log->n++] = *record;
	*record = (struct head_record){0};
	return 0;
}

static int start_from(struct sbx_head_log *log, struct head_record *record)
{
	if (record->kind != HEAD_SNAPSHOT || !record->version)
		return -EPROTO;
	log->first.version = record->version;
	log->first.stack = record->list;
	record->list = SBX_STACK_INIT;
	return copy_head(&log->first, &log->head);
}

/* One record of the file, without its newline. */
static int replay_line(struct sbx_head_log *log, const char *line, size_t size)
{
	HEAD_RECORD struct head_record record = {0};
	int r = head_record_parse(line, size, &record);

	if (r < 0)
		return r;
	if (!log->first.version)
		return start_from(log, &record);
	if (record.kind == HEAD_SNAPSHOT)
		return -EPROTO;
	return push_record(log, &record);
}

static size_t line_size(const char *at, size_t left)
{
	const char *end = memchr(at, '\n', left);

	return end ? (size_t)(end - at) : left;
}

/* Whether text could begin a record; where a newline is damaged that need not be at a line's start.
 */
static bool is_record_start(const char *at, size_t left)
{
	return left >= CHECKSUM_HEX_SIZE && at[CHECKSUM_HEX_SIZE - 1] == ' ' &&
	       strspn(at, "0123456789abcdef") == CHECKSUM_HEX_SIZE - 1;
}

/* Whether a sound record of a batch later than the head's follows. */
static bool is_acknowledged(const struct sbx_head_log *log, const char *at, size_t left)
{
	for (; left; at++, left--) {
		HEAD_RECORD struct head_record record = {0};

		if (is_record_start(at, left) &&
			head_record_parse(at, line_size(at, left), &record) == 0 &&
			record.after > log->head.version)
			return true;
	}
	return false;
}

/* Replays the bytes; *ret_good is where the sound part ends. */
static int replay(
	struct sbx_head_log *log, const struct sbx_buf *file, size_t *ret_good, struct sbx_err *err)
{
	size_t at = 0, number = 1;

	for (; at < file->size; number++) {
		size_t left = file->size - at, size = line_size(file->data + at, left);
		int r = size < left ? replay_line(log, file->data + at, size) : -EBADMSG;

		if (r == -ENOMEM)
			return sbx_err_set(err, ENOMEM, "read head.log: %m");
		if (r == -EBADMSG && log->first.version &&
			!is_acknowledged(log, file->data + at, left))
			break;
		if (r < 0)
			return sbx_err_set(err, EBADMSG,
				"head.log is damaged at record %zu, byte %zu%s", number, at,
				r == -EBADMSG ? "" : ": the record is none that could be there");
		at += size + 1;
	}
	if (!log->first.version)
		return sbx_err_set(err, EBADMSG, "head.log is damaged: it has no snapshot");
	*ret_good = at;
	return 0;
}

/* An acknowledged version that the log does not have was lost, not left over. */
static int check_mark(const struct sbx_head_log *log, uint64_t acknowledged, struct sbx_err *err)
{
	if (log->head.version >= acknowledged)
		return 0;
	return sbx_err_set(err, EBADMSG,
		"head.log is damaged: it ends with version %" PRIu64 ", and version %" PRIu64
		" was acknowledged; put back what is missing, or remove " HEAD_MARK
		" to go on without it",
		log->head.version, acknowledged);
}

/* Cuts what a crash left of a batch that nobody was told about. */
static int cut_tail(int fd, size_t good, struct sbx_err *err)
{
	if (ftruncate(fd, (off_t)good) < 0 || fdatasync(fd) < 0)
		return sbx_err_set(err, errno, "cut the torn end of head.log: %m");
	return 0;
}

static void head_log_freep(struct sbx_head_log **log)
{
	sbx_head_log_free(*log);
}

int sbx_head_log_open(int store_fd, bool writable, struct sbx_head_log **ret, struct sbx_err *err)
{
	SBX_CLEANUP(head_log_freep) struct sbx_head_log *log = calloc(1, sizeof(*log));
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	uint64_t acknowledged = 0;
	size_t good = 0;
	int r;

	if (!log)
		return sbx_err_set(err, ENOMEM, "open head.log: %m");
	log->fd = log->mark_fd = -EBADF;
	/* before the log, which another process may be writing: it is the mark that comes last */
	r = head_mark_read(store_fd, &acknowledged, err);
	if (r < 0)
		return r;
	log->fd = openat(store_fd, HEAD_LOG,
		(writable ? O_RDWR | O_APPEND : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
	if (log->fd < 0)
		return sbx_err_set(err, errno, "open head.log: %m");
	r = sbx_fs_read_fd(log->fd, FILE_MAX, &file);
	if (r < 0)
		return sbx_err_set(err, -r, "read head.log: %m");
	r = replay(log, &file, &good, err);
	if (r == 0)
		r = check_mark(log, acknowledged, err);
	if (r == 0 && writable && good < file.size)
		r = cut_tail(log->fd, good, err);
	if (r == 0 && writable)
		r = head_mark_open(store_fd, &log->mark_fd, err);
	if (r < 0)
		return r;
	*ret = sbx_take(&log);
	return 0;
}

int sbx_head_log_at(const struct sbx_head_log *log, uint64_t version, struct sbx_head *ret)
{
	SBX_CLEANUP(sbx_head_done) struct sbx_head head = {0};
	int r = copy_head(&log->first, &head);

	for (size_t i = 0; i < log->n && r == 0 && head.version < version; i++) {
		r = head_record_apply(&log->records[i], &head.stack);
		head.version = log->records[i].version;
	}
	if (r < 0)
		return r;
	if (head.version != version)
		return -ENOENT;
	*ret = head;
	head = (struct sbx_head){0};
	return 0;
}

bool head_log_names(const struct sbx_head_log *log, const char *layer_id)
{
	if (sbx_stack_find(&log->first.stack, layer_id) >= 0)
		return true;
	for (size_t i = 0; i < log->n; i++)
		if (!strcmp(log->records[i].layer, layer_id))
			return true;
	return false;
}

bool head_log_removal(const struct sbx_head_log *log, size_t i, uint64_t *ret_version,
	const struct sbx_stack **ret_layers)
{
	for (const struct head_record *record = log->records + log->n; record-- > log->records;)
		if (record->list.n && i-- == 0) {
			*ret_version = record->version;
			*ret_layers = &record->list;
			return true;
		}
	return false;
}

int sbx_head_log_format(const struct sbx_head_log *log, uint64_t version,
	const struct sbx_head_change *change, struct sbx_buf *batch)
{
	HEAD_RECORD struct head_record record = {0};
	int r;

	if (version <= log->head.version)
		return -EINVAL;
	r = head_record_of_change(change, &record);
	if (r < 0)
		return r;
	record.version = version;
	record.after = log->head.version;
	return head_record_put(&record, batch);
}

int sbx_head_log_write(int fd, const void *batch, size_t size, struct sbx_err *err)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return sbx_err_set(err, errno, "stat head.log: %m");
	r = sbx_fs_write_all(fd, batch, size); /* O_APPEND */
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0) {
		/* if this fails too, the next open cuts the tail: nobody was told of it */
		(void)!ftruncate(fd, st.st_size);
		return sbx_err_set(err, -r, "write head.log: %m");
	}
	return 0;
}

int sbx_head_log_apply(
	struct sbx_head_log *log, uint64_t version, const struct sbx_head_change *change)
{
	HEAD_RECORD struct head_record record = {0};
	int r = head_record_of_change(change, &record);

	if (r < 0)
		return r;
	record.version = version;
	record.after = log->head.version;
	return push_record(log, &record);
}

int sbx_head_log_acknowledge(struct sbx_head_log *log)
{
	return head_mark_write(log->mark_fd, log->head.version);
}

/* Appends the whole log with the first n_drop records folded into the snapshot. */
static int put_compacted(const struct sbx_head_log *log, size_t n_drop, struct sbx_buf *out)
{
	HEAD_RECORD struct head_record snapshot = {.kind = HEAD_SNAPSHOT};
	uint64_t version = n_drop ? log->records[n_drop - 1].version : log->first.version;
	SBX_CLEANUP(sbx_head_done) struct sbx_head head = {0};
	int r = sbx_head_log_at(log, version, &head);

	if (r < 0)
		return r;
	snapshot.version = snapshot.after = version;
	snapshot.time_ns = n_drop ? log->records[n_drop - 1].time_ns : 0;
	snapshot.list = head.stack;
	head.stack = SBX_STACK_INIT;
	r = head_record_put(&snapshot, out);
	for (size_t i = n_drop; i < log->n && r == 0; i++)
		r = head_record_put(&log->records[i], out);
	return r;
}

/* Once the name is another file's, a write to the one that we hold would be lost: let it fail. */
static void close_if_replaced(struct sbx_head_log *log, int store_fd)
{
	struct stat held, named;

	if (fstat(log->fd, &held) < 0 ||
		fstatat(store_fd, HEAD_LOG, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
		held.st_ino != named.st_ino)
		sbx_fd_close(&log->fd);
}

static int replace_log(struct sbx_head_log *log, int store_fd, const struct sbx_buf *file,
	struct sbx_head_log **ret_old, struct sbx_err *err)
{
	SBX_CLEANUP(head_log_freep) struct sbx_head_log *next = NULL;
	struct sbx_head_log old;
	int r;

	r = sbx_fs_write_at(store_fd, HEAD_LOG, 0600, file->data, file->size, SBX_FS_DURABLE);
	if (r < 0)
		return sbx_err_set(err, -r, "compact head.log: %m");
	r = sbx_head_log_open(store_fd, true, &next, err);
	if (r < 0)
		return r;
	old = *log;
	*log = *next;
	*next = old;
	*ret_old = sbx_take(&next);
	return 0;
}

/* How many of the oldest records go when versions before oldest are forgotten. */
static size_t count_drops(const struct sbx_head_log *log, uint64_t oldest)
{
	size_t n = log->n < COMPACT_AT ? 0 : log->n - KEEP;

	while (n < log->n && log->records[n].version <= oldest)
		n++;
	return n;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds to gone what old named and log does not. Both have thousands of names at most. */
static int find_gone(
	const struct sbx_head_log *old, const struct sbx_head_log *log, struct sbx_stack *gone)
{
	SBX_FREE const char **left = calloc(log->first.stack.n + log->n + 1, sizeof(*left));
	size_t n_left = 0;
	int r = left ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < log->first.stack.n; i++)
		left[n_left++] = log->first.stack.ids[i];
	for (size_t i = 0; r == 0 && i < log->n; i++)
		left[n_left++] = log->records[i].layer;
	if (r == 0)
		qsort(left, n_left, sizeof(*left), compare_ids);
	for (size_t i = 0; r == 0 && i < old->first.stack.n + old->n; i++) {
		const char *id = i < old->first.stack.n
					 ? old->first.stack.ids[i]
					 : old->records[i - old->first.stack.n].layer;

		if (*id && !bsearch(&id, left, n_left, sizeof(*left), compare_ids))
			r = sbx_stack_include(gone, id);
	}
	return r;
}

uint64_t sbx_head_log_oldest(const struct sbx_head_log *log)
{
	return log->first.version;
}

int sbx_head_log_forget(struct sbx_head_log *log, int store_fd, uint64_t oldest,
	struct sbx_stack *gone, struct sbx_err *err)
{
	SBX_CLEANUP(head_log_freep) struct sbx_head_log *old = NULL;
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	size_t n_drop = count_drops(log, oldest);
	int r;

	if (!n_drop)
		return 0;
	r = put_compacted(log, n_drop, &file);
	if (r < 0)
		return sbx_err_set(err, -r, "compact head.log: %m");
	r = replace_log(log, store_fd, &file, &old, err);
	if (r < 0) {
		close_if_replaced(log, store_fd);
		return r;
	}
	r = find_gone(old, log, gone);
	return r < 0 ? sbx_err_set(err, -r, "find the layers of forgotten versions: %m") : 0;
}

int head_log_create(int store_fd, const char *base_layer, uint64_t time_ns, struct sbx_err *err)
{
	HEAD_RECORD struct head_record record = {
		.version = 1,
		.after = 1,
		.time_ns = time_ns,
		.kind = HEAD_SNAPSHOT,
	};
	SBX_BUF struct sbx_buf file = SBX_BUF_INIT;
	int r = sbx_stack_add(&record.list, base_layer);

	if (r == 0)
		r = head_record_put(&record, &file);
	if (r == 0)
		r = sbx_fs_write_at(store_fd, HEAD_LOG, 0600, file.data, file.size, SBX_FS_DURABLE);
	return r < 0 ? sbx_err_set(err, -r, "write head.log: %m") : 0;
}
