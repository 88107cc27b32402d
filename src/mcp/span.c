/* SPDX-License-Identifier: MIT */
#include "span.h"

#include <string.h>

/* The text between "{" or "[" and its end, and how far the walk has come. */
struct walk {
	const char *data;
	size_t size;
	size_t at;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Steps over white space and the separators between members. */
static void skip_separators(struct walk *walk)
{
	while (walk->at < walk->size &&
		(is_space(walk->data[walk->at]) || walk->data[walk->at] == ',' ||
			walk->data[walk->at] == ':'))
		walk->at++;
}

/* From an opening quote to just past the closing one. A quote is escaped when an odd number of
 * backslashes stands before it. */
static void skip_string(struct walk *walk)
{
	size_t start = walk->at + 1;
	const char *quote = walk->data + walk->at;

	do {
		size_t from = (size_t)(quote - walk->data) + 1, n = 0;

		quote = memchr(walk->data + from, '"', walk->size - from);
		if (!quote) {
			walk->at = walk->size;
			return;
		}
		while (quote - n > walk->data + start && quote[-1 - (ssize_t)n] == '\\')
			n++;
		if (n % 2 == 0)
			break;
	} while (true);
	walk->at = (size_t)(quote - walk->data) + 1;
}

static void skip_container(struct walk *walk)
{
	size_t depth = 0;

	do {
		char c = walk->data[walk->at];

		if (c == '"') {
			skip_string(walk);
			continue;
		}
		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		walk->at++;
	} while (depth > 0 && walk->at < walk->size);
}

static struct mcp_span take_value(struct walk *walk)
{
	size_t start = walk->at;
	char c = walk->data[start];

	if (c == '"')
		skip_string(walk);
	else if (c == '{' || c == '[')
		skip_container(walk);
	else
		for (walk->at++; walk->at < walk->size; walk->at++)
			if (strchr(",]} \t\r\n", walk->data[walk->at]))
				break;
	return (struct mcp_span){walk->data + start, walk->at - start};
}

/* False at the end of the container. */
static bool next_value(struct walk *walk, struct mcp_span *ret)
{
	skip_separators(walk);
	if (walk->at >= walk->size || walk->data[walk->at] == '}' || walk->data[walk->at] == ']')
		return false;
	*ret = take_value(walk);
	return true;
}

static struct walk walk_of(struct mcp_span span, char open)
{
	struct walk walk = {span.data, span.size, 0};

	while (walk.at < walk.size && is_space(walk.data[walk.at]))
		walk.at++;
	if (walk.at < walk.size && walk.data[walk.at] == open)
		walk.at++;
	else
		walk.at = walk.size;
	return walk;
}

struct mcp_span mcp_span_member(struct mcp_span object, const char *key)
{
	struct walk walk = walk_of(object, '{');
	struct mcp_span name, value, found = {0};
	size_t size = strlen(key);

	while (next_value(&walk, &name) && next_value(&walk, &value)) {
		if (memchr(name.data, '\\', name.size))
			return (struct mcp_span){0};
		if (name.size == size + 2 && !memcmp(name.data + 1, key, size))
			found = value;
	}
	return found;
}

bool mcp_span_element(struct mcp_span array, size_t *at, struct mcp_span *ret)
{
	struct walk walk = walk_of(array, '[');
	bool more;

	if (*at > 0)
		walk.at = *at;
	more = next_value(&walk, ret);
	*at = walk.at;
	return more;
}

bool mcp_span_equal(struct mcp_span a, struct mcp_span b)
{
	return a.size == b.size && (a.size == 0 || !memcmp(a.data, b.data, a.size));
}
