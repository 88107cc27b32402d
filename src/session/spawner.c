/* SPDX-License-Identifier: MIT */
/* sandboxd's end of the spawner. */
#include "sbx/spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sbx/sock.h"
#include "sbx/sys.h"
#include "spawner_main.h"
#include "spawner_proto.h"

#define SEND_BUFFER (8 << 20) /* requests that may wait: more than a thousand of them fit */

struct sbx_spawner {
	int sock_fd;
	int pidfd;
	pid_t pid;
};

static int read_answer(
	struct sbx_spawner *s, struct sbx_spawn_answer *ret, int *ret_fd, struct sbx_err *err)
{
	int fds[SBX_SOCK_FDS_MAX];
	size_t n_fds;
	ssize_t n = sbx_sock_recv(s->sock_fd, ret, sizeof(*ret), fds, &n_fds);

	if (n == 0)
		return sbx_err_set(err, EPIPE, "the spawner is gone");
	if (n < 0)
		return n == -ECONNRESET ? -EPIPE : (int)n;
	if ((size_t)n != sizeof(*ret) || n_fds > 1) {
		while (n_fds)
			sbx_fd_close(&fds[--n_fds]);
		return sbx_err_set(err, EPROTO, "an answer of the spawner is not well-formed");
	}
	ret->message[sizeof(ret->message) - 1] = '\0';
	*ret_fd = n_fds ? fds[0] : -EBADF;
	return 0;
}

/* The first answer, tag 0: set up, or why not. */
static int wait_ready(struct sbx_spawner *s, struct sbx_err *err)
{
	struct sbx_spawn_answer answer;
	SBX_CLOSE int fd = -EBADF;
	int r = read_answer(s, &answer, &fd, err);

	if (r < 0)
		return sbx_err_wrap(err, r, "start the spawner");
	if (answer.code < 0)
		return sbx_err_set(err, -answer.code, "start the spawner: %s", answer.message);
	return 0;
}

/* A full buffer is -EAGAIN to the caller; nothing here may wait for the spawner. */
static int set_buffers(int fd, struct sbx_err *err)
{
	int size = SEND_BUFFER, flags = fcntl(fd, F_GETFL);

	/* without CAP_NET_ADMIN the default holds some fifty requests: still correct */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return sbx_err_set(err, errno, "set up the spawner's socket: %m");
	return 0;
}

static int fork_spawner(const struct sbx_spawner_config *config, const struct sbx_filter *filter,
	struct sbx_spawner *s, struct sbx_err *err)
{
	SBX_CLOSE int theirs = -EBADF;
	int pair[2], r;
	pid_t parent = getpid();

	r = sbx_sock_pair(pair);
	if (r < 0)
		return sbx_err_set(err, -r, "make a socket pair: %m");
	s->sock_fd = pair[0];
	theirs = pair[1];
	s->pid = fork();
	if (s->pid < 0)
		return sbx_err_set(err, errno, "fork the spawner: %m");
	if (s->pid == 0) {
		sbx_fd_close(&s->sock_fd);
		sbx_spawner_main(config, filter, theirs, parent);
	}
	s->pidfd = sbx_sys_pidfd_open(s->pid);
	if (s->pidfd < 0)
		return sbx_err_set(err, -s->pidfd, "open the spawner's pidfd: %m");
	return 0;
}

static int load_filter(
	const struct sbx_spawner_config *config, struct sbx_filter *ret, struct sbx_err *err)
{
	const struct sbx_buf *policy = config->seccomp_policy;
	int r;

	if (!policy)
		return sbx_filter_load(config->seccomp_profile, ret, err);
	r = sbx_filter_compile(policy->data ? policy->data : "", policy->size, ret, err);
	return r < 0 ? sbx_err_wrap(err, r, "the sandbox's own seccomp policy") : 0;
}

static void free_spawner(struct sbx_spawner **s)
{
	sbx_spawner_free(*s);
}

int sbx_spawner_start(
	const struct sbx_spawner_config *config, struct sbx_spawner **ret, struct sbx_err *err)
{
	SBX_CLEANUP(sbx_filter_done) struct sbx_filter filter = {0};
	SBX_CLEANUP(free_spawner) struct sbx_spawner *s = NULL;
	int r;

	/* here, not in the spawner: the process that mounts does not parse JSON */
	r = load_filter(config, &filter, err);
	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return sbx_err_set(err, ENOMEM, "start the spawner: %m");
	s->sock_fd = s->pidfd = -EBADF;
	r = fork_spawner(config, &filter, s, err);
	if (r < 0)
		return r;
	r = wait_ready(s, err);
	if (r >= 0)
		r = set_buffers(s->sock_fd, err);
	if (r < 0)
		return r;
	*ret = sbx_take(&s);
	return 0;
}

void sbx_spawner_free(struct sbx_spawner *s)
{
	if (!s)
		return;
	sbx_fd_close(&s->sock_fd);
	if (s->pid > 0) {
		/* it might be busy; its sessions die with it and are waited for by their lock */
		(void)kill(s->pid, SIGKILL);
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	sbx_fd_close(&s->pidfd);
	free(s);
}

int sbx_spawner_fd(const struct sbx_spawner *s)
{
	return s->sock_fd;
}

int sbx_spawner_pidfd(const struct sbx_spawner *s)
{
	return s->pidfd;
}

static int set_name(struct sbx_spawn_request *q, const char *name)
{
	if (strlen(name) > SBX_ID_MAX)
		return -EINVAL;
	memcpy(q->name, name, strlen(name));
	return 0;
}

static int request(
	struct sbx_spawner *s, const struct sbx_spawn_request *q, const int *fds, size_t n_fds)
{
	return sbx_sock_send(s->sock_fd, q, sizeof(*q), fds, n_fds);
}

int sbx_spawner_layer(struct sbx_spawner *s, uint64_t tag, uint32_t number, const char *layer_id)
{
	struct sbx_spawn_request q = {.tag = tag, .op = SBX_SPAWN_LAYER, .number = number};
	int r = set_name(&q, layer_id);

	return r < 0 ? r : request(s, &q, NULL, 0);
}

int sbx_spawner_unlayer(struct sbx_spawner *s, uint64_t tag, uint32_t number)
{
	struct sbx_spawn_request q = {.tag = tag, .op = SBX_SPAWN_UNLAYER, .number = number};

	return request(s, &q, NULL, 0);
}

int sbx_spawner_prepare(struct sbx_spawner *s, uint64_t tag, uint32_t slot, const char *session_dir,
	const uint32_t *layers, size_t n_layers)
{
	struct sbx_spawn_request q = {.tag = tag, .op = SBX_SPAWN_PREPARE, .number = slot};
	int r = set_name(&q, session_dir);

	if (r < 0 || n_layers < 1 || n_layers > SBX_SPAWN_LAYERS_MAX)
		return -EINVAL;
	q.n_layers = (uint32_t)n_layers;
	memcpy(q.layers, layers, n_layers * sizeof(layers[0]));
	return request(s, &q, NULL, 0);
}

int sbx_spawner_run(struct sbx_spawner *s, uint64_t tag, uint32_t slot, int control_fd)
{
	struct sbx_spawn_request q = {.tag = tag, .op = SBX_SPAWN_RUN, .number = slot};

	return request(s, &q, &control_fd, 1);
}

int sbx_spawner_seat(
	struct sbx_spawner *s, uint64_t tag, uint32_t slot, const struct sbx_cgroup_entry *entry)
{
	struct sbx_spawn_request q = {.tag = tag, .op = SBX_SPAWN_SEAT, .number = slot};
	int fds[SBX_CGROUP_PLACES_MAX + 1];
	size_t n = 0;

	if (entry && entry->unified_fd >= 0)
		fds[n++] = entry->unified_fd;
	q.n_unified = (uint32_t)n;
	for (size_t i = 0; entry && i < entry->n_procs; i++)
		fds[n++] = entry->procs_fds[i];
	return request(s, &q, fds, n);
}

int sbx_spawner_renew(struct sbx_spawner *s, uint64_t tag, uint32_t slot)
{
	struct sbx_spawn_request q = {.tag = tag, .op = SBX_SPAWN_RENEW, .number = slot};

	return request(s, &q, NULL, 0);
}

int sbx_spawner_drop(struct sbx_spawner *s, uint64_t tag, uint32_t slot)
{
	struct sbx_spawn_request q = {.tag = tag, .op = SBX_SPAWN_DROP, .number = slot};

	return request(s, &q, NULL, 0);
}

int sbx_spawner_read(struct sbx_spawner *s, struct sbx_spawner_reply *ret)
{
	struct sbx_spawn_answer answer;
	int fd, r = read_answer(s, &answer, &fd, NULL);

	if (r < 0)
		return r;
	*ret = (struct sbx_spawner_reply){.tag = answer.tag, .code = answer.code, .fd = fd};
	memcpy(ret->message, answer.message, sizeof(ret->message));
	return 0;
}
