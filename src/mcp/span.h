/* SPDX-License-Identifier: MIT */
/*
 * Pieces of JSON text as they were written. json-c gives values; an id has to go back byte for
 * byte. The text given here has been parsed already and is known to be well-formed.
 */
#ifndef SBX_MCP_SPAN_H
#define SBX_MCP_SPAN_H

#include "sbx/util.h"

struct mcp_span {
	const char *data; /* borrowed */
	size_t size;      /* 0: there is no such piece */
};

/* The text of object's member (of the last one, like json-c, where a key is given twice). Empty
 * when there is none, or when some key is written with an escape and cannot be told from it. */
struct mcp_span mcp_span_member(struct mcp_span object, const char *key);

/* Walks the elements of an array; *at is 0 before the first. False after the last. */
bool mcp_span_element(struct mcp_span array, size_t *at, struct mcp_span *ret);

bool mcp_span_equal(struct mcp_span a, struct mcp_span b);

#endif
