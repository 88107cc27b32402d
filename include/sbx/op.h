/* SPDX-License-Identifier: MIT */
/*
 * The table of operations that sandboxd answers: the seven tools of the runtime set and those of
 * sbx-admin. Names, arguments and their checks live here once; sandbox-mcp makes its schemas from
 * it, sandboxd checks each request with it again.
 *
 * For sbx-admin (all take "sandbox_id"; → is the result):
 *   inspect                       → sandbox.json's fields, version, counts, limits, daemon pid
 *   layers                        → {"version", "layers": [layer.json's fields]} top last
 *   layer {layer_id}              → its fields and "paths": [{path, change}]
 *   diff {from?, to?, path?}      → {"from", "to", "files": [{path, change, old_kind, new_kind, diff}]}
 *   log {path}                    → {"path", "versions": [{version, layer_id, owner, command, created_ns, change}]}
 *   cat {path, at?}               → chunks, then {"path", "size"}
 *   ls {path?, at?}               → {"path", "entries": [{name, kind, mode, uid, gid, size, mtime_ns, target?}]}
 *   blame {path, at?}             → as file_blame
 *   session_create                → {"workspace_session_id", "version"}
 *   session_list | session_show {workspace_session_id}
 *   session_diff {workspace_session_id}                 → as a publication's result would be, and paths
 *   session_publish {workspace_session_id, force?}      → what publishing came to
 *   session_discard {workspace_session_id, force?}      → {"workspace_session_id", "discarded": true}
 *   command_list | command_show {command_session_id} | command_kill {command_session_id}
 *   command_tail {command_session_id, follow?}          → chunks (rendered rows), then its state
 *   reject_list | reject_show {reject_id} | reject_diff {reject_id} | reject_drop {reject_id}
 *   reject_export {reject_id, dest} | reject_retry {reject_id}
 *   squash | gc | verify | stat
 *   export {dest, format?}        dest: absolute path where nothing is yet; becomes a directory (dir,
 *                                 oci: an OCI image layout) or a file (tar)
 *   stop                          → ends an idle sandboxd (force: also a busy one)
 */
#ifndef SBX_OP_H
#define SBX_OP_H

#include "sbx/json.h"

enum sbx_arg_type {
	SBX_ARG_STRING,
	SBX_ARG_INTEGER,
	SBX_ARG_BOOLEAN,
	SBX_ARG_EDITS, /* array of {old_string, new_string, replace_all?} */
};

enum sbx_arg_flags {
	SBX_ARG_REQUIRED = 1 << 0,
	SBX_ARG_HAS_DEFAULT = 1 << 1, /* of integers; shown in the schema and put in by the check */
	SBX_ARG_TEXT = 1 << 2,        /* of strings: data, may hold U+0000 (names and paths may not) */
};

struct sbx_arg {
	const char *name; /* NULL ends the list */
	enum sbx_arg_type type;
	enum sbx_arg_flags flags;
	int64_t minimum; /* integers */
	int64_t maximum; /* INT64_MAX: no upper bound in the schema */
	int64_t default_value;
};

enum sbx_op_flags {
	SBX_OP_TOOL = 1 << 0,      /* one of the seven of the runtime set */
	SBX_OP_READ_ONLY = 1 << 1, /* readOnlyHint */
	SBX_OP_ADMIN = 1 << 2,     /* root or the owner by sbx-admin */
};

struct sbx_op {
	const char *name;
	enum sbx_op_flags flags;
	const struct sbx_arg *args;
};

/* The table, in the order of tools/list; ends with a NULL name. */
extern const struct sbx_op sbx_ops[];
const struct sbx_op *sbx_op_find(const char *name); /* NULL: none */

/*
 * Checks args (an object) against the op and rewrites it in place to its plain form: nulls of
 * optional arguments removed, integers that came as 1000.0 made integers, defaults put in.
 * SBX_KIND_INVALID names the argument, what was expected and what was given; unknown arguments are
 * refused by name (and the closest known name suggested).
 */
int sbx_op_check(const struct sbx_op *op, struct json_object *args, struct sbx_err *err);

/* The JSON Schema of its arguments, as in the contract. The caller puts it. */
struct json_object *sbx_op_schema(const struct sbx_op *op);

#endif
