/* SPDX-License-Identifier: MIT */
#include "sbx/json.h"

/* Table 3-7 of the Unicode standard: what may follow a lead byte. */
static size_t sequence_length(const unsigned char *p, const unsigned char *end)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if ((size_t)(end - p) < n)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool sbx_utf8_valid(const void *data, size_t size)
{
	const unsigned char *p = data, *end = p + size;

	while (p < end) {
		uint64_t word;
		size_t n;

		if (end - p >= 8) {
			__builtin_memcpy(&word, p, sizeof(word));
			if (!(word & UINT64_C(0x8080808080808080))) {
				p += 8;
				continue;
			}
		}
		if (*p < 0x80) {
			p++;
			continue;
		}
		n = sequence_length(p, end);
		if (n == 0)
			return false;
		p += n;
	}
	return true;
}
