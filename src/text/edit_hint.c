/* SPDX-License-Identifier: MIT */
/*
 * Three questions, each one pass over the text: does the needle match when line ends do not count;
 * does it match when no white space counts; and if neither, which line is most like its first.
 */
#include "edit_hint.h"

#include <string.h>

#include "sbx/json.h"

#define HINT_QUOTE_MAX   120 /* bytes of a line that a message shows */
#define HINT_COMPARE_MAX 256 /* bytes of a line that count for its likeness */
#define HINT_RUN_MAX     64  /* lines that are compared from one place on */
#define LIKENESS_MAX     1000

enum squeeze {
	SQUEEZE_LINE_ENDS, /* "\r\n" and lone '\r' are '\n' */
	SQUEEZE_BLANKS,    /* no white space at all */
};

/* What byte s[i] becomes, or -1 when it is left out. */
static int squeeze_byte(enum squeeze how, const char *s, size_t size, size_t i)
{
	if (how == SQUEEZE_BLANKS)
		return memchr(" \t\r\n\v\f", s[i], 6) ? -1 : (unsigned char)s[i];
	if (s[i] != '\r')
		return (unsigned char)s[i];
	return i + 1 < size && s[i + 1] == '\n' ? -1 : '\n';
}

static int squeeze(enum squeeze how, const char *s, size_t size, struct sbx_buf *out)
{
	int r = sbx_buf_reserve(out, size);

	if (r < 0)
		return r;
	for (size_t i = 0; i < size; i++) {
		int byte = squeeze_byte(how, s, size, i);

		if (byte >= 0)
			out->data[out->size++] = (char)byte;
	}
	return 0;
}

/* Where byte number nth of the squeezed text stands in the full one. */
static size_t unsqueeze(enum squeeze how, const char *s, size_t size, size_t nth)
{
	size_t i = 0;

	for (;; i++)
		if (squeeze_byte(how, s, size, i) >= 0 && nth-- == 0)
			return i;
}

/* 1 and the offset in text where needle matches in this reading, or 0. */
static int find_squeezed(enum squeeze how, const char *text, size_t size, const char *needle,
	size_t n, size_t *ret_at)
{
	SBX_BUF struct sbx_buf hay = SBX_BUF_INIT;
	SBX_BUF struct sbx_buf pin = SBX_BUF_INIT;
	const char *p;
	int r;

	r = squeeze(how, needle, n, &pin);
	if (r < 0)
		return r;
	if (pin.size == 0)
		return 0;
	r = squeeze(how, text, size, &hay);
	if (r < 0)
		return r;
	p = memmem(hay.data, hay.size, pin.data, pin.size);
	if (!p)
		return 0;
	*ret_at = unsqueeze(how, text, size, (size_t)(p - hay.data));
	return 1;
}

struct line {
	const char *s;
	size_t n; /* without its line end */
};

/* The line that starts at position at. */
static struct line line_from(const char *text, size_t size, size_t at)
{
	const char *end = memchr(text + at, '\n', size - at);

	return (struct line){text + at, (size_t)((end ? end : text + size) - (text + at))};
}

/* The line that position at is in. */
static struct line line_at(const char *text, size_t size, size_t at)
{
	const char *newline = at ? memrchr(text, '\n', at) : NULL;

	return line_from(text, size, newline ? (size_t)(newline + 1 - text) : 0);
}

/* Moves on to the line after it; false at the end of the text. */
static bool line_next(const char *text, size_t size, struct line *line)
{
	size_t at = (size_t)(line->s - text) + line->n + 1;

	if (at >= size)
		return false;
	*line = line_from(text, size, at);
	return true;
}

static size_t line_number(const char *text, const char *at)
{
	size_t number = 1;

	for (; (text = memchr(text, '\n', (size_t)(at - text))); text++)
		number++;
	return number;
}

/* The bigrams of a line as a set; its likeness to another line is the share they have in common. */
struct bigrams {
	uint64_t bits[65536 / 64];
	size_t n;
};

static unsigned int bigram(const char *s)
{
	return (unsigned int)(unsigned char)s[0] << 8 | (unsigned char)s[1];
}

static struct line trim(struct line line)
{
	while (line.n && memchr(" \t\r", line.s[0], 3)) {
		line.s++;
		line.n--;
	}
	while (line.n && memchr(" \t\r", line.s[line.n - 1], 3))
		line.n--;
	line.n = SBX_MIN(line.n, (size_t)HINT_COMPARE_MAX);
	return line;
}

static void bigrams_of(struct line line, struct bigrams *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i + 1 < line.n; i++) {
		unsigned int b = bigram(line.s + i);

		ret->bits[b / 64] |= UINT64_C(1) << (b % 64);
	}
	ret->n = line.n ? line.n - 1 : 0;
}

/* 0 to LIKENESS_MAX: twice the common bigrams over all bigrams. */
static unsigned int likeness(const struct bigrams *bigrams, struct line line)
{
	size_t n = line.n ? line.n - 1 : 0, common = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned int b = bigram(line.s + i);

		common += bigrams->bits[b / 64] >> (b % 64) & 1;
	}
	common = SBX_MIN(common, bigrams->n); /* a repeated bigram counts as often as asked */
	return bigrams->n + n ? (unsigned int)(2 * LIKENESS_MAX * common / (bigrams->n + n)) : 0;
}

/* The first line of needle that is not blank; false when there is none. */
static bool key_line(const char *needle, size_t n, struct line *ret)
{
	struct line line = line_from(needle, n, 0);

	do {
		if (trim(line).n) {
			*ret = line;
			return true;
		}
	} while (line_next(needle, n, &line));
	return false;
}

static bool lines_equal(struct line a, struct line b)
{
	return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* Where needle, from the line key on, stops being what text holds from the line at on. */
struct mismatch {
	struct line wanted;
	struct line found;
	size_t n_equal; /* lines before it */
};

static struct mismatch first_mismatch(const char *text, size_t size, struct line at,
	const char *needle, size_t n, struct line key)
{
	struct mismatch m = {key, at, 0};

	while (m.n_equal < HINT_RUN_MAX && lines_equal(m.wanted, m.found)) {
		if (!line_next(needle, n, &m.wanted) || !line_next(text, size, &m.found))
			break;
		m.n_equal++;
	}
	return m;
}

/*
 * The place in text that is most like needle: where the most whole lines are equal, else the line
 * most like the first one. False when no line has anything in common with it.
 */
static bool closest(
	const char *text, size_t size, const char *needle, size_t n, struct mismatch *ret)
{
	struct line line = line_from(text, size, 0), key;
	struct bigrams bigrams;
	unsigned int best = 0;

	if (!key_line(needle, n, &key))
		return false;
	bigrams_of(trim(key), &bigrams);
	do {
		unsigned int like = likeness(&bigrams, trim(line));
		struct mismatch m = {key, line, 0};

		if (like == LIKENESS_MAX)
			m = first_mismatch(text, size, line, needle, n, key);
		like += (unsigned int)m.n_equal;
		if (like > best) {
			best = like;
			*ret = m;
		}
	} while (line_next(text, size, &line));
	return best > 0;
}

/* A line for a message: cut, control bytes and what is not UTF-8 spelled out. */
static int quote(struct line line, struct sbx_buf *out)
{
	size_t n = SBX_MIN(line.n, (size_t)HINT_QUOTE_MAX);
	bool text;
	int r;

	while (n < line.n && n > 0 && ((unsigned char)line.s[n] & 0xc0) == 0x80)
		n--; /* not inside a character */
	text = sbx_utf8_valid(line.s, n);
	r = sbx_buf_append(out, "\"", 1);
	for (size_t i = 0; i < n && r >= 0; i++) {
		unsigned char c = (unsigned char)line.s[i];

		if (c == '\r')
			r = sbx_buf_append_string(out, "\\r");
		else if ((c < 0x20 && c != '\t') || c == 0x7f || (c >= 0x80 && !text))
			r = sbx_buf_printf(out, "\\x%02x", c);
		else
			r = sbx_buf_append(out, &c, 1);
	}
	if (r < 0)
		return r;
	return sbx_buf_append_string(out, n < line.n ? "...\"" : "\"");
}

static int hint_respelled(
	const char *what, const char *text, size_t size, size_t at, struct sbx_buf *out)
{
	struct line line = line_at(text, size, at);
	int r;

	r = sbx_buf_printf(
		out, "it would match at line %zu with other %s: ", line_number(text, line.s), what);
	return r < 0 ? r : quote(line, out);
}

static int hint_closest(const char *text, const struct mismatch *m, struct sbx_buf *out)
{
	size_t number = line_number(text, m->found.s);
	int r;

	if (m->n_equal)
		r = sbx_buf_printf(out, "it matches from line %zu on up to line %zu, which is ",
			number - m->n_equal, number);
	else
		r = sbx_buf_printf(out, "the closest line is %zu: ", number);
	if (r < 0)
		return r;
	r = quote(m->found, out);
	if (r < 0 || !m->n_equal)
		return r;
	r = sbx_buf_append_string(out, " and not ");
	return r < 0 ? r : quote(m->wanted, out);
}

int edit_hint(const char *text, size_t size, const char *needle, size_t n, struct sbx_buf *out)
{
	static const struct {
		enum squeeze how;
		const char *what;
	} readings[] = {
		{SQUEEZE_LINE_ENDS, "line ends"},
		{SQUEEZE_BLANKS, "white space"},
	};
	struct mismatch mismatch;
	size_t at;
	int r;

	if (size == 0)
		return sbx_buf_append_string(out, "the file is empty");
	for (size_t i = 0; i < SBX_N_ELEMENTS(readings); i++) {
		r = find_squeezed(readings[i].how, text, size, needle, n, &at);
		if (r < 0)
			return r;
		if (r > 0)
			return hint_respelled(readings[i].what, text, size, at, out);
	}
	if (closest(text, size, needle, n, &mismatch))
		return hint_closest(text, &mismatch, out);
	return sbx_buf_append_string(out, "no line is like it");
}
