/* SPDX-License-Identifier: MIT */
/*
 * The spawner: the only process that mounts and makes namespaces. sandboxd forks it before it
 * reads any input and speaks to it in fixed-size requests with descriptors; it never parses text
 * from outside. One per sandbox.
 *
 * Theory of operation. At start it makes, once per sandbox:
 *   - the user namespace (ids 0..65535 on a private host range);
 *   - the store namespace: a mount namespace in which layers are attached, idmapped, as /l/<number>
 *     and the parents of upper and work as /s/<slot>;
 *   - the template namespace: a mount namespace whose root is the session's root file system with
 *     everything that all sessions share (read-only /usr, /etc, /dev ...), entered by pivot_root.
 *     With a root file system of its own (rootfs.h) it holds /dev only, and each session's
 *     namespace goes on into the session's own overlay of it.
 * A *slot* is a prepared session: an overlay, a mount namespace cloned from the template with the
 * overlay at the workspace root and private tmpfs, and ipc, uts and net namespaces, all held as
 * descriptors; and its init (pid 1), parked: it has given up its rights and waits for a control
 * socket. (Forking it and giving up rights takes some 60 % of the time of a plain shell: ahead of
 * need it costs nobody anything.) RUN hands it the control socket; when init has died the slot can
 * be RUN again (a new init in the same namespaces: /tmp and the host name stay), RENEWed (the upper
 * was left truly empty: the same overlay, fresh everything else) or DROPped (the overlay is
 * released, then the upper may be read). The last two work on a slot that never ran, too.
 * DROP is refused with -EBUSY while the descriptor that PREPARE gave, or one got from it, is open.
 *
 * Requests are answered in order, each by one reply with the request's tag. Layers that a slot
 * uses stay attached until UNLAYER, which is refused (-EBUSY) while a slot uses them.
 */
#ifndef SBX_SPAWNER_H
#define SBX_SPAWNER_H

#include <sys/types.h>

#include "sbx/buf.h"
#include "sbx/cgroup.h"
#include "sbx/err.h"
#include "sbx/id.h"
#include "sbx/network.h"

#define SBX_SPAWN_LAYERS_MAX 450 /* the kernel takes 500 lower layers per overlay */
#define SBX_SPAWN_SLOTS_MAX  1024
#define SBX_SPAWN_NAMES_MAX  65536 /* layer numbers in use at a time: 0..65535 */

/* Fixed for the life of the sandbox. Paths must outlive sbx_spawner_start(). */
struct sbx_spawner_config {
	const char *sandbox_id;
	const char *root_at; /* absolute workspace root inside: "/workspace" */
	uid_t id_base;       /* first host id of the sandbox's range of 65536 */
	enum sbx_network network;
	const struct sbx_allow *allow; /* exceptions from the walls of "bridge" */
	size_t n_allow;
	const struct sbx_resolver *resolver; /* for "bridge" */
	const char *seccomp_profile; /* path of the policy JSON; NULL: the installed default */
	const struct sbx_buf *seccomp_policy; /* its text, which counts instead; or NULL */
	uint64_t tmp_bytes;                   /* size limit of each private tmpfs */
	uint64_t file_max; /* bytes of one file that a session writes; 0: no limit */
	int layers_fd;     /* <store>/layers */
	int sessions_fd;   /* <sandbox>/sessions */
	int rootfs_fd;     /* an unpacked root file system (rootfs.h); -EBADF: the host's */
	int lock_fd;       /* held by spawner and inits: a new sandboxd waits until they are gone */
};

struct sbx_spawner; /* sandboxd's end */

/* Forks the spawner, waits until it has set up, and returns its end. On failure err says which
 * step and what to do. Only one thread and no secrets in memory at this time. */
int sbx_spawner_start(
	const struct sbx_spawner_config *config, struct sbx_spawner **ret, struct sbx_err *err);
void sbx_spawner_free(struct sbx_spawner *spawner); /* closes; the spawner and all sessions end */
int sbx_spawner_fd(const struct sbx_spawner *spawner);    /* poll for EPOLLIN: a reply is there */
int sbx_spawner_pidfd(const struct sbx_spawner *spawner); /* EPOLLIN: it died */

/* Requests (sent at once; the reply comes later with the tag, which is not 0). -EAGAIN: the spawner
 * is behind by more than a thousand requests; nothing was sent. */
int sbx_spawner_layer(struct sbx_spawner *s, uint64_t tag, uint32_t number, const char *layer_id);
int sbx_spawner_unlayer(struct sbx_spawner *s, uint64_t tag, uint32_t number);
/* session_dir: name below sessions_fd with upper/ and work/ inside (work/ empty), and the same
 * two in root/ where the sandbox has a root file system of its own. layers: numbers, bottom first.
 * The reply carries one descriptor: O_PATH of the overlay's root, for file tools. */
int sbx_spawner_prepare(struct sbx_spawner *s, uint64_t tag, uint32_t slot, const char *session_dir,
	const uint32_t *layers, size_t n_layers);
/* control: init's end of the control socket (init.h); duplicated, the caller closes its own. START
 * may be sent into it before RUN. The reply carries init's pidfd. */
int sbx_spawner_run(struct sbx_spawner *s, uint64_t tag, uint32_t slot, int control_fd);
int sbx_spawner_renew(struct sbx_spawner *s, uint64_t tag, uint32_t slot);
int sbx_spawner_drop(struct sbx_spawner *s, uint64_t tag, uint32_t slot);
/* The control group in which the inits of a slot are born from its next PREPARE on, and so all that
 * runs in it; NULL: in the spawner's own again. For a slot that is not in use (-EBUSY); it outlives
 * DROP, since the first use of a v1 group is expensive. Once NULL is answered, nothing of the
 * spawner is in the former group. The caller closes its descriptors. */
int sbx_spawner_seat(
	struct sbx_spawner *s, uint64_t tag, uint32_t slot, const struct sbx_cgroup_entry *entry);

struct sbx_spawner_reply {
	uint64_t tag;
	int code;          /* 0 or -errno */
	char message[256]; /* names step and thing when code < 0 */
	int fd;            /* PREPARE, RUN: see there; else -EBADF. The caller owns it. */
};
/* Reads one reply; -EAGAIN when none is there, -EPIPE when the spawner is gone. */
int sbx_spawner_read(struct sbx_spawner *spawner, struct sbx_spawner_reply *ret);

#endif
