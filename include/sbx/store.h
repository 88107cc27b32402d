/* SPDX-License-Identifier: MIT */
/*
 * A sandbox on disk: identity, layers, head.log. sandboxd is the only writer (a held flock).
 * Byte formats: docs/store-format.md.
 */
#ifndef SBX_STORE_H
#define SBX_STORE_H

#include "sbx/json.h"
#include "sbx/view.h"

#define SBX_STATE_DIR_ENV     "SBX_STATE_DIR"
#define SBX_STATE_DIR_DEFAULT "/var/lib/sbx"
#define SBX_SANDBOX_OWNER                                                                          \
	"owner" /* empty; readable by the owner only, so that clients can tell                     \
		 */
#define SBX_SANDBOX_SECCOMP "seccomp.json" /* a policy of its own, byte for byte */
#define SBX_LAYER_LINES     "lines"
#define SBX_LAYER_TREE      "tree"
#define SBX_LAYER_JSON      "layer.json"
#define SBX_REJECT_JSON     "reject.json" /* written last: a reject without it is half-made */
#define SBX_STORE_TRASH     "trash"       /* <store>/trash: made when needed, emptied at leisure */

/* $SBX_STATE_DIR, else /var/lib/sbx for root, else $XDG_STATE_HOME/sbx (or ~/.local/state/sbx). */
int sbx_state_root(struct sbx_buf *ret_path);

/* sandbox.json: written once by create. */
struct sbx_sandbox {
	char id[SBX_ID_SIZE];
	uid_t owner_uid;           /* may use the sandbox, besides root */
	uid_t id_base;             /* private host range of 65536 ids */
	char *root_at;             /* "/workspace" */
	char *rootfs;              /* "host" or an absolute path */
	char *network;             /* "none", "host", "bridge" */
	struct json_object *allow; /* "CIDR[:PORT]" each, exceptions of "bridge"; NULL: none */
	char *seccomp_profile;     /* the file that its policy was copied from, or NULL */
	char *seccomp_digest;      /* SHA-256 of the copy, in hex */
	char *source;              /* the imported directory, for people */
	uid_t source_uid;          /* owner of the imported directory: became in-session root */
	gid_t source_gid;
	/* of each session; 0: not asked for, see cgroup.h for the defaults */
	uint64_t memory_max; /* bytes */
	uint64_t pids_max;
	uint64_t cpu_max;     /* hundredths of a core */
	uint64_t disk_max;    /* bytes that it may write to disk; 0 here: no limit */
	uint64_t inodes_max;  /* files and directories of the same */
	uint64_t history_max; /* bytes; 0: SBX_HISTORY_MAX, see sbx_history_oldest() */
	uint64_t created_ns;  /* CLOCK_REALTIME */
	const struct sbx_buf *seccomp_policy; /* create only: the text that is to be copied */
};
void sbx_sandbox_done(struct sbx_sandbox *sandbox);
/* sandbox_fd: <state>/<id>. */
int sbx_sandbox_load(int sandbox_fd, struct sbx_sandbox *ret, struct sbx_err *err);
/* The policy of system calls that the sandbox was created with, as it was then: -EBADMSG for any
 * other. Nothing when it has none of its own. */
int sbx_sandbox_policy(int sandbox_fd, const struct sbx_sandbox *sandbox, struct sbx_buf *ret,
	struct sbx_err *err);
void sbx_sandbox_to_json(const struct sbx_sandbox *sandbox, struct json_object *ret_object);

/*
 * Makes <state>/<id> complete: directories, id range (no other sandbox under this state root has
 * it), base layer imported from source_fd, head.log with version 1; all durable; visible under its
 * id only when complete (built under a temporary name, then renamed). -EEXIST when the id is taken.
 * progress may be NULL; called now and then with entries done so far.
 */
typedef void (*sbx_progress_fn)(void *data, uint64_t n_entries, uint64_t n_bytes);
int sbx_sandbox_create(const char *state_root, struct sbx_sandbox *sandbox, int source_fd,
	sbx_progress_fn progress, void *data, struct json_object *ret_report, struct sbx_err *err);

/* head.log */
struct sbx_head {
	uint64_t version; /* 1: the base layer alone */
	struct sbx_stack stack;
};
void sbx_head_done(struct sbx_head *head);

struct sbx_head_log;
/*
 * Opens and replays <store>/head.log. What a crash left at its end of a batch that was never
 * acknowledged is ignored, and cut off when writable; any other damage is -EBADMSG naming record
 * and byte, or the acknowledged version that is missing. writable: false never changes a file.
 */
int sbx_head_log_open(int store_fd, bool writable, struct sbx_head_log **ret, struct sbx_err *err);
void sbx_head_log_free(struct sbx_head_log *log);
const struct sbx_head *sbx_head_log_head(const struct sbx_head_log *log);
/* Borrowed; another one after sbx_head_log_forget(). */
int sbx_head_log_fd(const struct sbx_head_log *log);
/* The stack at an older version: -ENOENT when it never was or has been compacted away. */
int sbx_head_log_at(const struct sbx_head_log *log, uint64_t version, struct sbx_head *ret);
/*
 * The three steps of a commit, apart so that only the middle one blocks (a worker's job):
 * format appends the record's bytes to a batch; write appends the batch and fdatasyncs; apply
 * makes it the head in memory. A failed write truncates the file back and reports.
 *
 * A batch is formatted, written and applied before the next one is formatted, and every version in
 * it is higher than the one before. format cannot know the changes that are before it in its
 * batch: the caller sees to it that each fits the stack (room below SBX_STACK_MAX, removed layers
 * in a row), or apply fails with what is already written: -EINVAL, -EEXIST, -E2BIG, -ENOMEM.
 */
struct sbx_head_change {
	const char *add_layer;          /* on top, or in the place of removed ones; NULL: none */
	const struct sbx_stack *remove; /* squash: a contiguous run that add_layer replaces */
};
int sbx_head_log_format(const struct sbx_head_log *log, uint64_t version,
	const struct sbx_head_change *change, struct sbx_buf *batch);
int sbx_head_log_write(int fd, const void *batch, size_t size, struct sbx_err *err);
int sbx_head_log_apply(
	struct sbx_head_log *log, uint64_t version, const struct sbx_head_change *change);
/* The oldest version that can be asked for. */
uint64_t sbx_head_log_oldest(const struct sbx_head_log *log);
/*
 * Notes that the head in memory is about to be told to somebody: from then on a log without it is
 * damaged. Writes a few bytes and syncs nothing. -errno: then its loss would not be noticed.
 */
int sbx_head_log_acknowledge(struct sbx_head_log *log);
/*
 * Forgets the versions before oldest (0: none), and when the log has 2048 records or more all but
 * the newest 1024: rewrites it as a snapshot and what follows (tmp + fsync + rename + dir fsync),
 * or does nothing. The layers that no version names any more are added to the set gone. Never while
 * a write is under way. After a failure that leaves it open whether the new file is in place,
 * writes fail with -EBADF: open the log again.
 */
int sbx_head_log_forget(struct sbx_head_log *log, int store_fd, uint64_t oldest,
	struct sbx_stack *gone, struct sbx_err *err);

/* What layers that only older versions than the head need may take on disk. */
#define SBX_HISTORY_MAX (UINT64_C(4) << 30)
/*
 * How far back versions can be kept within max bytes: *ret_oldest is 0 when that is as far as the
 * log goes. A layer weighs the blocks of its files, each divided by the number of its names
 * (squashed layers share files), and something for each entry. weights is a cache, {layer_id:
 * bytes}: what is missing is looked for and added. Blocks: a worker's job.
 */
int sbx_history_oldest(int layers_fd, const struct sbx_head_log *log, uint64_t max,
	struct json_object *weights, uint64_t *ret_oldest, struct sbx_err *err);

/* layer.json */
struct sbx_layer_info {
	char id[SBX_ID_SIZE];
	uint64_t parent_version;
	uint64_t created_ns;
	char *owner;   /* "workspace_session:<id>", "operation:<id>", "original" */
	char *command; /* what made it; NULL: not a command */
	uint64_t added, modified, deleted, merged, ignored;
	uint64_t n_entries, n_bytes; /* of the tree */
	char tree_digest[65];        /* sbx_layer_digest(), hex */
};
void sbx_layer_info_done(struct sbx_layer_info *info);
int sbx_layer_info_load(int layer_fd, struct sbx_layer_info *ret, struct sbx_err *err);
/* Writes layer.json with its checksum (not synced by itself). */
int sbx_layer_info_save(int layer_fd, const struct sbx_layer_info *info, struct sbx_err *err);
void sbx_layer_info_to_json(const struct sbx_layer_info *info, struct json_object *ret_object);
/* Digest over names, kinds, modes, ids, times (not of directories), xattrs, targets and contents of
 * a tree, in a fixed order; counts entries and bytes. */
int sbx_layer_digest(int tree_fd, char ret_hex[static 65], uint64_t *ret_entries,
	uint64_t *ret_bytes, struct sbx_err *err);

/* What a directory takes of its file system, without itself. Others may change it meanwhile, as
 * they like; no link is followed and nothing is opened but directories. Blocks: a worker's job. */
struct sbx_usage {
	uint64_t n_bytes;
	uint64_t n_inodes; /* entries */
	bool complete;     /* false: directories were moved away under the walk, so there is more */
};
int sbx_store_usage(int dir_fd, struct sbx_usage *ret, struct sbx_err *err);

/*
 * Removes what nothing references: layers neither of a version that the log knows nor in keep,
 * rejects without reject.json, temporary files, and what is in the trash. keep (NULL: none): the
 * layers that the pins of sessions and the bases of rejects need. Called by the store's only writer
 * while no publication is being prepared, or its layer would go too. ret_n_removed counts
 * directories and files of the store, not what was in them.
 */
int sbx_store_sweep(int store_fd, const struct sbx_head_log *log, const struct sbx_stack *keep,
	uint64_t *ret_n_removed, struct sbx_err *err);

/*
 * Flattens run, layers in a row above below (which may be empty), into the new layer info->id by
 * hard links: what a stack shows, and blame, is the same with it in the place of run. Marks that
 * hide nothing are left out. Of info the caller fills id, parent_version, created_ns, owner and
 * command; the counts become the sums of the run's. Durable when it returns 0; after a failure
 * nothing is left. Blocks: a worker's job.
 */
int sbx_store_squash(int layers_fd, const struct sbx_stack *below, const struct sbx_stack *run,
	struct sbx_layer_info *info, struct sbx_err *err);

/*
 * Export: writes what a view shows back out, owners mapped back (in-session root becomes the owner
 * of the imported directory). ret_report gets "entries", "bytes", "xattrs_dropped".
 *
 * Into dest_fd, an empty directory (-ENOTEMPTY otherwise); hard links stay within what is
 * exported. After a failure what was written so far stays: the message says so.
 */
int sbx_store_export_dir(struct sbx_view *view, const struct sbx_sandbox *sandbox, int dest_fd,
	sbx_progress_fn progress, void *data, struct json_object *ret_report, struct sbx_err *err);
/* As a tar archive (POSIX pax: names of any bytes and length, nanoseconds, attributes) to fd. */
int sbx_store_export_tar(struct sbx_view *view, const struct sbx_sandbox *sandbox, int fd,
	sbx_progress_fn progress, void *data, struct json_object *ret_report, struct sbx_err *err);

/*
 * Checks a whole store and calls report once for each damage, what ("layer layer_…: …") naming the
 * thing; the return value is their number, or -errno when the check itself could not go on (report
 * was called for that, too). It reads all contents; the store may be in use.
 */
typedef void (*sbx_damage_fn)(void *data, const char *what);
int sbx_store_verify(int sandbox_fd, sbx_damage_fn report, void *data);

#endif
