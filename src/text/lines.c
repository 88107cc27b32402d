/* SPDX-License-Identifier: MIT */
#include "sbx/lines.h"

#include <string.h>
#include <sys/auxv.h>

#define LINES_GUESS 48 /* bytes of a usual line of source, for the first allocation */

/*
 * The hash is keyed with bytes that the kernel gave this process, so that nobody can write a file
 * whose lines all fall into one chain. No result depends on the key.
 */
static uint64_t hash_key(void)
{
	static uint64_t key;
	const void *random_bytes;

	if (key)
		return key;
	random_bytes = (const void *)getauxval(AT_RANDOM);
	if (random_bytes)
		memcpy(&key, random_bytes, sizeof(key));
	key |= 1;
	return key;
}

static inline uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_bytes(const char *p, size_t n, uint64_t key)
{
	uint64_t h = key ^ n;
	uint64_t word = 0;

	for (; n >= sizeof(word); p += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = fold(h ^ word, UINT64_C(0x9e3779b97f4a7c15));
	}
	word = 0;
	for (size_t i = 0; i < n; i++)
		word = word << 8 | (unsigned char)p[i];
	h = fold(h ^ word, UINT64_C(0xd6e8feb86659fd93)) ^ key;
	h = fold(h, UINT64_C(0xa0761d6478bd642f));
	return (uint32_t)(h ^ h >> 32);
}

static inline bool is_end_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static size_t loose_size(const char *p, size_t n)
{
	if (n > 0 && p[n - 1] == '\n')
		n--;
	while (n > 0 && is_end_blank(p[n - 1]))
		n--;
	return n;
}

size_t sbx_line_key_size(const struct sbx_lines *lines, uint32_t i)
{
	size_t size = sbx_line_size(lines, i);

	return lines->flags & SBX_LINES_LOOSE ? loose_size(sbx_line_data(lines, i), size) : size;
}

bool sbx_line_equal(const struct sbx_lines *a, uint32_t i, const struct sbx_lines *b, uint32_t j)
{
	size_t size;

	if (a->hashes[i] != b->hashes[j])
		return false;
	size = sbx_line_key_size(a, i);
	return size == sbx_line_key_size(b, j) &&
	       !memcmp(sbx_line_data(a, i), sbx_line_data(b, j), size);
}

/* Room for n lines; the offsets have one more, for the end of the last. */
static int resize(struct sbx_lines *lines, size_t n)
{
	uint32_t *p;

	p = reallocarray(lines->offsets, n + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	lines->offsets = p;
	p = reallocarray(lines->hashes, n + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	lines->hashes = p;
	return 0;
}

static int split(struct sbx_lines *lines)
{
	size_t capacity = lines->size / LINES_GUESS + 16;
	const char *p = lines->data;
	const char *end = p + lines->size;
	uint64_t key = hash_key();
	int r;

	r = resize(lines, capacity);
	if (r < 0)
		return r;
	lines->offsets[0] = 0;
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *next = newline ? newline + 1 : end;
		size_t size = (size_t)(next - p);

		if (lines->n == SBX_LINES_MAX)
			return -EFBIG;
		if (lines->n == capacity) {
			capacity *= 2;
			r = resize(lines, capacity);
			if (r < 0)
				return r;
		}
		if (lines->flags & SBX_LINES_LOOSE)
			size = loose_size(p, size);
		lines->hashes[lines->n++] = hash_bytes(p, size, key);
		lines->offsets[lines->n] = (uint32_t)(next - lines->data);
		p = next;
	}
	return resize(lines, lines->n);
}

int sbx_lines_split(const void *data, size_t size, enum sbx_lines_flags flags,
	struct sbx_lines *ret, struct sbx_err *err)
{
	SBX_LINES struct sbx_lines lines = {
		.data = size ? data : "",
		.size = size,
		.flags = flags,
	};
	int r;

	if (size > SBX_LINES_BYTES_MAX)
		return sbx_err_set(err, EFBIG,
			"a text of %zu bytes has too many for work by lines (at "
			"most %u)",
			size, SBX_LINES_BYTES_MAX);
	r = split(&lines);
	if (r == -EFBIG)
		return sbx_err_set(err, EFBIG, "a text has more than %u lines", SBX_LINES_MAX);
	if (r < 0)
		return sbx_err_set(err, -r, "split a text of %zu bytes into lines: %m", size);
	lines.final_newline = size > 0 && lines.data[size - 1] == '\n';
	*ret = lines;
	lines = SBX_LINES_INIT;
	return 0;
}

void sbx_lines_done(struct sbx_lines *lines)
{
	sbx_free_pointer(&lines->offsets);
	sbx_free_pointer(&lines->hashes);
	lines->n = 0;
}

static bool has_too_many_lines(const char *p, size_t size)
{
	size_t n = 0;

	if (size <= SBX_LINES_MAX) /* a line has at least one byte */
		return false;
	for (size_t i = 0; i < size; i++)
		n += p[i] == '\n';
	return n + (p[size - 1] != '\n') > SBX_LINES_MAX;
}

bool sbx_text_is_binary(const void *data, size_t size)
{
	if (size == 0)
		return false;
	return size > SBX_LINES_BYTES_MAX || memchr(data, '\0', size) ||
	       has_too_many_lines(data, size);
}
