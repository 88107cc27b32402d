/* SPDX-License-Identifier: MIT */
/* The methods that are answered, and who may call them. */
#include "methods.h"

#include <string.h>

#include "tools.h"

/* What identifies this server and says what it can do, in the words that both eras share. */
static void put_capabilities(struct sbx_buf *out)
{
	mcp_put_string(out, "\"capabilities\":{\"tools\":{}},\"serverInfo\":");
	mcp_put_string(out, mcp_server_info());
	mcp_put_string(out, ",\"instructions\":");
	mcp_put_quoted(out, (struct mcp_span){mcp_instructions, strlen(mcp_instructions)});
}

static void do_initialize(const struct mcp_request *request)
{
	SBX_BUF struct sbx_buf members = SBX_BUF_INIT;
	const char *version =
		mcp_era_negotiate(sbx_json_member(request->params, "protocolVersion"));

	if (request->batch) {
		mcp_answer_error(
			request, MCP_INVALID_REQUEST, "initialize cannot be part of a batch", NULL);
		return;
	}
	request->session->negotiated = version;
	mcp_put_string(&members, "\"protocolVersion\":\"");
	mcp_put_string(&members, version);
	mcp_put_string(&members, "\",");
	put_capabilities(&members);
	mcp_answer_members(request, (struct mcp_span){members.data, members.size});
}

static void do_ping(const struct mcp_request *request)
{
	mcp_answer_members(request, (struct mcp_span){"", 0});
}

/* ["2026-07-28"] */
static void put_modern_versions(struct sbx_buf *out)
{
	for (const char *const *version = mcp_modern_versions; *version; version++) {
		mcp_put_string(out, version == mcp_modern_versions ? "[\"" : "\",\"");
		mcp_put_string(out, *version);
	}
	mcp_put_string(out, "\"]");
}

/* How long a client may keep what does not change while this process runs. */
static void put_cache_hint(struct sbx_buf *out, enum mcp_era era)
{
	if (era == MCP_MODERN)
		mcp_put_string(out, ",\"ttlMs\":3600000,\"cacheScope\":\"public\"");
}

static void do_discover(const struct mcp_request *request)
{
	SBX_BUF struct sbx_buf members = SBX_BUF_INIT;

	mcp_put_string(&members, "\"supportedVersions\":");
	put_modern_versions(&members);
	mcp_put_string(&members, ",");
	put_capabilities(&members);
	put_cache_hint(&members, request->era);
	mcp_answer_members(request, (struct mcp_span){members.data, members.size});
}

static void do_tools_list(const struct mcp_request *request)
{
	SBX_BUF struct sbx_buf members = SBX_BUF_INIT;

	if (sbx_json_member(request->params, "cursor")) {
		mcp_answer_error(request, MCP_INVALID_PARAMS,
			"unknown cursor: the list of tools has one page; leave cursor out", NULL);
		return;
	}
	mcp_put_string(&members, "\"tools\":");
	mcp_put(&members, mcp_tools_text());
	put_cache_hint(&members, request->era);
	mcp_answer_members(request, (struct mcp_span){members.data, members.size});
}

static struct mcp_call *call_new(const struct mcp_request *request)
{
	struct mcp_call *call = calloc(1, sizeof(*call));
	char *id = malloc(request->id.size);

	if (!call || !id)
		abort(); /* half an answer must not go out, and neither must none */
	memcpy(id, request->id.data, request->id.size);
	*call = (struct mcp_call){
		.id = id,
		.id_size = request->id.size,
		.era = request->era,
		.batch = request->batch,
	};
	return call;
}

static void call_tool(
	const struct mcp_request *request, const struct sbx_op *op, struct json_object *args)
{
	struct sbx_err err = SBX_ERR_INIT;
	struct mcp_call *call;
	int r;

	r = sbx_op_check(op, args, &err);
	if (r < 0) {
		mcp_answer_failure(request, &err);
		return;
	}
	call = call_new(request);
	if (request->batch)
		request->batch->n_waiting++;
	r = mcp_links_call(request->session->links, op, args, call, &err);
	if (r < 0) {
		mcp_answer_failure(request, &err);
		mcp_batch_release(request->session, call->batch);
		mcp_call_free(call);
	}
}

static void do_tools_call(const struct mcp_request *request)
{
	struct json_object *name = sbx_json_member(request->params, "name");
	struct json_object *args = sbx_json_member(request->params, "arguments");
	SBX_JSON struct json_object *no_args = NULL;
	const struct sbx_op *op;

	if (!json_object_is_type(name, json_type_string)) {
		mcp_answer_error(request, MCP_INVALID_PARAMS, "params.name must be a string", NULL);
		return;
	}
	op = mcp_tool_find(json_object_get_string(name));
	if (!op || strlen(op->name) != (size_t)json_object_get_string_len(name)) {
		mcp_answer_named(
			request, MCP_INVALID_PARAMS, "Unknown tool", json_object_get_string(name));
		return;
	}
	if (!args)
		args = no_args = json_object_new_object();
	call_tool(request, op, args);
}

static const struct method {
	const char *name;
	int eras;
	void (*run)(const struct mcp_request *request);
} methods[] = {
	{"initialize", MCP_LEGACY, do_initialize},
	/* gone from 2026-07-28; answered there all the same, since nothing can be meant but this */
	{"ping", MCP_LEGACY | MCP_MODERN, do_ping},
	{"server/discover", MCP_MODERN, do_discover},
	{"tools/list", MCP_LEGACY | MCP_MODERN, do_tools_list},
	{"tools/call", MCP_LEGACY | MCP_MODERN, do_tools_call},
};

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(methods); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

static void answer_unsupported(const struct mcp_request *request, const char *requested)
{
	SBX_BUF struct sbx_buf data = SBX_BUF_INIT;

	mcp_put_string(&data, "{\"supported\":");
	put_modern_versions(&data);
	mcp_put_string(&data, ",\"requested\":");
	mcp_put_quoted(&data, (struct mcp_span){requested, strlen(requested)});
	mcp_put_string(&data, "}");
	mcp_answer_error(
		request, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version", data.data);
}

void mcp_method_run(struct mcp_request *request, const char *name)
{
	const struct method *method = find_method(name);
	struct mcp_era_check check;
	enum mcp_era_verdict verdict;

	if (!method) {
		mcp_answer_named(request, MCP_METHOD_NOT_FOUND, "Method not found", name);
		return;
	}
	verdict = mcp_era_of(name, request->params, request->session->negotiated, &check);
	request->era = check.era;
	if (verdict == MCP_ERA_UNSUPPORTED)
		answer_unsupported(request, check.requested);
	else if (verdict == MCP_ERA_INCOMPLETE)
		mcp_answer_error(request, MCP_INVALID_PARAMS, check.problem, NULL);
	else if (!(method->eras & (int)check.era))
		mcp_answer_named(request, MCP_METHOD_NOT_FOUND,
			"Method not found in this protocol version", name);
	else
		method->run(request);
}
