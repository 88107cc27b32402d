/* SPDX-License-Identifier: MIT */
/* The tries behind sbx_probe_all(), each 0 or -errno with the reason in err. Run in a child. */
#ifndef SBX_SESSION_PROBE_TRY_H
#define SBX_SESSION_PROBE_TRY_H

#include "sbx/err.h"

#define SBX_TRY_ID_BASE (UINT32_C(1) << 20) /* any range will do: little is written with it */

struct sbx_probe_context {
	int state_fd;
	int scratch_fd; /* on the state directory's file system: lower, upper, work, merged */
	int proc_fd;
	int user_ns;        /* from sbx_try_user_namespace() on */
	const char *policy; /* of system calls; NULL: the installed default */
	char detail[200];   /* what a try found, when it succeeded */
};

int sbx_try_kernel(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_capabilities(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_user_namespace(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_mount_namespace(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_other_namespaces(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_forwarding(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_resolver(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_network(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_bridge(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_mount_descriptors(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_overlay(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_lowerdir_plus(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_idmap(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_trusted(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_reflink(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_clone3(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_openat2(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_seccomp(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_sealing(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_devpts(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_bash(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_limits(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_cgroup2(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_proc(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_idmapped_overlay(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_drop_capabilities(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_policy(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_lsm(struct sbx_probe_context *context, struct sbx_err *err);
int sbx_try_cgroup_kill(struct sbx_probe_context *context, struct sbx_err *err);

#endif
