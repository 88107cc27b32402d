/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sbx/aside.h"
#include "sbx/fs.h"
#include "sbx/sock.h"
#include "sbx/sys.h"
#include "sbx/wire.h"

struct worker {
	int fd;
	uint64_t job_id;
	struct sbx_job_context context;
};

/* The job's own first, then what its arguments have put aside. */
struct job_fds {
	int fds[2];
	size_t n;
};

static int read_payload(int fd, char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* One job frame: descriptors come with the header. 0 at the end of the stream. */
static int read_job(struct worker *worker, struct sbx_wire_header *ret_header,
	struct sbx_buf *payload, struct job_fds *ret_fds)
{
	int fds[SBX_SOCK_FDS_MAX];
	size_t n_fds;
	ssize_t n = sbx_sock_recv(worker->fd, ret_header, sizeof(*ret_header), fds, &n_fds);
	int r;

	if (n <= 0)
		return (int)n;
	ret_fds->n = SBX_MIN(n_fds, SBX_N_ELEMENTS(ret_fds->fds));
	for (size_t i = 0; i < n_fds; i++)
		if (i < ret_fds->n)
			ret_fds->fds[i] = fds[i];
		else
			sbx_fd_close(&fds[i]);
	if ((size_t)n < sizeof(*ret_header))
		r = read_payload(
			worker->fd, (char *)ret_header + n, sizeof(*ret_header) - (size_t)n);
	else
		r = 0;
	sbx_buf_clear(payload);
	if (r == 0)
		r = sbx_buf_reserve(payload, ret_header->size);
	if (r == 0)
		r = read_payload(worker->fd, payload->data, ret_header->size);
	if (r < 0)
		return r;
	payload->size = ret_header->size;
	return 1;
}

static int send_chunk(void *data, const void *bytes, size_t size)
{
	struct worker *worker = data;
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	int r = sbx_wire_put(&out, SBX_WIRE_CHUNK, worker->job_id, bytes, size);

	return r < 0 ? r : sbx_fs_write_all(worker->fd, out.data, out.size);
}

static int run(struct sbx_job *job, const struct sbx_buf *payload, const struct job_fds *fds,
	struct sbx_err *err)
{
	size_t n = fds->n;
	SBX_JSON struct json_object *request = NULL;
	const struct sbx_job_entry *entry;
	const char *name;
	int r = sbx_json_parse(payload->data, payload->size, &request, err);

	if (r < 0)
		return r;
	name = sbx_json_string(request, "op", "");
	entry = sbx_job_find(name);
	if (!entry)
		return sbx_err_kind(err, SBX_KIND_INTERNAL, ENOSYS, "there is no job '%s'", name);
	job->args = sbx_json_member(request, "args");
	if (n && sbx_json_bool(request, "aside", false)) {
		r = sbx_aside_restore(sbx_json_member(job->args, "args"), fds->fds[--n], err);
		if (r < 0)
			return r;
	}
	job->fd = n ? fds->fds[0] : -EBADF;
	return entry->run(job, err);
}

static int put_result(struct worker *worker, struct sbx_buf *out, struct json_object *result)
{
	struct sbx_err err = SBX_ERR_INIT;
	const char *text;
	size_t size;
	int r;

	text = sbx_json_text(result, &size);
	r = sbx_wire_put(out, SBX_WIRE_RESULT, worker->job_id, text, size);
	if (r != -EMSGSIZE)
		return r;
	(void)sbx_err_set(&err, EMSGSIZE,
		"the answer has %zu bytes, more than the limit of %u; ask for less at a time", size,
		SBX_WIRE_PAYLOAD_MAX);
	return sbx_wire_put_error(out, worker->job_id, &err, NULL);
}

/* Takes fds. They are closed before the answer goes out: sandboxd releases the overlay that one
 * leads into as soon as it knows that the job is done. */
static int handle(struct worker *worker, const struct sbx_buf *payload, struct job_fds *fds)
{
	SBX_JSON struct json_object *result = json_object_new_object();
	SBX_BUF struct sbx_buf out = SBX_BUF_INIT;
	struct sbx_err err = SBX_ERR_INIT;
	struct sbx_job job = {.context = &worker->context, .fd = -EBADF, .result = result};
	int r;

	if (result)
		r = run(&job, payload, fds, &err);
	else
		r = sbx_err_set(&err, ENOMEM, "no memory for an answer");
	while (fds->n)
		sbx_fd_close(&fds->fds[--fds->n]);
	r = r < 0 ? sbx_wire_put_error(&out, worker->job_id, &err, job.details)
		  : put_result(worker, &out, result);
	sbx_json_put(&job.details);
	return r < 0 ? r : sbx_fs_write_all(worker->fd, out.data, out.size);
}

/* Puts the wanted descriptors at 3.. and closes all others, so that a job that is led astray by a
 * file can reach nothing of sandboxd's. */
static int keep_only(struct worker *worker, int fd)
{
	int *const wanted[] = {&fd, &worker->context.sandbox_fd, &worker->context.store_fd,
		&worker->context.layers_fd, &worker->context.rejects_fd,
		&worker->context.sessions_fd, &worker->context.commands_fd,
		&worker->context.lock_fd};
	int high[SBX_N_ELEMENTS(wanted)];

	for (size_t i = 0; i < SBX_N_ELEMENTS(wanted); i++) {
		high[i] = fcntl(*wanted[i], F_DUPFD_CLOEXEC, 64);
		if (high[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < SBX_N_ELEMENTS(wanted); i++) {
		*wanted[i] = dup3(high[i], 3 + (int)i, O_CLOEXEC);
		if (*wanted[i] < 0)
			return -errno;
	}
	worker->fd = fd;
	return sbx_sys_close_range(3 + SBX_N_ELEMENTS(wanted), ~0u, 0);
}

_Noreturn void worker_main(int fd, pid_t parent, const struct sbx_job_context *context)
{
	struct worker worker = {.context = *context};
	SBX_BUF struct sbx_buf payload = SBX_BUF_INIT;
	struct sbx_wire_header header;
	struct job_fds job_fds = {0};

	(void)prctl(PR_SET_NAME, "sbx-worker"); /* for people reading ps(1) */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1); /* without its sandboxd nobody commits what it makes */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(0); /* modes are taken from files, never from us */
	if (keep_only(&worker, fd) < 0)
		_exit(1);
	worker.context.chunk = send_chunk;
	worker.context.chunk_data = &worker;
	while (read_job(&worker, &header, &payload, &job_fds) > 0) {
		int r;

		worker.job_id = header.id;
		r = handle(&worker, &payload, &job_fds);
		if (r < 0)
			_exit(1);
		if (payload.capacity > (1u << 20))
			sbx_buf_done(&payload); /* one large job must not stay in memory */
	}
	_exit(0);
}
