/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <string.h>

#include "sbx/wire.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0" /* compiled by hand, without configure */
#endif

#define SERVER_INFO                                                                                \
	"{\"name\":\"sbx\",\"title\":\"sbx sandbox\",\"version\":\"" PACKAGE_VERSION "\"}"

const char *mcp_server_info(void)
{
	return SERVER_INFO;
}

void mcp_put(struct sbx_buf *out, struct mcp_span text)
{
	if (sbx_buf_append(out, text.data, text.size) < 0)
		abort();
}

void mcp_put_string(struct sbx_buf *out, const char *s)
{
	mcp_put(out, (struct mcp_span){s, strlen(s)});
}

/* How many bytes from the front need no escape in a JSON string. */
static size_t plain_prefix(struct mcp_span text)
{
	size_t n = 0;

	while (n < text.size && (unsigned char)text.data[n] >= 0x20 && text.data[n] != '"' &&
		text.data[n] != '\\')
		n++;
	return n;
}

static void put_escaped(struct sbx_buf *out, unsigned char c)
{
	int r;

	if (c == '"' || c == '\\')
		r = sbx_buf_printf(out, "\\%c", c);
	else
		r = sbx_buf_printf(out, "\\u%04x", c);
	if (r < 0)
		abort();
}

void mcp_put_quoted(struct sbx_buf *out, struct mcp_span text)
{
	mcp_put_string(out, "\"");
	for (size_t n; text.size > 0; text.data += n, text.size -= n) {
		n = plain_prefix(text);
		mcp_put(out, (struct mcp_span){text.data, n});
		if (n < text.size)
			put_escaped(out, (unsigned char)text.data[n++]);
	}
	mcp_put_string(out, "\"");
}

static void put_head(struct sbx_buf *out, struct mcp_span id)
{
	mcp_put_string(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	mcp_put(out, id);
}

void mcp_reply_error(struct sbx_buf *out, struct mcp_span id, enum mcp_code code,
	const char *message, const char *data)
{
	put_head(out, id);
	if (sbx_buf_printf(out, ",\"error\":{\"code\":%d,\"message\":", code) < 0)
		abort();
	mcp_put_quoted(out, (struct mcp_span){message, strlen(message)});
	if (data) {
		mcp_put_string(out, ",\"data\":");
		mcp_put_string(out, data);
	}
	mcp_put_string(out, "}}");
}

/* What every modern result carries: that it is the last word, and from whom it comes. */
static void put_era(struct sbx_buf *out, enum mcp_era era)
{
	if (era == MCP_MODERN)
		mcp_put_string(out, "\"resultType\":\"complete\",\"_meta\":{\"" MCP_META_SERVER
				    "\":" SERVER_INFO "}");
}

void mcp_reply_result(
	struct sbx_buf *out, struct mcp_span id, enum mcp_era era, struct mcp_span members)
{
	put_head(out, id);
	mcp_put_string(out, ",\"result\":{");
	put_era(out, era);
	if (era == MCP_MODERN && members.size > 0)
		mcp_put_string(out, ",");
	mcp_put(out, members);
	mcp_put_string(out, "}}");
}

void mcp_reply_tool(struct sbx_buf *out, struct mcp_span id, const struct mcp_tool_answer *answer)
{
	const char *open = answer->is_error ? "{\"error\":" : "";
	const char *close = answer->is_error ? "}" : "";

	put_head(out, id);
	mcp_put_string(out, ",\"result\":{");
	put_era(out, answer->era);
	mcp_put_string(out, answer->era == MCP_MODERN ? ",\"content\":[" : "\"content\":[");
	if (answer->as_text) {
		SBX_BUF struct sbx_buf text = SBX_BUF_INIT;

		mcp_put_string(&text, open);
		mcp_put(&text, answer->payload);
		mcp_put_string(&text, close);
		mcp_put_string(out, "{\"type\":\"text\",\"text\":");
		mcp_put_quoted(out, (struct mcp_span){text.data, text.size});
		mcp_put_string(out, "}");
	}
	mcp_put_string(out, "],\"structuredContent\":");
	mcp_put_string(out, open);
	mcp_put(out, answer->payload);
	mcp_put_string(out, close);
	mcp_put_string(out, answer->is_error ? ",\"isError\":true}}" : ",\"isError\":false}}");
}

void mcp_put_failure(struct sbx_buf *out, const struct sbx_err *err)
{
	SBX_BUF struct sbx_buf frame = SBX_BUF_INIT;
	const size_t head = sizeof(struct sbx_wire_header);

	if (sbx_wire_put_error(&frame, 0, err, NULL) < 0)
		abort();
	mcp_put(out, (struct mcp_span){frame.data + head, frame.size - head});
}
