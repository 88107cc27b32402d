/* SPDX-License-Identifier: MIT */
/* What ps shows of a forked process: not sandboxd's arguments, which a session could read too. */
#ifndef SBX_SESSION_TITLE_H
#define SBX_SESSION_TITLE_H

#include "sbx/err.h"

/*
 * Names the calling process, both the thread's name (at most 15 characters) and the command line.
 * The first call needs /proc of the caller's own pid namespace; later ones, also in forked
 * children, need nothing.
 */
int sbx_title_set(const char *title, struct sbx_err *err);

#endif
