/* SPDX-License-Identifier: MIT */
/* System call filters. The one home of libseccomp. */
#ifndef SBX_SESSION_FILTER_H
#define SBX_SESSION_FILTER_H

#include <linux/filter.h>

#include "sbx/err.h"

struct sbx_filter {
	struct sock_filter *code;
	unsigned short n;
};
void sbx_filter_done(struct sbx_filter *filter);

/*
 * Compiles a policy in the form of the OCI runtime specification ("linux.seccomp") for the native
 * architecture. Where the policy and this page leave a choice:
 *   - a refusal with args wins over whatever else is said about the call;
 *   - an unconditional rule wins over conditional permissions;
 *   - a call with a number above all that the policy names gets ENOSYS, not the default: programs
 *     fall back from ENOSYS to an older call, and from nothing else;
 *   - x32 and foreign architectures get ENOSYS;
 *   - names that this libseccomp does not know are passed over when the default refuses, and an
 *     error when it permits: a refusal must not be lost.
 */
int sbx_filter_compile(const char *text, size_t size, struct sbx_filter *ret, struct sbx_err *err);
int sbx_filter_load(const char *path, struct sbx_filter *ret, struct sbx_err *err);

/* Puts the calling process (with no_new_privs set) under the filter for good. */
int sbx_filter_enter(const struct sbx_filter *filter, struct sbx_err *err);

#endif
