/* SPDX-License-Identifier: MIT */
#include "sbx/client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sbx/id.h"
#include "sbx/loop.h"
#include "sbx/sock.h"
#include "sbx/store.h"
#include "sbx/sys.h"

#define SOCKET_NAME "sandboxd.sock"

#define START_TIMEOUT_MS 60000
#define GREETING_MAX_S   20 /* sandboxd never blocks: one that says nothing so long is stuck */
#define CONNECT_TRIES    5  /* starts: a daemon may end for idleness while we connect */

int sbx_client_no_sandbox(const char *sandbox_id, struct sbx_err *err)
{
	return sbx_err_kind(err, SBX_KIND_NOT_FOUND, ENOENT,
		"no sandbox '%.64s'; 'sbx-admin list' shows those there are", sandbox_id);
}

static int read_exactly(int fd, void *data, size_t size)
{
	char *p = data;

	while (size > 0) {
		ssize_t n = read(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int read_frame(int fd, struct sbx_wire_header *ret_header, struct sbx_buf *payload)
{
	int r = read_exactly(fd, ret_header, sizeof(*ret_header));

	if (r < 0)
		return r;
	if (ret_header->size > SBX_WIRE_PAYLOAD_MAX)
		return -EPROTO;
	sbx_buf_clear(payload);
	r = sbx_buf_reserve(payload, ret_header->size);
	if (r < 0)
		return r;
	r = read_exactly(fd, payload->data, ret_header->size);
	if (r < 0)
		return r;
	payload->size = ret_header->size;
	payload->data[payload->size] = '\0';
	return 0;
}

static int take_error(
	const struct sbx_buf *payload, struct json_object **ret_details, struct sbx_err *err)
{
	SBX_JSON struct json_object *body = NULL;
	enum sbx_err_kind kind;
	int r = sbx_json_parse(payload->data, payload->size, &body, err);

	if (r < 0)
		return r;
	kind = sbx_err_kind_parse(sbx_json_string(body, "kind", ""));
	if (ret_details)
		*ret_details = json_object_get(sbx_json_member(body, "details"));
	return sbx_err_kind(err, kind, kind == SBX_KIND_NOT_FOUND ? ENOENT : EIO, "%s",
		sbx_json_string(body, "message", "no message"));
}

/* The daemon speaks first: a result frame when the peer may use the sandbox, else an error frame.
 * 1 welcome, 0 refused with err set, -errno when nothing came. */
static int read_greeting(int fd, struct sbx_err *err)
{
	SBX_BUF struct sbx_buf payload = SBX_BUF_INIT;
	struct sbx_wire_header header;
	int r = sbx_sock_set_read_timeout(fd, GREETING_MAX_S);

	if (r == 0)
		r = read_frame(fd, &header, &payload);
	if (r < 0)
		return r == -EAGAIN ? -ETIMEDOUT : r;
	if (header.kind == SBX_WIRE_RESULT)
		return (r = sbx_sock_set_read_timeout(fd, 0)) < 0 ? r : 1;
	(void)take_error(&payload, NULL, err); /* either way err says why */
	return 0;
}

/* Where sandboxd is: beside this program (in a build tree and after installing), else in PATH. */
static void find_daemon(char *ret_path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret_path, size - sizeof("/sandboxd"));

	if (n > 0) {
		ret_path[n] = '\0';
		(void)strcpy(strrchr(ret_path, '/') + 1, "sandboxd"); /* room was left for it */
		if (access(ret_path, X_OK) == 0)
			return;
	}
	(void)snprintf(ret_path, size, "sandboxd");
}

/* In the child: becomes a daemon of its own session with only ready_fd besides the log. */
static void exec_daemon(const char *path, const char *sandbox_id, int ready_fd)
{
	char ready_text[16];
	int null_fd = open("/dev/null", O_RDWR);

	if (null_fd < 0 || setsid() < 0)
		_exit(126);
	switch (fork()) {
	case -1:
		_exit(126);
	case 0:
		break;
	default:
		_exit(0); /* the grandchild belongs to init(1): nobody has to wait for it */
	}
	if (dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(null_fd, 2) < 0 ||
		dup2(ready_fd, 3) < 0)
		_exit(126);
	(void)sbx_sys_close_range(4, ~0u, 0); /* Linux 5.9 */
	(void)snprintf(ready_text, sizeof(ready_text), "%d", 3);
	(void)execlp(path, "sandboxd", "--ready-fd", ready_text, sandbox_id, (char *)NULL);
	(void)dprintf(3, "cannot run %s: %m", path);
	_exit(127);
}

/* sandboxd closes the pipe when it listens; what it wrote before is why it does not. */
static int wait_until_ready(int fd, const char *sandbox_id, struct sbx_err *err)
{
	uint64_t deadline = sbx_now_ns() + START_TIMEOUT_MS * SBX_NSEC_PER_MSEC;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	char text[SBX_ERR_MESSAGE_MAX] = "";
	size_t used = 0;

	for (;;) {
		uint64_t now = sbx_now_ns();
		int ready = 0;
		ssize_t n;

		if (now < deadline)
			ready = poll(&pfd, 1, (int)((deadline - now) / SBX_NSEC_PER_MSEC) + 1);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return sbx_err_kind(err, SBX_KIND_CONNECTION, ETIMEDOUT,
				"sandboxd of '%s' did not get ready within %d s; see its log",
				sandbox_id, START_TIMEOUT_MS / 1000);
		n = read(fd, text + used, sizeof(text) - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	text[used] = '\0';
	if (used)
		return sbx_err_kind(err, SBX_KIND_CONNECTION, ECONNREFUSED,
			"sandboxd of '%s' could not start: %s", sandbox_id, text);
	return 0;
}

static int start_daemon(const char *sandbox_id, struct sbx_err *err)
{
	SBX_CLOSE int read_fd = -EBADF, write_fd = -EBADF;
	char path[4096 + 16];
	int fds[2], status;
	pid_t pid;

	if (geteuid() != 0)
		return sbx_err_kind(err, SBX_KIND_CONNECTION, ECONNREFUSED,
			"sandboxd of '%s' is not running and only root can start it; ask for "
			"'systemctl start sbx@%s' or any sbx-admin verb run as root",
			sandbox_id, sandbox_id);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return sbx_err_set(err, errno, "make a pipe: %m");
	read_fd = fds[0];
	write_fd = fds[1];
	find_daemon(path, sizeof(path));
	pid = fork();
	if (pid < 0)
		return sbx_err_set(err, errno, "start sandboxd: %m");
	if (pid == 0)
		exec_daemon(path, sandbox_id, write_fd);
	sbx_fd_close(&write_fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return wait_until_ready(read_fd, sandbox_id, err);
}

static int open_sandbox(const char *sandbox_id)
{
	SBX_BUF struct sbx_buf root = SBX_BUF_INIT;
	SBX_CLOSE int root_fd = -EBADF;
	SBX_CLOSE int fd = -EBADF;

	if (!sbx_id_valid(sandbox_id) || sbx_state_root(&root) < 0)
		return -ENOENT;
	root_fd = open(root.data, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -ENOENT;
	fd = openat(root_fd, sandbox_id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	if (faccessat(fd, SBX_SANDBOX_OWNER, R_OK, AT_EACCESS) < 0)
		return -ENOENT;
	return sbx_fd_take(&fd);
}

static int no_answer(const char *sandbox_id, int fd, struct sbx_err *err)
{
	uid_t uid;
	pid_t pid = 0;

	if (fd >= 0)
		(void)sbx_sock_peer(fd, &uid, &pid); /* 0: not known */
	return sbx_err_kind(err, SBX_KIND_CONNECTION, ETIMEDOUT,
		"sandboxd of '%s' (process %d) runs but does not answer: it is stopped, or out of "
		"descriptors (its sandboxd.log tells). What is published is safe: end the process, "
		"and the next call starts another",
		sandbox_id, (int)pid);
}

int sbx_client_connect(const char *sandbox_id, int *ret_fd, struct sbx_err *err)
{
	SBX_CLOSE int sandbox_fd = open_sandbox(sandbox_id);
	int r = -ECONNREFUSED;

	if (sandbox_fd < 0)
		return sbx_client_no_sandbox(sandbox_id, err);
	for (int i = 0;; i++) {
		SBX_CLOSE int fd = -EBADF;

		r = sbx_sock_connect(sandbox_fd, SOCKET_NAME, &fd);
		if (r == 0)
			r = read_greeting(fd, err);
		if (r == 0)
			return -EACCES;
		if (r > 0) {
			*ret_fd = sbx_fd_take(&fd);
			return 0;
		}
		if (r == -ETIMEDOUT)
			return no_answer(sandbox_id, fd, err);
		if (i == CONNECT_TRIES || (r != -ECONNREFUSED && r != -ENOENT && r != -ECONNRESET))
			break;
		if (start_daemon(sandbox_id, err) < 0)
			return -ECONNREFUSED;
	}
	return sbx_err_kind(
		err, SBX_KIND_CONNECTION, -r, "connect to sandboxd of '%s': %m", sandbox_id);
}

static int send_request(int fd, const char *op, struct json_object *args)
{
	SBX_JSON struct json_object *request = json_object_new_object();
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	const char *text;
	size_t size;
	int r;

	if (!request)
		return -ENOMEM;
	sbx_json_add_string(request, "op", op);
	sbx_json_add(request, "args", json_object_get(args));
	text = sbx_json_text(request, &size);
	r = sbx_wire_put(&out, SBX_WIRE_REQUEST, 1, text, size);
	for (size_t at = 0; r == 0 && at < out.size;) {
		ssize_t n = send(fd, out.data + at, out.size - at, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			r = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return r;
}

int sbx_client_call(int fd, const char *op, struct json_object *args, sbx_client_chunk_fn chunk,
	void *chunk_data, struct json_object **ret_result, struct json_object **ret_details,
	struct sbx_err *err)
{
	SBX_BUF struct sbx_buf payload = SBX_BUF_INIT;
	struct sbx_wire_header header;
	int r = send_request(fd, op, args);

	if (ret_details)
		*ret_details = NULL;
	for (;;) {
		if (r == 0)
			r = read_frame(fd, &header, &payload);
		if (r < 0)
			return sbx_err_kind(err, SBX_KIND_CONNECTION, -r,
				"connection to sandboxd lost during %s: %m", op);
		if (header.kind == SBX_WIRE_RESULT)
			return sbx_json_parse(payload.data, payload.size, ret_result, err);
		if (header.kind == SBX_WIRE_ERROR)
			return take_error(&payload, ret_details, err);
		if (header.kind == SBX_WIRE_CHUNK && chunk)
			r = chunk(chunk_data, payload.data, payload.size);
	}
}
