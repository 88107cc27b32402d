/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sbx/loop.h"

struct state {
	struct sbx_loop *loop;
	struct sbx_timer *timers[3];
	struct sbx_watch *watches[2];
	int order[8];
	int n;
	int pipes[2][2];
};

static void note(struct state *s, int what)
{
	s->order[s->n++] = what;
}

static void first(void *data)
{
	note(data, 1);
}

static void second(void *data)
{
	note(data, 2);
}

static void last(void *data)
{
	struct state *s = data;

	note(s, 3);
	sbx_loop_stop(s->loop);
}

Test(loop, timers_fire_in_the_order_of_their_times, .timeout = 10)
{
	struct state s = {0};
	sbx_timer_fn fns[] = {last, second, first};
	uint64_t now = sbx_now_ns();

	cr_assert_eq(sbx_loop_new(&s.loop), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(sbx_timer_new(s.loop, fns[i], &s, &s.timers[i]), 0);
		cr_assert_eq(
			sbx_timer_set(s.timers[i], now + (uint64_t)(3 - i) * 5 * SBX_NSEC_PER_MSEC),
			0);
	}
	cr_assert_eq(sbx_timer_set(s.timers[1], now + 1000 * SBX_NSEC_PER_SEC), 0);
	sbx_timer_unset(s.timers[1]);
	cr_assert_eq(sbx_loop_run(s.loop), 0);
	cr_assert_eq(s.n, 2);
	cr_assert_eq(s.order[0], 1);
	cr_assert_eq(s.order[1], 3);
	cr_assert_geq(sbx_now_ns(), now + 15 * SBX_NSEC_PER_MSEC);
	for (int i = 0; i < 3; i++)
		sbx_timer_free(s.timers[i]);
	sbx_loop_free(s.loop);
}

/* Both pipes are readable at once: whichever comes first frees the other's watch. */
static void free_other(void *data, uint32_t events)
{
	struct state *s = data;

	cr_assert(events & EPOLLIN);
	note(s, 1);
	sbx_watch_free(s->watches[0]);
	sbx_watch_free(s->watches[1]);
	s->watches[0] = s->watches[1] = NULL;
	cr_assert_eq(sbx_loop_defer(s->loop, last, s), 0);
}

Test(loop, a_watch_freed_while_its_event_is_pending_is_not_called, .timeout = 10)
{
	struct state s = {0};

	cr_assert_eq(sbx_loop_new(&s.loop), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(pipe(s.pipes[i]), 0);
		cr_assert_eq(write(s.pipes[i][1], "x", 1), 1);
		cr_assert_eq(sbx_watch_new(
				     s.loop, s.pipes[i][0], EPOLLIN, free_other, &s, &s.watches[i]),
			0);
	}
	cr_assert_eq(sbx_loop_run(s.loop), 0);
	cr_assert_eq(s.n, 2, "the second watch was called after it was freed");
	sbx_loop_free(s.loop);
}

Test(loop, what_is_deferred_before_the_loop_runs_is_not_forgotten, .timeout = 10)
{
	struct state s = {0};

	cr_assert_eq(sbx_loop_new(&s.loop), 0);
	cr_assert_eq(sbx_loop_defer(s.loop, last, &s), 0);
	cr_assert_eq(sbx_loop_run(s.loop), 0);
	cr_assert_eq(s.n, 1);
	sbx_loop_free(s.loop);
}
