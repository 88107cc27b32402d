/* SPDX-License-Identifier: MIT */
#include "sbx/edit.h"

#include <string.h>

#include "edit_hint.h"

#define EDIT_LINES_NAMED 10 /* lines that a message about several matches gives */

/* One edit as it is looked for: its texts spelled for the file's line ends. */
struct spelling {
	const char *old_s;
	size_t old_n;
	const char *new_s;
	size_t new_n;
	struct sbx_buf old_buf; /* what old_s and new_s point into when they were respelled */
	struct sbx_buf new_buf;
};

static void spelling_done(struct spelling *spelling)
{
	sbx_buf_done(&spelling->old_buf);
	sbx_buf_done(&spelling->new_buf);
}

enum line_ends {
	ENDS_LF,   /* no "\r\n" */
	ENDS_CRLF, /* no '\n' without '\r' */
	ENDS_MIXED,
};

static enum line_ends line_ends(const char *text, size_t size)
{
	const char *end = text + size;
	bool lf = false, crlf = false;

	if (!memchr(text, '\r', size))
		return ENDS_LF;
	for (const char *p = text; !(lf && crlf); p++) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			break;
		if (p > text && p[-1] == '\r')
			crlf = true;
		else
			lf = true;
	}
	return !crlf ? ENDS_LF : lf ? ENDS_MIXED : ENDS_CRLF;
}

/* Appends s with "\r\n" for each '\n' that has no '\r' before it. */
static int append_crlf(struct sbx_buf *out, const char *s, size_t n)
{
	const char *end = s + n;
	int r;

	for (const char *from = s; from < end;) {
		const char *newline = memchr(from, '\n', (size_t)(end - from));
		const char *stop = newline ? newline : end;

		r = sbx_buf_append(out, from, (size_t)(stop - from));
		if (r < 0)
			return r;
		if (!newline)
			break;
		r = newline > s && newline[-1] == '\r' ? sbx_buf_append(out, "\n", 1)
						       : sbx_buf_append(out, "\r\n", 2);
		if (r < 0)
			return r;
		from = newline + 1;
	}
	return 0;
}

static void spell_literally(const struct sbx_edit *edit, struct spelling *spelling)
{
	spelling->old_s = edit->old_s;
	spelling->old_n = edit->old_n;
	spelling->new_s = edit->new_s;
	spelling->new_n = edit->new_n;
}

static int spell_crlf(const struct sbx_edit *edit, struct spelling *spelling)
{
	int r;

	r = append_crlf(&spelling->old_buf, edit->old_s, edit->old_n);
	if (r < 0)
		return r;
	r = append_crlf(&spelling->new_buf, edit->new_s, edit->new_n);
	if (r < 0)
		return r;
	spelling->old_s = spelling->old_buf.data;
	spelling->old_n = spelling->old_buf.size;
	spelling->new_s = spelling->new_buf.size ? spelling->new_buf.data : "";
	spelling->new_n = spelling->new_buf.size;
	return 0;
}

static int choose_spelling(
	const struct sbx_edit *edit, const struct sbx_buf *text, struct spelling *spelling)
{
	bool has_newline = memchr(edit->old_s, '\n', edit->old_n) ||
			   (edit->new_n && memchr(edit->new_s, '\n', edit->new_n));
	enum line_ends ends;

	spell_literally(edit, spelling);
	if (!has_newline || memchr(edit->old_s, '\r', edit->old_n))
		return 0;
	ends = line_ends(text->data, text->size);
	if (ends == ENDS_CRLF)
		return spell_crlf(edit, spelling);
	if (ends == ENDS_MIXED && memchr(edit->old_s, '\n', edit->old_n) &&
		!memmem(text->data, text->size, edit->old_s, edit->old_n))
		return spell_crlf(edit, spelling);
	return 0;
}

/* The next match at or after offset at, or NULL. */
static const char *find(const struct sbx_buf *text, size_t at, const struct spelling *spelling)
{
	return memmem(text->data + at, text->size - at, spelling->old_s, spelling->old_n);
}

struct matches {
	size_t first; /* offset of the first one; set when n > 0 */
	size_t n;     /* that do not overlap, left to right */
	bool overlap; /* n is 1, and another one overlaps it: no less ambiguous */
};

static struct matches count_matches(const struct sbx_buf *text, const struct spelling *spelling)
{
	struct matches matches = {0};
	size_t at = 0, near;

	for (const char *p; (p = find(text, at, spelling)); matches.n++) {
		if (matches.n == 0)
			matches.first = (size_t)(p - text->data);
		at = (size_t)(p - text->data) + spelling->old_n;
	}
	if (matches.n == 1) {
		near = SBX_MIN(text->size - matches.first - 1, 2 * (spelling->old_n - 1));
		matches.overlap = memmem(text->data + matches.first + 1, near, spelling->old_s,
					  spelling->old_n) != NULL;
	}
	return matches;
}

static size_t count_newlines(const char *from, const char *to)
{
	size_t n = 0;

	for (; (from = memchr(from, '\n', (size_t)(to - from))); from++)
		n++;
	return n;
}

static int fail_ambiguous(const struct sbx_buf *text, const struct spelling *spelling,
	size_t number, const struct matches *matches, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf lines = SBX_BUF_INIT;
	size_t n = matches->n + matches->overlap;
	size_t line = 1, last = 0, at = matches->first;

	for (size_t i = 0; i < n && i < EDIT_LINES_NAMED; i++) {
		const char *p = find(text, at, spelling);

		line += count_newlines(text->data + last, p);
		last = (size_t)(p - text->data);
		at = last + (matches->overlap ? 1 : spelling->old_n);
		if (sbx_buf_printf(&lines, "%s%zu", i ? ", " : "", line) < 0)
			return sbx_err_set(err, ENOMEM, "edit #%zu: %m", number);
	}
	return sbx_err_kind(err, SBX_KIND_INVALID, ENOTUNIQ,
		"edit #%zu: old_string matches %zu times, at lines %s%s; give more of the text "
		"around "
		"it, or set replace_all",
		number, n, lines.data, n > EDIT_LINES_NAMED ? ", ..." : "");
}

static int fail_no_match(
	const struct sbx_buf *text, const struct sbx_edit *edit, size_t number, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf hint = SBX_BUF_INIT;
	int r;

	r = edit_hint(text->data, text->size, edit->old_s, edit->old_n, &hint);
	if (r < 0)
		return sbx_err_set(err, -r, "edit #%zu: %m", number);
	return sbx_err_kind(err, SBX_KIND_INVALID, ENOENT, "edit #%zu: old_string not found; %s",
		number, hint.data);
}

/* The size after n replacements, or -EFBIG. */
static int result_size(size_t size, const struct spelling *spelling, size_t n, size_t *ret_size)
{
	size_t kept = size - n * spelling->old_n;
	size_t added;

	if (__builtin_mul_overflow(n, spelling->new_n, &added) || added > SBX_EDIT_SIZE_MAX ||
		kept + added > SBX_EDIT_SIZE_MAX)
		return -EFBIG;
	*ret_size = kept + added;
	return 0;
}

static int replace_one(struct sbx_buf *text, const struct spelling *spelling, size_t at)
{
	size_t rest = text->size - at - spelling->old_n;
	char *p;
	int r;

	if (spelling->new_n > spelling->old_n) {
		r = sbx_buf_reserve(text, spelling->new_n - spelling->old_n);
		if (r < 0)
			return r;
	}
	p = text->data + at;
	if (spelling->new_n != spelling->old_n)
		memmove(p + spelling->new_n, p + spelling->old_n, rest);
	if (spelling->new_n)
		memcpy(p, spelling->new_s, spelling->new_n);
	text->size = at + spelling->new_n + rest;
	text->data[text->size] = '\0';
	return 0;
}

static int replace_all(struct sbx_buf *text, const struct spelling *spelling, size_t size)
{
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	size_t at = 0;
	int r;

	r = sbx_buf_reserve(&out, size);
	for (const char *p; r >= 0 && (p = find(text, at, spelling));) {
		size_t match = (size_t)(p - text->data);

		r = sbx_buf_append(&out, text->data + at, match - at);
		if (r >= 0)
			r = sbx_buf_append(&out, spelling->new_s, spelling->new_n);
		at = match + spelling->old_n;
	}
	if (r >= 0)
		r = sbx_buf_append(&out, text->data + at, text->size - at);
	if (r < 0)
		return r;
	sbx_buf_done(text);
	*text = out;
	out = SBX_BUF_INIT;
	return 0;
}

static int replace(struct sbx_buf *text, const struct spelling *spelling,
	const struct matches *matches, size_t number, struct sbx_err *err)
{
	size_t size;
	int r;

	r = result_size(text->size, spelling, matches->n, &size);
	if (r < 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EFBIG,
			"edit #%zu: the file would grow beyond %d bytes", number,
			SBX_EDIT_SIZE_MAX);
	r = matches->n == 1 ? replace_one(text, spelling, matches->first)
			    : replace_all(text, spelling, size);
	return r < 0 ? sbx_err_set(err, -r, "edit #%zu: %m", number) : 0;
}

static int apply_one(struct sbx_buf *text, const struct sbx_edit *edit, size_t number,
	size_t *ret_replaced, struct sbx_err *err)
{
	SBX_CLEANUP(spelling_done) struct spelling spelling = {0};
	struct matches matches;
	int r;

	if (edit->old_n == 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL,
			"edit #%zu: old_string is empty; give the text to replace (to add lines, "
			"repeat a line beside them in new_string)",
			number);
	r = choose_spelling(edit, text, &spelling);
	if (r < 0)
		return sbx_err_set(err, -r, "edit #%zu: %m", number);
	if (spelling.old_n == spelling.new_n &&
		memcmp(spelling.old_s, spelling.new_s, spelling.old_n) == 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EALREADY,
			"edit #%zu changes nothing: new_string puts back the same bytes", number);
	matches = count_matches(text, &spelling);
	if (matches.n == 0)
		return fail_no_match(text, edit, number, err);
	if (matches.n + matches.overlap > 1 && !edit->replace_all)
		return fail_ambiguous(text, &spelling, number, &matches, err);
	r = replace(text, &spelling, &matches, number, err);
	if (r < 0)
		return r;
	*ret_replaced = matches.n;
	return 0;
}

static int check_limits(size_t size, size_t n, struct sbx_err *err)
{
	if (n == 0)
		return sbx_err_kind(err, SBX_KIND_INVALID, EINVAL, "no edits given");
	if (n > SBX_EDIT_COUNT_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, E2BIG,
			"%zu edits given, at most %d fit into one call", n, SBX_EDIT_COUNT_MAX);
	if (size > SBX_EDIT_SIZE_MAX)
		return sbx_err_kind(err, SBX_KIND_INVALID, EFBIG,
			"the file has %zu bytes; at most %d can be edited", size,
			SBX_EDIT_SIZE_MAX);
	return 0;
}

int sbx_edit_apply(const char *text, size_t size, const struct sbx_edit *edits, size_t n,
	struct sbx_buf *ret, size_t *ret_replacements, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf work = SBX_BUF_INIT;
	size_t total = 0, replaced = 0;
	int r;

	r = check_limits(size, n, err);
	if (r < 0)
		return r;
	r = sbx_buf_append(&work, text, size);
	if (r < 0)
		return sbx_err_set(err, -r, "edit: %m");
	for (size_t i = 0; i < n; i++) {
		r = apply_one(&work, &edits[i], i + 1, &replaced, err);
		if (r < 0)
			return r;
		total += replaced;
	}
	*ret = work;
	work = SBX_BUF_INIT;
	*ret_replacements = total;
	return 0;
}
