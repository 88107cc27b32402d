/* SPDX-License-Identifier: MIT */
/* A user's own policy of system calls ("--seccomp FILE"), seen from those who take it in. */
#ifndef SBX_POLICY_H
#define SBX_POLICY_H

#include "sbx/err.h"

#define SBX_POLICY_MAX (1u << 20) /* bytes of its text */

/*
 * Whether a text is a policy that sessions can run under: compiles it, and runs a shell under it.
 * The error names line or field, or tells how the shell ended.
 */
int sbx_policy_check(const char *text, size_t size, struct sbx_err *err);

#endif
