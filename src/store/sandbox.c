/* SPDX-License-Identifier: MIT */
#include "sandbox.h"

#include <string.h>

#include "fields.h"
#include "sbx/digest.h"
#include "sbx/fs.h"
#include "sealed.h"

#define SANDBOX_FIELD(member, kind) FIELD_OF(struct sbx_sandbox, member, #member, kind)

#define POLICY_MAX (4u << 20) /* more than any that create takes */

static const struct field sandbox_fields[] = {
	FIELD_OF(struct sbx_sandbox, id, "sandbox_id", FIELD_ARRAY),
	SANDBOX_FIELD(owner_uid, FIELD_U32),
	SANDBOX_FIELD(id_base, FIELD_U32),
	SANDBOX_FIELD(root_at, FIELD_STRING),
	SANDBOX_FIELD(rootfs, FIELD_STRING),
	SANDBOX_FIELD(network, FIELD_STRING),
	FIELD_STRINGS(struct sbx_sandbox, allow, "allow"),
	FIELD_OPTIONAL(struct sbx_sandbox, seccomp_profile, "seccomp_profile"),
	FIELD_OPTIONAL(struct sbx_sandbox, seccomp_digest, "seccomp_digest"),
	FIELD_OPTIONAL(struct sbx_sandbox, source, "source"),
	SANDBOX_FIELD(source_uid, FIELD_U32),
	SANDBOX_FIELD(source_gid, FIELD_U32),
	SANDBOX_FIELD(memory_max, FIELD_U64),
	SANDBOX_FIELD(pids_max, FIELD_U64),
	SANDBOX_FIELD(cpu_max, FIELD_U64),
	FIELD_OPTIONAL_U64(struct sbx_sandbox, disk_max, "disk_max"),
	FIELD_OPTIONAL_U64(struct sbx_sandbox, inodes_max, "inodes_max"),
	FIELD_OPTIONAL_U64(struct sbx_sandbox, history_max, "history_max"),
	SANDBOX_FIELD(created_ns, FIELD_U64),
};
_Static_assert(sizeof(uid_t) == 4 && sizeof(gid_t) == 4, "ids are stored as FIELD_U32");

int sbx_state_root(struct sbx_buf *ret_path)
{
	const char *set = getenv(SBX_STATE_DIR_ENV), *xdg = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");

	if (set && *set)
		return sbx_buf_append_string(ret_path, set);
	if (geteuid() == 0)
		return sbx_buf_append_string(ret_path, SBX_STATE_DIR_DEFAULT);
	if (xdg && *xdg == '/') /* the specification ignores relative ones */
		return sbx_buf_printf(ret_path, "%s/sbx", xdg);
	if (home && *home == '/')
		return sbx_buf_printf(ret_path, "%s/.local/state/sbx", home);
	return -ENOENT;
}

void sbx_sandbox_done(struct sbx_sandbox *sandbox)
{
	fields_done(sandbox_fields, SBX_N_ELEMENTS(sandbox_fields), sandbox);
	*sandbox = (struct sbx_sandbox){0};
}

void sbx_sandbox_to_json(const struct sbx_sandbox *sandbox, struct json_object *ret_object)
{
	fields_to_json(sandbox_fields, SBX_N_ELEMENTS(sandbox_fields), sandbox, ret_object);
}

/* Values that no create wrote; acting on them could reach into another's ids or files. */
static const char *sandbox_damage(const struct sbx_sandbox *sandbox)
{
	if (!sbx_id_valid(sandbox->id))
		return "the id is malformed";
	if (!sandbox_id_base_valid(sandbox->id_base))
		return "the id range is not one of ours";
	if (sandbox->root_at[0] != '/')
		return "the workspace root is not absolute";
	if (!sandbox->seccomp_profile != !sandbox->seccomp_digest)
		return "seccomp_profile and seccomp_digest belong together";
	return NULL;
}

int sbx_sandbox_load(int sandbox_fd, struct sbx_sandbox *ret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_sandbox_done) struct sbx_sandbox sandbox = {0};
	SBX_JSON struct json_object *body = NULL;
	const char *damage;
	int r;

	r = sealed_read(sandbox_fd, SANDBOX_JSON, &body, err);
	if (r < 0)
		return r;
	r = fields_from_json(sandbox_fields, SBX_N_ELEMENTS(sandbox_fields), body, &sandbox, err);
	if (r < 0)
		return sbx_err_wrap(err, r, SANDBOX_JSON " is damaged");
	damage = sandbox_damage(&sandbox);
	if (damage)
		return sbx_err_set(err, EBADMSG, SANDBOX_JSON " is damaged: %s", damage);
	*ret = sandbox;
	sandbox = (struct sbx_sandbox){0};
	return 0;
}

int sbx_sandbox_policy(
	int sandbox_fd, const struct sbx_sandbox *sandbox, struct sbx_buf *ret, struct sbx_err *err)
{
	char hex[SBX_DIGEST_HEX_SIZE];
	struct sbx_digest digest;
	int r;

	if (!sandbox->seccomp_digest)
		return 0;
	r = sbx_fs_read_at(sandbox_fd, SBX_SANDBOX_SECCOMP, POLICY_MAX, ret);
	if (r < 0)
		return sbx_err_set(err, -r, "read " SBX_SANDBOX_SECCOMP " of the sandbox: %m");
	sbx_digest_bytes(ret->data ? ret->data : "", ret->size, &digest);
	sbx_digest_hex(&digest, hex);
	if (strcmp(hex, sandbox->seccomp_digest))
		return sbx_err_set(err, EBADMSG,
			SBX_SANDBOX_SECCOMP " is not the policy that the sandbox was created with; "
					    "put that back, or create the sandbox again");
	return 0;
}

int sandbox_save(int sandbox_fd, const struct sbx_sandbox *sandbox, struct sbx_err *err)
{
	SBX_JSON struct json_object *body = json_object_new_object();

	if (!body)
		return sbx_err_set(err, ENOMEM, "write " SANDBOX_JSON ": %m");
	sbx_sandbox_to_json(sandbox, body);
	return sealed_write(sandbox_fd, SANDBOX_JSON, body, SBX_FS_DURABLE, err);
}
