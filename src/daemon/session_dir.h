/* SPDX-License-Identifier: MIT */
/*
 * A session's directory: sessions/<id>/{session.json, upper/, work/}, and root/{upper/, work/} in a
 * sandbox with a root file system of its own. It is named by the session's
 * id and says nothing about it inside, so that an untouched one can be given to the next session
 * by a rename. "dead_<id>" is a directory whose work is done; removing it is never urgent.
 */
#ifndef SBX_DAEMON_SESSION_DIR_H
#define SBX_DAEMON_SESSION_DIR_H

#include <sys/stat.h>

#include "sbx/store.h"

#define SESSION_DEAD_PREFIX "dead_"

/*
 * Makes the directory for a session on head. The upper's root takes mode, ids, times and user
 * xattrs of the head's root: overlayfs shows the topmost directory's. Not synced: a session that
 * power loss takes away was never acknowledged.
 */
int session_dir_make(int sessions_fd, int layers_fd, const char *id, bool managed,
	const struct sbx_head *base, struct sbx_err *err);
/* Adds root/. */
int session_dir_make_root(int sessions_fd, const char *id, struct sbx_err *err);
/* What session.json says. -EBADMSG when it is damaged, named in err. */
int session_dir_load(int sessions_fd, const char *id, bool *ret_managed, struct sbx_head *ret_base,
	struct sbx_err *err);
/* CLOCK_REALTIME, as its session.json has it, which is written once; 0: unknown. */
uint64_t session_dir_made_ns(int sessions_fd, const char *id);
/* Empties work and root/work: a volatile overlay refuses a workdir that was used before
 * (overlayfs.rst). */
int session_dir_renew_work(int sessions_fd, const char *id);
/* stat of upper/ itself, and whether it has no entry. */
int session_dir_upper(int sessions_fd, const char *id, struct stat *ret_stat, bool *ret_empty);
/* The same of root/upper/. */
int session_dir_root_upper(int sessions_fd, const char *id, struct stat *ret_stat, bool *ret_empty);
/* Renames it out of the way; ret_name is what to remove. */
int session_dir_bury(int sessions_fd, const char *id, char ret_name[static SBX_ID_SIZE + 8]);

#endif
