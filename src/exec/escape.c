/* SPDX-License-Identifier: MIT */
#include "escape.h"

#include <string.h>

enum control {
	BEL = 0x07,
	CAN = 0x18,
	SUB = 0x1a,
	ESC = 0x1b,
	C1_ST = 0x9c,
};

/* What a lead byte asks for (Unicode, table 3-7). */
struct lead {
	unsigned char low, high;           /* range of lead bytes */
	unsigned char n;                   /* bytes that follow */
	unsigned char next_low, next_high; /* range of the first of them; others are 80..bf */
};

static const struct lead leads[] = {
	{0xc2, 0xdf, 1, 0x80, 0xbf},
	{0xe0, 0xe0, 2, 0xa0, 0xbf},
	{0xe1, 0xec, 2, 0x80, 0xbf},
	{0xed, 0xed, 2, 0x80, 0x9f},
	{0xee, 0xef, 2, 0x80, 0xbf},
	{0xf0, 0xf0, 3, 0x90, 0xbf},
	{0xf1, 0xf3, 3, 0x80, 0xbf},
	{0xf4, 0xf4, 3, 0x80, 0x8f},
};

static const struct lead *find_lead(unsigned char byte)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(leads); i++)
		if (byte >= leads[i].low && byte <= leads[i].high)
			return &leads[i];
	return NULL;
}

struct character character_at(const unsigned char *p, const unsigned char *end)
{
	struct character c = {.code = *p, .size = 1};
	unsigned char low, high;
	const struct lead *lead;

	if (*p < 0x80)
		return c;
	lead = find_lead(*p);
	c.invalid = !lead;
	if (c.invalid) {
		c.code = REPLACEMENT_CHARACTER;
		return c;
	}
	c.code &= 0x3fU >> lead->n;
	low = lead->next_low;
	high = lead->next_high;
	for (; c.size <= lead->n; c.size++) {
		if (p + c.size == end || p[c.size] < low || p[c.size] > high) {
			c.invalid = true;
			c.incomplete = p + c.size == end;
			c.code = REPLACEMENT_CHARACTER;
			return c;
		}
		c.code = c.code << 6 | (p[c.size] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	return c;
}

/* Reads the parameter bytes of a CSI: nothing or one number makes it one that may act. */
static bool parse_number(const unsigned char *p, const unsigned char *final, struct escape *escape)
{
	if (final - p > 5)
		return false;
	for (; p < final; p++) {
		if (*p < '0' || *p > '9')
			return false;
		escape->number = escape->number * 10 + (*p - '0');
		escape->has_number = true;
	}
	return true;
}

/* p is behind the introducer. Parameters and intermediates, in any order, up to a final byte. */
static struct escape csi_at(const unsigned char *p, const unsigned char *end)
{
	struct escape escape = {.end = p};

	while (escape.end < end && *escape.end >= 0x20 && *escape.end <= 0x3f)
		escape.end++;
	if (escape.end == end || *escape.end < 0x40 || *escape.end > 0x7e)
		return escape; /* a control or other byte breaks it off and counts by itself */
	if (parse_number(p, escape.end, &escape))
		escape.action = (char)*escape.end;
	escape.end++;
	escape.complete = true;
	return escape;
}

/* p is behind the introducer of a string: up to ST, or BEL for an OSC, or what breaks it off. */
static struct escape string_at(const unsigned char *p, const unsigned char *end, bool is_osc)
{
	struct escape escape = {.end = p};

	while (escape.end < end) {
		unsigned char byte = *escape.end;

		if (byte == ESC && end - escape.end > 1 && escape.end[1] == '\\') {
			escape.end += 2;
			escape.complete = true;
			return escape;
		}
		if (byte == ESC && end - escape.end > 1)
			return escape; /* another sequence starts */
		if (byte == C1_ST || (byte == BEL && is_osc)) {
			escape.end++;
			escape.complete = true;
			return escape;
		}
		if (byte == CAN || byte == SUB) {
			escape.end++;
			return escape;
		}
		escape.end += character_at(escape.end, end).size;
	}
	return escape;
}

struct escape escape_at(const unsigned char *p, const unsigned char *end)
{
	struct escape escape = {.end = p + 1};

	if (escape.end == end)
		return escape;
	if (*escape.end == '[')
		return csi_at(p + 2, end);
	if (*escape.end == ']')
		return string_at(p + 2, end, true);
	if (memchr("P^_X", *escape.end, 4))
		return string_at(p + 2, end, false);
	while (escape.end < end && *escape.end >= 0x20 && *escape.end <= 0x2f)
		escape.end++;
	if (escape.end < end && *escape.end >= 0x30 && *escape.end <= 0x7e)
		escape.end++;
	return escape;
}

struct escape escape_at_8bit(
	const unsigned char *p, const unsigned char *end, const unsigned char *hopeless[2])
{
	struct escape escape = {.end = p + 1};
	bool is_osc = *p == 0x9d;

	if (*p == 0x9b)
		return csi_at(p + 1, end);
	if (!is_osc && !memchr("\x90\x98\x9e\x9f", *p, 4))
		return escape;
	if (p < hopeless[is_osc])
		return escape;
	escape = string_at(p + 1, end, is_osc);
	if (!escape.complete)
		hopeless[is_osc] = escape.end;
	return escape;
}
