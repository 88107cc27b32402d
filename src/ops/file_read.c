/* SPDX-License-Identifier: MIT */
/*
 * file_read: a window of lines. One pass over the file with a fixed buffer, since the answer also
 * says how many lines there are and that all of them are UTF-8; what the window shows is kept on
 * the way. The file may shrink or grow meanwhile: at most the size that it had at first is read,
 * and what was read is what is told.
 */
#include <string.h>

#include "answer.h"
#include "jobs.h"
#include "target.h"

#define LIMIT_MAX     2000               /* lines of one window */
#define WINDOW_MAX    (256u << 10)       /* bytes of one window */
#define FILE_MAX      (INT64_C(1) << 30) /* bytes: about a second of a worker's time */
#define CHUNK_SIZE    (64u << 10)
#define CHARACTER_MAX 4 /* bytes of one UTF-8 character */

struct window {
	uint64_t first, end; /* lines asked for, from 1, end not included */

	uint64_t line;       /* that the next byte belongs to, from 1 */
	uint64_t n_bytes;    /* read so far */
	uint64_t line_start; /* offset in the file where it begins */

	struct sbx_buf content;
	size_t n_whole;      /* bytes of content that are whole lines */
	uint64_t next;       /* first line that is not in content, once it is full; else 0 */
	uint64_t cut_offset; /* offset in the file where a line longer than the window was cut */
	uint64_t cut_size;   /* bytes of that line, its end included */
};

/* Takes a piece of the present line into the window; ends tells that its newline is the last. */
static int keep(struct window *w, const char *piece, size_t size, bool ends)
{
	int r;

	if (w->next || w->line < w->first || w->line >= w->end)
		return 0;
	r = sbx_buf_append(&w->content, piece, size);
	if (r < 0)
		return r;
	if (w->content.size > WINDOW_MAX) {
		w->next = w->n_whole ? w->line : w->line + 1;
		if (w->n_whole) {
			w->content.size = w->n_whole;
		} else {
			w->content.size =
				sbx_answer_cut(w->content.data, w->content.size, WINDOW_MAX);
			w->cut_offset = w->line_start + w->content.size;
		}
	} else if (ends) {
		w->n_whole = w->content.size;
	}
	return 0;
}

/* Takes the next bytes of the file. */
static int take(struct window *w, const char *data, size_t size)
{
	const char *end = data + size;

	while (data < end) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));
		const char *stop = newline ? newline + 1 : end;
		int r = keep(w, data, (size_t)(stop - data), newline);

		if (r < 0)
			return r;
		w->n_bytes += (uint64_t)(stop - data);
		if (w->cut_offset && w->line + 1 == w->next)
			w->cut_size = w->n_bytes - w->line_start;
		if (newline) {
			w->line++;
			w->line_start = w->n_bytes;
		}
		data = stop;
	}
	return 0;
}

/* How many of size bytes are whole characters: a sequence cut by the end is left for later. */
static size_t whole_characters(const char *data, size_t size)
{
	for (size_t back = 1; back < CHARACTER_MAX && back <= size; back++) {
		unsigned char c = (unsigned char)data[size - back];
		size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if ((c & 0xc0) != 0x80)
			return length > back ? size - back : size;
	}
	return size;
}

static int refuse_text(const char *path, uint64_t line, struct sbx_err *err)
{
	return sbx_err_kind(err, SBX_KIND_INVALID, EILSEQ,
		"'%s' is not valid UTF-8 (first in line %llu); use exec_command, for example "
		"\"od -c\" or \"iconv\"",
		path, (unsigned long long)line);
}

static int check_text(const char *path, const struct window *w, const char *data, size_t size,
	struct sbx_err *err)
{
	const char *end = data + size;
	uint64_t line = w->line;

	if (sbx_utf8_valid(data, size))
		return 0;
	/* a newline is never part of a longer character, so that lines can be checked alone */
	for (const char *newline; (newline = memchr(data, '\n', (size_t)(end - data))); line++) {
		if (!sbx_utf8_valid(data, (size_t)(newline - data)))
			break;
		data = newline + 1;
	}
	return refuse_text(path, line, err);
}

static ssize_t read_some(int fd, char *to, size_t size)
{
	ssize_t n;

	do {
		n = read(fd, to, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int scan(int fd, uint64_t size, const char *path, struct window *w, struct sbx_err *err)
{
	char chunk[CHUNK_SIZE + CHARACTER_MAX];
	size_t carried = 0;

	for (uint64_t left = size; left > 0;) {
		ssize_t n = read_some(fd, chunk + carried, SBX_MIN(left, (uint64_t)CHUNK_SIZE));
		size_t filled, whole;
		int r;

		if (n < 0)
			return sbx_err_set(err, (int)-n, "read '%s': %m", path);
		if (n == 0)
			break; /* it shrank */
		left -= (uint64_t)n;
		filled = carried + (size_t)n;
		whole = whole_characters(chunk, filled);
		r = check_text(path, w, chunk, whole, err);
		if (r < 0)
			return r;
		r = take(w, chunk, whole);
		if (r < 0)
			return sbx_err_set(err, -r, "read '%s': %m", path);
		carried = filled - whole;
		memmove(chunk, chunk + whole, carried);
	}
	return carried ? refuse_text(path, w->line, err) : 0;
}

/* Says inside the content where a line was cut and how to see the rest of it. */
static void mark_cut(struct window *w, const char *path)
{
	(void)sbx_buf_printf(&w->content,
		"[line %llu cut after %zu of %llu bytes; go on with exec_command \"tail -c +%llu "
		"-- '%s' | head -c %u\"]\n",
		(unsigned long long)w->first, w->content.size, (unsigned long long)w->cut_size,
		(unsigned long long)w->cut_offset + 1, path, WINDOW_MAX);
}

static void answer(struct sbx_job *job, struct window *w, const char *path)
{
	uint64_t total = w->line - (w->line_start == w->n_bytes);
	uint64_t stop = SBX_MIN(w->next ? w->next : w->end, total + 1);
	size_t n_content = w->content.size;
	struct json_object *o = job->result;

	if (w->cut_offset)
		mark_cut(w, path);
	sbx_json_add_path(o, "path", path);
	sbx_json_add_bytes(o, "content", w->content.data ? w->content.data : "", w->content.size);
	sbx_json_add_int(o, "start_line", (int64_t)w->first);
	sbx_json_add_int(o, "num_lines", stop > w->first ? (int64_t)(stop - w->first) : 0);
	sbx_json_add_int(o, "total_lines", (int64_t)total);
	sbx_json_add_int(o, "bytes_read", (int64_t)n_content);
	sbx_json_add_int(o, "total_bytes", (int64_t)w->n_bytes);
	if (stop >= w->first && stop <= total)
		sbx_json_add_int(o, "next_offset", (int64_t)stop);
	else
		sbx_json_add(o, "next_offset", NULL);
	sbx_json_add_bool(o, "truncated", w->next);
}

static int window_from(struct json_object *args, struct window *ret, struct sbx_err *err)
{
	int64_t offset = sbx_json_int(args, "offset", 1);
	int64_t limit = sbx_json_int(args, "limit", LIMIT_MAX);

	if (limit < 1 || limit > LIMIT_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, ERANGE,
			"argument \"limit\": expected 1 to %d lines, got %lld", LIMIT_MAX,
			(long long)limit);
	ret->first = offset > 0 ? (uint64_t)offset : 1;
	ret->end = ret->first + (uint64_t)limit;
	ret->line = 1;
	return 0;
}

static void window_done(struct window *w)
{
	sbx_buf_done(&w->content);
}

int sbx_job_file_read(struct sbx_job *job, struct sbx_err *err)
{
	SBX_TARGET struct sbx_target target = SBX_TARGET_INIT;
	SBX_CLEANUP(window_done) struct window window = {0};
	SBX_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	r = window_from(sbx_job_tool_args(job), &window, err);
	if (r < 0)
		return r;
	r = sbx_target_init(&target, job, err);
	if (r < 0)
		return r;
	r = sbx_target_open(&target, &fd, &st, err);
	if (r < 0)
		return r;
	if (st.st_size > FILE_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, EFBIG,
			"'%s' has %lld bytes, file_read serves files up to %lld; use exec_command, "
			"for example \"sed -n\" or \"tail\"",
			target.path, (long long)st.st_size, (long long)FILE_MAX);
	r = scan(fd, (uint64_t)st.st_size, target.path, &window, err);
	if (r < 0)
		return r;
	answer(job, &window, target.path);
	return 0;
}
