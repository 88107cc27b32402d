/* SPDX-License-Identifier: MIT */
#include "live.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "sbx/fs.h"
#include "sbx/sock.h"
#include "sbx/sys.h"

#define TMP_BYTES (UINT64_C(64) << 20)

void live_require(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: it makes namespaces and mounts");
}

static int make_dir(int dir_fd, const char *name)
{
	int fd;

	cr_assert_eq(sbx_fs_ensure_dir(dir_fd, name, 0755, &fd), 0, "make %s", name);
	return fd;
}

/* Somewhere on a real disk: what the tests say of overlays must not be about a tmpfs. */
static void make_state(struct live *live)
{
	const char *parent = getenv("SBX_TEST_DIR");

	(void)snprintf(live->dir, sizeof(live->dir), "%s/sbx-live-XXXXXX",
		parent && strlen(parent) < 32 ? parent : "/var/tmp");
	cr_assert_not_null(mkdtemp(live->dir), "%s", live->dir);
	live->dir_fd = open(live->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(live->dir_fd, 0);
	live->layers_fd = make_dir(live->dir_fd, "layers");
	live->sessions_fd = make_dir(live->dir_fd, "sessions");
	live->lock_fd = openat(live->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(live->lock_fd, 0);
}

void live_start(struct live *live, const struct sbx_spawner_config *changes)
{
	const char *profiles = getenv("SBX_SECCOMP_DIR");
	struct sbx_spawner_config config = changes ? *changes : (struct sbx_spawner_config){0};
	struct sbx_err err = SBX_ERR_INIT;
	char profile[512];
	int r;

	*live = (struct live){
		.dir_fd = -EBADF, .layers_fd = -EBADF, .sessions_fd = -EBADF, .lock_fd = -EBADF};
	live_require();
	make_state(live);
	(void)snprintf(
		profile, sizeof(profile), "%s/default.json", profiles ? profiles : "seccomp");
	config.sandbox_id = config.sandbox_id ? config.sandbox_id : "sbox_live";
	config.root_at = config.root_at ? config.root_at : "/workspace";
	config.rootfs_fd = config.rootfs_fd > 0 ? config.rootfs_fd : -EBADF;
	config.id_base = config.id_base ? config.id_base : LIVE_ID_BASE;
	config.seccomp_profile = config.seccomp_profile ? config.seccomp_profile : profile;
	config.tmp_bytes = config.tmp_bytes ? config.tmp_bytes : TMP_BYTES;
	config.layers_fd = live->layers_fd;
	config.sessions_fd = live->sessions_fd;
	config.lock_fd = live->lock_fd;
	r = sbx_spawner_start(&config, &live->spawner, &err);
	cr_assert_eq(r, 0, "%s", err.message);
	sbx_fd_close(&(int){live_layer(live, 0)});
}

void live_done(struct live *live)
{
	sbx_spawner_free(live->spawner);
	live->spawner = NULL;
	sbx_fd_close(&live->layers_fd);
	sbx_fd_close(&live->sessions_fd);
	sbx_fd_close(&live->lock_fd);
	sbx_fd_close(&live->dir_fd);
	if (live->dir[0])
		cr_expect_eq(sbx_fs_remove_tree(AT_FDCWD, live->dir), 0, "remove %s", live->dir);
	live->dir[0] = '\0';
}

static void wait_for(int fd, const char *what)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	cr_assert_eq(poll(&p, 1, LIVE_TIMEOUT_MS), 1, "nothing came: %s", what);
}

int live_answer(struct live *live, int *ret_fd, char ret_message[static 256])
{
	struct sbx_spawner_reply reply = {.fd = -EBADF};

	wait_for(sbx_spawner_fd(live->spawner), "the spawner's answer");
	cr_assert_eq(sbx_spawner_read(live->spawner, &reply), 0);
	cr_assert_eq(reply.tag, live->tag);
	memcpy(ret_message, reply.message, 256);
	*ret_fd = reply.fd;
	return reply.code;
}

int live_answer_ok(struct live *live)
{
	char message[256];
	int fd, r = live_answer(live, &fd, message);

	cr_assert_eq(r, 0, "%s", message);
	return fd;
}

int live_layer(struct live *live, uint32_t number)
{
	SBX_CLOSE int layer = -EBADF;
	char id[32];
	int tree;

	(void)snprintf(id, sizeof(id), "layer_%u", number);
	layer = make_dir(live->layers_fd, id);
	tree = make_dir(layer, "tree");
	cr_assert_eq(sbx_spawner_layer(live->spawner, ++live->tag, number, id), 0);
	(void)live_answer_ok(live); /* carries no descriptor */
	return tree;
}

void live_prepare(struct live *live, struct live_session *s, uint32_t slot, const char *name,
	const uint32_t *layers, size_t n_layers)
{
	SBX_CLOSE int dir = make_dir(live->sessions_fd, name);

	*s = (struct live_session){.live = live,
		.slot = slot,
		.root_fd = -EBADF,
		.control_fd = -EBADF,
		.pidfd = -EBADF};
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	sbx_fd_close(&(int){make_dir(dir, "upper")});
	sbx_fd_close(&(int){make_dir(dir, "work")});
	cr_assert_eq(
		sbx_spawner_prepare(live->spawner, ++live->tag, slot, name, layers, n_layers), 0);
	s->root_fd = live_answer_ok(live);
	cr_assert_geq(s->root_fd, 0);
}

struct sbx_init_message live_message(struct live_session *s, int *ret_fd)
{
	struct sbx_init_message m = {0};

	do {
		wait_for(s->control_fd, "a message of init");
		cr_assert_eq(sbx_init_read(s->control_fd, &m, ret_fd), 1, "init is gone");
	} while (m.op > SBX_INIT_READY);
	return m;
}

static void start_init(struct live_session *s)
{
	int pair[2];

	cr_assert_eq(sbx_sock_pair(pair), 0);
	s->control_fd = pair[0];
	cr_assert_eq(sbx_spawner_run(s->live->spawner, ++s->live->tag, s->slot, pair[1]), 0);
	sbx_fd_close(&pair[1]);
}

void live_run(struct live_session *s)
{
	struct sbx_init_message m;
	int fd;

	start_init(s);
	s->pidfd = live_answer_ok(s->live);
	m = live_message(s, &fd);
	cr_assert_eq(m.op, SBX_INIT_READY);
	cr_assert_eq(m.code, 0, "%s", m.detail);
}

void live_open(struct live *live, struct live_session *s, uint32_t slot, const char *name)
{
	live_prepare(live, s, slot, name, (const uint32_t[]){0}, 1);
	live_run(s);
}

void live_stop(struct live_session *s)
{
	if (s->pidfd >= 0) {
		cr_assert_eq(sbx_sys_pidfd_signal(s->pidfd, SIGKILL), 0);
		wait_for(s->pidfd, "the end of init");
	}
	sbx_fd_close(&s->pidfd);
	sbx_fd_close(&s->control_fd);
}

void live_drop(struct live_session *s)
{
	live_stop(s);
	sbx_fd_close(&s->root_fd);
	cr_assert_eq(sbx_spawner_drop(s->live->spawner, ++s->live->tag, s->slot), 0);
	(void)live_answer_ok(s->live); /* carries no descriptor */
}

void live_send_start(struct live_session *s, const char *text, size_t size)
{
	SBX_CLOSE int fd = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct sbx_init_message m = {.op = SBX_INIT_START,
		.command = ++s->command,
		.rows = 24,
		.columns = 80,
		.text_size = (uint32_t)size};

	cr_assert_eq(sbx_fs_write_all(fd, text, size), 0);
	cr_assert_eq(
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL),
		0);
	cr_assert_eq(sbx_init_send(s->control_fd, &m, fd), 0);
}

struct live_command live_command_start(struct live_session *s, const char *text, size_t size)
{
	struct live_command c = {.master_fd = -EBADF};
	struct sbx_init_message m;

	live_send_start(s, text, size);
	m = live_message(s, &c.master_fd);
	cr_assert_eq(m.op, SBX_INIT_STARTED);
	cr_assert_eq(m.code, 0, "%s", m.detail);
	cr_assert_geq(c.master_fd, 0);
	c.number = m.command;
	c.pid = (pid_t)m.pid;
	return c;
}

/* Takes what the terminal has now; false at its end. */
static bool read_terminal(int master_fd, struct sbx_buf *output)
{
	for (;;) {
		ssize_t n;

		cr_assert_eq(sbx_buf_reserve(output, 65536), 0);
		n = read(master_fd, output->data + output->size, 65536);
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		output->size += (size_t)n;
		output->data[output->size] = '\0';
	}
}

int live_command_finish(struct live_session *s, struct live_command *c, struct sbx_buf *output)
{
	struct pollfd fds[] = {
		{.fd = c->master_fd, .events = POLLIN},
		{.fd = s->control_fd, .events = POLLIN},
	};
	struct sbx_init_message m = {0};
	int fd;

	cr_assert_eq(sbx_buf_reserve(output, 1), 0);
	while (m.op != SBX_INIT_EXITED || m.command != c->number) {
		cr_assert_gt(poll(fds, 2, LIVE_TIMEOUT_MS), 0, "the command does not end");
		if (fds[0].revents && !read_terminal(c->master_fd, output))
			fds[0].fd = -1;
		if (fds[1].revents)
			m = live_message(s, &fd);
	}
	(void)read_terminal(c->master_fd, output); /* what it wrote last is there by now */
	output->data[output->size] = '\0';
	sbx_fd_close(&c->master_fd);
	return m.code;
}

void live_command_expect(struct live_command *c, const char *text)
{
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;

	do {
		wait_for(c->master_fd, text);
		cr_assert(read_terminal(c->master_fd, &output), "ended without \"%s\"", text);
	} while (!strstr(output.data, text));
}

int live_exec(struct live_session *s, const char *text, struct sbx_buf *output)
{
	struct live_command c = live_command_start(s, text, strlen(text));

	sbx_buf_clear(output);
	return live_command_finish(s, &c, output);
}

void live_expect(struct live_session *s, const char *text, const char *expected)
{
	SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
	int status = live_exec(s, text, &output);

	cr_expect_str_eq(output.data, expected, "%s\n-- gave:\n%s\n-- not:\n%s", text, output.data,
		expected);
	cr_expect_eq(status, 0, "%s: status %#x", text, (unsigned int)status);
}

void live_upper_path(const struct live_session *s, const char *name, char ret[static 256])
{
	(void)snprintf(ret, 256, "%.63s/sessions/%.31s/upper/%.100s", s->live->dir, s->name, name);
}
