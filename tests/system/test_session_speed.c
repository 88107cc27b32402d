/* SPDX-License-Identifier: MIT */
/*
 * What a session adds to the cost of a shell. Prints medians (--verbose shows them); the bound that
 * is asserted is on minima and loose, since other work on the machine moves everything else.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "live.h"
#include "sbx/loop.h"
#include "sbx/sock.h"

#define ROUNDS   200
#define AHEAD_MS 10

static struct live live;

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct series {
	const char *name;
	uint64_t ns[ROUNDS];
};

static double median_us(struct series *s)
{
	qsort(s->ns, ROUNDS, sizeof(s->ns[0]), compare);
	return (double)s->ns[ROUNDS / 2] / 1000;
}

static void report(struct series *s, double plain)
{
	double us = median_us(s);

	cr_log_info("%-28s median %7.0f us  min %7.0f us  %.2f x plain", s->name, us,
		(double)s->ns[0] / 1000, us / plain);
}

/* The same shell as a child process. */
static uint64_t plain_shell(void)
{
	static const char *const argv[] = {"bash", "--noprofile", "--norc", "-c", "true", NULL};
	char *none[] = {NULL};
	uint64_t start = sbx_now_ns();
	pid_t pid;

	cr_assert_eq(posix_spawn(&pid, "/bin/bash", NULL, NULL, (char **)(uintptr_t)argv, none), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	return sbx_now_ns() - start;
}

struct steps {
	struct series prepare, ready, started, exited, dead, drop, renew;
};

static void mark(struct series *series, int round, uint64_t *start)
{
	series->ns[round] = sbx_now_ns() - *start;
}

/* One session of a renewed slot: START is sent ahead of RUN, so that init finds it waiting. */
static void one_round(struct live_session *s, struct steps *steps, int round)
{
	SBX_CLOSE int master = -EBADF;
	struct sbx_init_message m;
	struct pollfd dead;
	uint64_t start;
	int pair[2], fd;

	start = sbx_now_ns();
	cr_assert_eq(sbx_spawner_renew(live.spawner, ++live.tag, s->slot), 0);
	(void)live_answer_ok(&live); /* carries no descriptor */
	mark(&steps->renew, round, &start);

	/* slots are prepared ahead of need: its init has finished its own set-up by then */
	(void)poll(NULL, 0, AHEAD_MS);
	start = sbx_now_ns();
	cr_assert_eq(sbx_sock_pair(pair), 0);
	s->control_fd = pair[0];
	live_send_start(s, "true", 4);
	cr_assert_eq(sbx_spawner_run(live.spawner, ++live.tag, s->slot, pair[1]), 0);
	sbx_fd_close(&pair[1]);
	m = live_message(s, &fd);
	cr_assert(m.op == SBX_INIT_READY && m.code == 0, "%s", m.detail);
	mark(&steps->ready, round, &start);
	m = live_message(s, &master);
	cr_assert(m.op == SBX_INIT_STARTED && m.code == 0, "%s", m.detail);
	mark(&steps->started, round, &start);
	m = live_message(s, &fd);
	cr_assert_eq(m.op, SBX_INIT_EXITED);
	mark(&steps->exited, round, &start);
	s->pidfd = live_answer_ok(&live);
	start = sbx_now_ns();
	sbx_fd_close(&s->control_fd);
	dead = (struct pollfd){.fd = s->pidfd, .events = POLLIN};
	cr_assert_eq(poll(&dead, 1, LIVE_TIMEOUT_MS), 1);
	mark(&steps->dead, round, &start);
	sbx_fd_close(&s->pidfd);
}

static void prepare_and_drop(struct steps *steps)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct live_session s;
		uint64_t start = sbx_now_ns();
		char name[16];

		(void)snprintf(name, sizeof(name), "ws_%d", i);
		live_prepare(&live, &s, 1, name, (const uint32_t[]){0}, 1);
		mark(&steps->prepare, i, &start);
		start = sbx_now_ns();
		live_drop(&s);
		mark(&steps->drop, i, &start);
	}
}

Test(speed, a_session_adds_little_to_its_shell)
{
	static struct steps steps = {
		.prepare = {.name = "PREPARE (with mkdir)"},
		.ready = {.name = "RUN to READY"},
		.started = {.name = "RUN to STARTED"},
		.exited = {.name = "RUN to EXITED"},
		.dead = {.name = "end of init"},
		.drop = {.name = "DROP"},
		.renew = {.name = "RENEW"},
	};
	static struct series shell = {.name = "plain shell"}, managed = {.name = "START to EXITED"};
	struct live_session s;
	double plain;

#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("needs a build without sanitizers: it would measure them");
#endif
	live_start(&live, NULL);
	live_open(&live, &s, 0, "ws_a");
	for (int i = 0; i < ROUNDS; i++) {
		SBX_BUF struct sbx_buf output = SBX_BUF_INIT;
		uint64_t start = sbx_now_ns();

		cr_assert_eq(live_exec(&s, "true", &output), 0);
		mark(&managed, i, &start);
		shell.ns[i] = plain_shell();
	}
	live_stop(&s);
	for (int i = 0; i < ROUNDS; i++)
		one_round(&s, &steps, i);
	live_drop(&s);
	prepare_and_drop(&steps);
	plain = median_us(&shell);
	report(&shell, plain);
	report(&managed, plain);
	report(&steps.ready, plain);
	report(&steps.started, plain);
	report(&steps.exited, plain);
	report(&steps.dead, plain);
	report(&steps.renew, plain);
	report(&steps.prepare, plain);
	report(&steps.drop, plain);
	cr_expect_lt(steps.exited.ns[0], 3 * shell.ns[0]);
	cr_expect_lt(managed.ns[0], 3 * shell.ns[0]);
	live_done(&live);
}
