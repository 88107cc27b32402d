/* SPDX-License-Identifier: MIT */
/* The one home of libcap (libcap(3), capabilities(7)). */
#ifndef SBX_CAPS_H
#define SBX_CAPS_H

#include <sys/capability.h>

#include "sbx/err.h"

/*
 * Leaves exactly keep[] in the bounding, permitted, effective and inheritable sets and nothing in
 * the ambient set; checks by reading back. A capability that the kernel does not know is skipped.
 */
int sbx_caps_keep_only(const cap_value_t *keep, size_t n_keep, struct sbx_err *err);
/* Raises every permitted capability in the effective set: setfsuid(2) from 0 to another user
 * clears the file capabilities there, and overlayfs checks them while it makes its workdir. */
int sbx_caps_raise(struct sbx_err *err);

#endif
