/* SPDX-License-Identifier: MIT */
/*
 * A changeset: every entry of a captured tree, and what it means against the base. Entries stand in
 * one array in the order of a walk (a directory before its children, siblings by bytes), so that
 * an entry costs tens of bytes and a subtree is a range. Paths are made when somebody asks.
 */
#ifndef SBX_OPS_CHANGESET_H
#define SBX_OPS_CHANGESET_H

#include <sys/stat.h>

#include "sbx/ignore.h"
#include "sbx/json.h"

#define SBX_CHANGESET_ENTRIES_MAX 4000000             /* entries of one publication */
#define SBX_CHANGESET_NAMES_MAX   (UINT32_C(1) << 30) /* bytes of all names together */
#define SBX_CHANGESET_DEPTH_MAX   16384               /* directories inside each other */
#define SBX_CHANGESET_RENAMES_MAX 4096  /* renamed directories whose lines keep their owners */
#define SBX_CHANGESET_DROPPED_MAX 1000  /* listed by name; the rest only counted */
#define SBX_CHANGESET_LISTED_MAX  10000 /* paths in a preview's answer */

enum sbx_change {
	SBX_CHANGE_NONE =
		0, /* there for its children, its hard links, or below an opaque directory */
	SBX_CHANGE_ADD,
	SBX_CHANGE_MODIFY,   /* content (and perhaps metadata) of the same kind of thing */
	SBX_CHANGE_DELETE,   /* a whiteout, or left out below an opaque directory */
	SBX_CHANGE_REPLACE,  /* another kind of thing */
	SBX_CHANGE_METADATA, /* mode, owner, xattrs or a file's mtime */
};

enum sbx_entry_flags {
	/* what the capture saw */
	SBX_ENTRY_CONTENT = 1 << 0, /* content, target or kind differs from the base */
	SBX_ENTRY_META = 1 << 1,    /* mode, owner or xattrs differ */
	SBX_ENTRY_MTIME = 1 << 2,   /* a file's mtime differs */
	SBX_ENTRY_OPAQUE = 1 << 3,  /* a directory that hides what the base has below */
	SBX_ENTRY_IMPLIED = 1 << 4, /* a deletion without a whiteout of its own */
	SBX_ENTRY_IGNORED = 1 << 5, /* by the base's .gitignore files */
	SBX_ENTRY_LINKED = 1 << 6,  /* shares its inode with a layer: must never be written to */
	SBX_ENTRY_RENAMED = 1 << 7, /* a directory that was renamed from elsewhere in the base */
	/* what resolving decided */
	SBX_ENTRY_DROP = 1 << 8,     /* the head already says the same, or our side said nothing */
	SBX_ENTRY_SET_META = 1 << 9, /* takes metadata that the head changed */
	SBX_ENTRY_MERGED = 1 << 10,  /* its content comes from a staged merge */
	SBX_ENTRY_CLEAR = 1 << 11,   /* loses its opaque mark: nothing is below any more */
	SBX_ENTRY_ACTION = 1 << 12,  /* one of these four is set here or further down */
};
#define SBX_ENTRY_ACTIONS (SBX_ENTRY_DROP | SBX_ENTRY_SET_META | SBX_ENTRY_MERGED | SBX_ENTRY_CLEAR)

struct sbx_entry {
	uint32_t parent; /* index; the root (index 0) is its own */
	uint32_t end;    /* one past the last entry below it */
	uint32_t name;   /* offset into names */
	uint32_t mode;   /* st_mode of our side; 0 for a deletion */
	uint16_t change; /* enum sbx_change */
	uint16_t flags;  /* enum sbx_entry_flags */
};

/* A directory that rename(2) moved: where the base has its files. */
struct sbx_rename {
	char *path;
	char *origin;
};

struct sbx_changeset {
	struct sbx_entry *entries;
	size_t n;
	size_t capacity;
	struct sbx_buf names;
	struct sbx_rename *renames; /* in the order of discovery: the innermost first */
	size_t n_renames;
	struct sbx_ignore *ignore;   /* the base's .gitignore files that the walk came by */
	struct json_object *dropped; /* [{"path", "kind"}] */
	size_t n_dropped;
};
#define SBX_CHANGESET_INIT ((struct sbx_changeset){0})

void sbx_changeset_done(struct sbx_changeset *set);
#define SBX_CHANGESET SBX_CLEANUP(sbx_changeset_done)

/* Appends an entry below parent (any value for the root); -E2BIG over a limit, with the reason. */
int sbx_changeset_add(struct sbx_changeset *set, uint32_t parent, const char *name,
	const struct sbx_entry *entry, uint32_t *ret_index, struct sbx_err *err);
/* Forgets the last entry, which must have nothing below it. */
void sbx_changeset_pop(struct sbx_changeset *set);
static inline const char *sbx_entry_name(const struct sbx_changeset *set, uint32_t index)
{
	return set->names.data + set->entries[index].name;
}
/* Replaces *ret by the entry's path from the root, "" for the root. -ENOMEM. */
int sbx_changeset_path(const struct sbx_changeset *set, uint32_t index, struct sbx_buf *ret);
/* Sets an action on an entry and marks the way to it. */
void sbx_changeset_act(struct sbx_changeset *set, uint32_t index, enum sbx_entry_flags action);

/* Notes a rename; more than SBX_CHANGESET_RENAMES_MAX are forgotten, which only costs owners. */
int sbx_changeset_renamed(struct sbx_changeset *set, const char *path, const char *origin);
/* Where the base has the directory that a rename brought to path, or NULL (borrowed). */
const char *sbx_changeset_origin(const struct sbx_changeset *set, const char *path);
int sbx_changeset_dropped(struct sbx_changeset *set, const char *path, mode_t mode);

/* How a publication is counted: paths, a deleted directory as one. */
struct sbx_counts {
	uint64_t added;
	uint64_t modified; /* also replaced and metadata-only */
	uint64_t deleted;
	uint64_t merged;  /* also counted as modified */
	uint64_t ignored; /* also counted as what they are */
};
/* Entries that resolving drops are not counted. All zero: there is nothing to publish. */
void sbx_changeset_count(const struct sbx_changeset *set, struct sbx_counts *ret);
void sbx_counts_to_json(const struct sbx_counts *counts, struct json_object *ret_object);
/*
 * "paths": [{"path", "change", "kind", "renamed_from"?}], the first SBX_CHANGESET_LISTED_MAX of
 * them, and "n_paths": all. -ENOMEM.
 */
int sbx_changeset_list(const struct sbx_changeset *set, struct json_object *ret_object);
/* "add", "modify", ... */
const char *sbx_change_name(enum sbx_change change);
/* "file", "directory", "symlink", "fifo"; "other" for what is never published. */
const char *sbx_mode_name(mode_t mode);

#endif
