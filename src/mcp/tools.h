/* SPDX-License-Identifier: MIT */
/* What tools/list says: the tools of the op table with the words that agents read. */
#ifndef SBX_MCP_TOOLS_H
#define SBX_MCP_TOOLS_H

#include "sbx/op.h"
#include "span.h"

/* A member of a tool's result. */
struct mcp_field {
	const char *name;   /* NULL ends the list */
	const char *schema; /* JSON text */
	bool optional;
};

/* Words and result of one tool; its name and arguments come from sbx_ops. */
struct mcp_tool_words {
	const char *name;
	const char *title;
	const char *description;
	const char *hints; /* members of annotations besides readOnlyHint, JSON text */
	const struct mcp_field *fields;
};
extern const struct mcp_tool_words mcp_tool_words[]; /* ends with a NULL name */

/* What a client may put before an agent once, besides the tools' own descriptions. */
extern const char mcp_instructions[];

/* NULL when it is none of the tools (operations of sbx-admin are not). */
const struct sbx_op *mcp_tool_find(const char *name);

/* The JSON array of all tools, in the table's order. Made at the first call, kept for good. */
struct mcp_span mcp_tools_text(void);

#endif
