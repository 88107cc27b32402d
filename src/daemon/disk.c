/* SPDX-License-Identifier: MIT */
#include "disk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "command.h"
#include "session_internal.h"

#define TICK_NS         (50 * SBX_NSEC_PER_MSEC)
#define INTERVAL_MIN_NS (2 * SBX_NSEC_PER_SEC)
#define INTERVAL_MAX_NS (30 * SBX_NSEC_PER_SEC)
#define DUTY            50 /* a measure may take this part of the time between two */
#define DUTY_NEAR       2  /* the same while the limit may be near */
#define FLOOR_SLACK     ((struct disk_amount){1u << 20, 64}) /* a shell's own small files */

/* What came back may be of a session that has ended meanwhile. */
struct measure {
	struct daemon *daemon;
	char session_id[SBX_ID_SIZE];
	struct disk_amount fs_used;
	uint64_t started_ns;
};

static bool is_limited(const struct daemon *daemon)
{
	return daemon->sandbox.disk_max || daemon->sandbox.inodes_max;
}

static bool fs_used(const struct daemon *daemon, struct disk_amount *ret)
{
	struct statvfs st;

	if (fstatvfs(daemon->context.sessions_fd, &st) < 0)
		return false;
	*ret = (struct disk_amount){
		.n_bytes = (uint64_t)(st.f_blocks - st.f_bfree) * st.f_frsize,
		.n_inodes = (uint64_t)(st.f_files - st.f_ffree),
	};
	return true;
}

/* Of one that was over its limit once: what it had then. */
static struct disk_amount allowance(const struct session *session)
{
	const struct sbx_sandbox *sandbox = &session->daemon->sandbox;
	struct disk_amount ret = {
		.n_bytes = sandbox->disk_max ? sandbox->disk_max : UINT64_MAX,
		.n_inodes = sandbox->inodes_max ? sandbox->inodes_max : UINT64_MAX,
	};

	if (session->disk.floor.n_bytes > ret.n_bytes)
		ret.n_bytes = session->disk.floor.n_bytes + FLOOR_SLACK.n_bytes;
	if (session->disk.floor.n_inodes > ret.n_inodes)
		ret.n_inodes = session->disk.floor.n_inodes + FLOOR_SLACK.n_inodes;
	return ret;
}

static uint64_t growth(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* Whether what the file system lost could be half of what the session may still take. */
static bool may_near(uint64_t measured, uint64_t allowed, uint64_t before, uint64_t now)
{
	uint64_t grown = growth(before, now);

	return grown > 0 && (measured >= allowed || grown >= (allowed - measured) / 2);
}

static bool is_due(const struct session *session, const struct disk_amount *now)
{
	const struct disk_use *use = &session->disk;
	struct disk_amount allowed = allowance(session);
	uint64_t since = growth(use->measured_ns, sbx_now_ns());

	if (!use->measured_ns)
		return true;
	if (since < use->took_ns * DUTY_NEAR)
		return false;
	return since >= use->interval_ns ||
	       may_near(use->measured.n_bytes, allowed.n_bytes, use->fs_used.n_bytes,
		       now->n_bytes) ||
	       may_near(use->measured.n_inodes, allowed.n_inodes, use->fs_used.n_inodes,
		       now->n_inodes);
}

/* One line on which limit it is; empty: none. */
static int explain(const struct session *session, struct sbx_buf *ret)
{
	const struct disk_amount *is = &session->disk.measured;
	struct disk_amount allowed = allowance(session);
	const struct sbx_sandbox *sandbox = &session->daemon->sandbox;

	if (is->n_bytes > allowed.n_bytes)
		return sbx_buf_printf(ret,
			"disk limit hit: the session had %.1f MiB on disk and may have %.1f MiB "
			"(disk_max); its processes were ended, what they had written is kept; "
			"write less or use a sandbox created with a larger --disk-max",
			(double)is->n_bytes / (1 << 20), (double)sandbox->disk_max / (1 << 20));
	if (is->n_inodes > allowed.n_inodes)
		return sbx_buf_printf(ret,
			"disk limit hit: the session had %ju files and directories on disk and may "
			"have %ju (inodes_max); its processes were ended, what they had written is "
			"kept; write fewer or use a sandbox created with a larger --inodes-max",
			(uintmax_t)is->n_inodes, (uintmax_t)sandbox->inodes_max);
	return 0;
}

static void end_session(struct session *session, const char *why)
{
	struct command *command;

	daemon_log("session %s: %s", session->id, why);
	TAILQ_FOREACH(command, &session->commands, in_session)
	{
		if (command->state < COMMAND_STARTING || command->state > COMMAND_RUNNING)
			continue;
		command->limited = true;
		command_add_note(command, why);
	}
	session->disk.settling = true;
	if (session->managed && session->end == SESSION_END_NONE)
		session_kill_init(session);
	else
		session_stop(session, SESSION_END_PUBLISH);
}

static void take(struct session *session, const struct measure *measure, struct disk_amount is)
{
	struct disk_use *use = &session->disk;
	bool same = is.n_bytes == use->measured.n_bytes && is.n_inodes == use->measured.n_inodes;

	use->measured = is;
	use->fs_used = measure->fs_used;
	use->measured_ns = sbx_now_ns();
	use->took_ns = growth(measure->started_ns, use->measured_ns);
	use->interval_ns = same ? SBX_MIN(2 * use->interval_ns, INTERVAL_MAX_NS) : INTERVAL_MIN_NS;
	use->interval_ns = SBX_MAX(use->interval_ns, use->took_ns * DUTY);
	if (use->settling) {
		use->settling = false;
		use->floor = is;
	}
}

/* More than the walk has seen is possible, but not more than all that the file system lost. */
static void assume_worst(
	const struct session *session, const struct measure *measure, struct disk_amount *is)
{
	const struct disk_use *use = &session->disk;

	is->n_bytes = SBX_MAX(is->n_bytes,
		use->measured.n_bytes + growth(use->fs_used.n_bytes, measure->fs_used.n_bytes));
	is->n_inodes = SBX_MAX(is->n_inodes,
		use->measured.n_inodes + growth(use->fs_used.n_inodes, measure->fs_used.n_inodes));
}

static void measured(
	struct session *session, const struct measure *measure, struct json_object *result)
{
	SBX_BUF struct sbx_buf why = SBX_BUF_INIT;
	struct disk_amount is = {
		.n_bytes = (uint64_t)sbx_json_int(result, "bytes", 0),
		.n_inodes = (uint64_t)sbx_json_int(result, "inodes", 0),
	};

	if (!sbx_json_bool(result, "complete", false))
		assume_worst(session, measure, &is);
	take(session, measure, is);
	if (session->state != SESSION_RUNNING || session->empty)
		return;
	if (explain(session, &why) < 0)
		abort();
	if (why.size)
		end_session(session, why.data);
}

static struct session *find(struct daemon *daemon, const char *id)
{
	struct session *session;

	TAILQ_FOREACH(session, &daemon->sessions, entry)
	if (!strcmp(session->id, id))
		return session;
	return NULL;
}

static void on_measured(void *data, const char *text, size_t size, const struct sbx_err *err,
	struct json_object *details SBX_UNUSED)
{
	SBX_FREE struct measure *measure = data;
	SBX_JSON struct json_object *result = NULL;
	struct session *session = find(measure->daemon, measure->session_id);

	if (!session)
		return;
	session->disk.measuring = false;
	if (err)
		daemon_log("measure session %s: %s; tried again", session->id, err->message);
	else if (sbx_json_parse(text, size, &result, NULL) == 0)
		measured(session, measure, result);
}

/* The inode of the pid namespace that init is pid 1 of; 0: it has none now. */
static int64_t pid_namespace(const struct session *session)
{
	char path[64], line[64];
	struct stat st;
	int pid = 0;
	FILE *info;

	if (session->pidfd < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", session->pidfd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info) && sscanf(line, "Pid: %d", &pid) != 1)
		;
	if (info)
		(void)fclose(info); /* only read from */
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return pid > 0 && stat(path, &st) == 0 ? (int64_t)st.st_ino : 0;
}

static void measure_session(struct session *session, const struct disk_amount *used)
{
	struct daemon *daemon = session->daemon;
	struct measure *measure = calloc(1, sizeof(*measure));
	struct job_request request = {
		.name = "measure", .fd = -EBADF, .done = on_measured, .data = measure};

	request.args = json_object_new_object();
	if (!measure || !request.args)
		abort();
	measure->daemon = daemon;
	measure->fs_used = *used;
	measure->started_ns = sbx_now_ns();
	(void)snprintf(measure->session_id, sizeof(measure->session_id), "%s", session->id);
	sbx_json_add_string(request.args, "session_dir", session->id);
	sbx_json_add_int(request.args, "pid_ns", pid_namespace(session));
	if (pool_submit(daemon->pool, &request) < 0)
		free(measure); /* the queue is full: the next tick asks again */
	else
		session->disk.measuring = true;
}

static void set_timer(struct daemon *daemon)
{
	daemon->disk_timer_set = sbx_timer_set(daemon->disk_timer, sbx_now_ns() + TICK_NS) == 0;
}

static void on_tick(void *data)
{
	struct daemon *daemon = data;
	struct disk_amount used;
	struct session *session;
	bool again = false, known = fs_used(daemon, &used);

	daemon->disk_timer_set = false;
	TAILQ_FOREACH(session, &daemon->sessions, entry)
	{
		again = again || session->n_commands > 0; /* some may still wait for its init */
		if (session->state != SESSION_RUNNING || session->empty)
			continue;
		again = true;
		if (known && !session->disk.measuring && is_due(session, &used))
			measure_session(session, &used);
	}
	if (again)
		set_timer(daemon);
}

int disk_open(struct daemon *daemon)
{
	return is_limited(daemon)
		       ? sbx_timer_new(daemon->loop, on_tick, daemon, &daemon->disk_timer)
		       : 0;
}

void disk_watch(struct session *session)
{
	struct daemon *daemon = session->daemon;
	struct disk_use *use = &session->disk;

	if (!daemon->disk_timer)
		return;
	/* a new session is empty, which need not be measured */
	if (!use->measured_ns && !use->settling && fs_used(daemon, &use->fs_used)) {
		use->measured_ns = sbx_now_ns();
		use->interval_ns = INTERVAL_MIN_NS;
	}
	if (!daemon->disk_timer_set)
		set_timer(daemon);
}

void disk_unknown(struct session *session)
{
	session->disk = (struct disk_use){.settling = true};
}

void disk_settle(struct session *session)
{
	struct disk_amount used;

	if (session->disk.settling && !session->disk.measuring && session->daemon->disk_timer &&
		fs_used(session->daemon, &used))
		measure_session(session, &used);
}
