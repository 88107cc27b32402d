/* SPDX-License-Identifier: MIT */
/* What every part may ask of the daemon as a whole. */
#include "daemon.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commit.h"
#include "sbx/rootfs.h"

const struct sbx_head *daemon_head(const struct daemon *daemon)
{
	return sbx_head_log_head(daemon->log);
}

bool daemon_has_rootfs(const struct daemon *daemon)
{
	return strcmp(daemon->sandbox.rootfs, SBX_ROOTFS_HOST) != 0;
}

struct json_object *stack_to_json(const struct sbx_stack *stack)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < stack->n; i++)
		if (json_object_array_add(array, json_object_new_string(stack->ids[i])) < 0)
			abort();
	if (!array)
		abort();
	return array;
}

void daemon_stop(struct daemon *daemon)
{
	daemon->stopping = true;
	sbx_loop_stop(daemon->loop);
}

void daemon_log(const char *fmt, ...)
{
	char text[SBX_ERR_MESSAGE_MAX], when[32];
	time_t now = time(NULL);
	struct tm tm;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long line is cut */
	va_end(ap);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	(void)dprintf(STDERR_FILENO, "%s %s\n", when, text); /* nobody to tell if it fails */
}

static bool is_idle(const struct daemon *daemon)
{
	return !daemon->n_clients && !daemon->n_live_commands && !daemon->n_sessions &&
	       !commits_pending(daemon->commits) && !pool_busy(daemon->pool);
}

void daemon_idle(void *data)
{
	struct daemon *daemon = data;

	if (is_idle(daemon))
		daemon_stop(daemon);
	else
		daemon_touch(daemon);
}

void daemon_touch(struct daemon *daemon)
{
	if (!daemon->idle_timer)
		return;
	/* also while busy: not every job that ends says so here, so daemon_idle() looks by itself
	 */
	(void)sbx_timer_set(daemon->idle_timer, sbx_now_ns() + DAEMON_IDLE_NS);
}
