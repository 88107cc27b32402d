/* SPDX-License-Identifier: MIT */
/*
 * Freed watches stay on a list until the round of events is over: epoll_wait() may already have
 * returned an event that points at one of them.
 */
#include "sbx/loop.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#define EVENTS_PER_ROUND 64

struct sbx_watch {
	struct sbx_loop *loop;
	int fd;
	uint32_t events;
	sbx_watch_fn fn; /* NULL once freed */
	void *data;
	struct sbx_watch *next_dead;
};

struct sbx_timer {
	struct sbx_loop *loop;
	sbx_timer_fn fn;
	void *data;
	uint64_t at_ns;
	size_t index; /* in the heap; SIZE_MAX: not set */
};

struct deferred {
	sbx_timer_fn fn;
	void *data;
};

struct sbx_loop {
	int epoll_fd;
	int timer_fd;
	struct sbx_watch *timer_watch;
	struct sbx_watch *dead;
	struct sbx_timer **heap; /* min-heap by at_ns */
	size_t n_heap, heap_capacity;
	struct deferred *deferred;
	size_t n_deferred, deferred_capacity;
	uint64_t now_ns, armed_ns;
	bool stop;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts); /* cannot fail for these clocks */
	return (uint64_t)ts.tv_sec * SBX_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t sbx_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t sbx_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t sbx_loop_now(const struct sbx_loop *loop)
{
	return loop->now_ns;
}

int sbx_watch_new(struct sbx_loop *loop, int fd, uint32_t events, sbx_watch_fn fn, void *data,
	struct sbx_watch **ret)
{
	struct sbx_watch *watch = calloc(1, sizeof(*watch));
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (!watch)
		return -ENOMEM;
	*watch = (struct sbx_watch){
		.loop = loop, .fd = fd, .events = events, .fn = fn, .data = data};
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		sbx_free_pointer(&watch);
		return -errno;
	}
	*ret = watch;
	return 0;
}

int sbx_watch_set(struct sbx_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (watch->events == events)
		return 0;
	if (epoll_ctl(watch->loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) < 0)
		return -errno;
	watch->events = events;
	return 0;
}

void sbx_watch_free(struct sbx_watch *watch)
{
	if (!watch)
		return;
	(void)epoll_ctl(
		watch->loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL); /* closed: gone already */
	watch->fn = NULL;
	watch->next_dead = watch->loop->dead;
	watch->loop->dead = watch;
}

static void bury_dead(struct sbx_loop *loop)
{
	while (loop->dead) {
		struct sbx_watch *next = loop->dead->next_dead;

		free(loop->dead);
		loop->dead = next;
	}
}

static void heap_put(struct sbx_loop *loop, size_t at, struct sbx_timer *timer)
{
	loop->heap[at] = timer;
	timer->index = at;
}

static void heap_sift(struct sbx_loop *loop, size_t at)
{
	struct sbx_timer *timer = loop->heap[at];

	while (at > 0 && loop->heap[(at - 1) / 2]->at_ns > timer->at_ns) {
		heap_put(loop, at, loop->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < loop->n_heap &&
			loop->heap[child + 1]->at_ns < loop->heap[child]->at_ns)
			child++;
		if (child >= loop->n_heap || loop->heap[child]->at_ns >= timer->at_ns)
			break;
		heap_put(loop, at, loop->heap[child]);
		at = child;
	}
	heap_put(loop, at, timer);
}

/* The timerfd is armed only when the first deadline moves forward: a timer that was unset costs
 * at most one wake-up. */
static void arm(struct sbx_loop *loop)
{
	struct itimerspec spec = {0};
	uint64_t at = loop->n_heap ? SBX_MAX(loop->heap[0]->at_ns, UINT64_C(1)) : 0;

	if (at == 0 || (loop->armed_ns && loop->armed_ns <= at))
		return;
	spec.it_value.tv_sec = (time_t)(at / SBX_NSEC_PER_SEC);
	spec.it_value.tv_nsec = (long)(at % SBX_NSEC_PER_SEC);
	if (timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0)
		abort(); /* only wrong arguments fail */
	loop->armed_ns = at;
}

int sbx_timer_new(struct sbx_loop *loop, sbx_timer_fn fn, void *data, struct sbx_timer **ret)
{
	struct sbx_timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return -ENOMEM;
	*timer = (struct sbx_timer){.loop = loop, .fn = fn, .data = data, .index = SIZE_MAX};
	*ret = timer;
	return 0;
}

int sbx_timer_set(struct sbx_timer *timer, uint64_t at_ns)
{
	struct sbx_loop *loop = timer->loop;

	if (timer->index == SIZE_MAX) {
		if (loop->n_heap == loop->heap_capacity) {
			size_t capacity = loop->heap_capacity ? 2 * loop->heap_capacity : 16;
			struct sbx_timer **heap = reallocarray(loop->heap, capacity, sizeof(*heap));

			if (!heap)
				return -ENOMEM;
			loop->heap = heap;
			loop->heap_capacity = capacity;
		}
		heap_put(loop, loop->n_heap++, timer);
	}
	timer->at_ns = at_ns;
	heap_sift(loop, timer->index);
	arm(loop);
	return 0;
}

void sbx_timer_unset(struct sbx_timer *timer)
{
	struct sbx_loop *loop = timer->loop;
	size_t at = timer->index;

	if (at == SIZE_MAX)
		return;
	timer->index = SIZE_MAX;
	loop->n_heap--;
	if (at < loop->n_heap) {
		heap_put(loop, at, loop->heap[loop->n_heap]);
		heap_sift(loop, at);
	}
}

void sbx_timer_free(struct sbx_timer *timer)
{
	if (!timer)
		return;
	sbx_timer_unset(timer);
	free(timer);
}

static void on_timerfd(void *data, uint32_t events SBX_UNUSED)
{
	struct sbx_loop *loop = data;
	uint64_t expirations;

	if (read(loop->timer_fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		abort();
	loop->armed_ns = 0;
	while (loop->n_heap && loop->heap[0]->at_ns <= sbx_now_ns()) {
		struct sbx_timer *timer = loop->heap[0];

		sbx_timer_unset(timer);
		timer->fn(timer->data);
	}
	arm(loop);
}

int sbx_loop_defer(struct sbx_loop *loop, sbx_timer_fn fn, void *data)
{
	if (loop->n_deferred == loop->deferred_capacity) {
		size_t capacity = loop->deferred_capacity ? 2 * loop->deferred_capacity : 16;
		struct deferred *deferred =
			reallocarray(loop->deferred, capacity, sizeof(*deferred));

		if (!deferred)
			return -ENOMEM;
		loop->deferred = deferred;
		loop->deferred_capacity = capacity;
	}
	loop->deferred[loop->n_deferred++] = (struct deferred){.fn = fn, .data = data};
	return 0;
}

static void run_deferred(struct sbx_loop *loop)
{
	/* by index: a deferred function may defer another */
	for (size_t i = 0; i < loop->n_deferred; i++) {
		struct deferred deferred = loop->deferred[i];

		deferred.fn(deferred.data);
	}
	loop->n_deferred = 0;
}

int sbx_loop_new(struct sbx_loop **ret)
{
	struct sbx_loop *loop = calloc(1, sizeof(*loop));
	int r;

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = loop->epoll_fd < 0 || loop->timer_fd < 0 ? -errno : 0;
	if (r == 0)
		r = sbx_watch_new(
			loop, loop->timer_fd, EPOLLIN, on_timerfd, loop, &loop->timer_watch);
	if (r < 0) {
		sbx_loop_free(loop);
		return r;
	}
	loop->now_ns = sbx_now_ns();
	*ret = loop;
	return 0;
}

void sbx_loop_free(struct sbx_loop *loop)
{
	if (!loop)
		return;
	sbx_watch_free(loop->timer_watch);
	bury_dead(loop);
	sbx_fd_close(&loop->timer_fd);
	sbx_fd_close(&loop->epoll_fd);
	free(loop->heap);
	free(loop->deferred);
	free(loop);
}

int sbx_loop_run(struct sbx_loop *loop)
{
	struct epoll_event events[EVENTS_PER_ROUND];
	int n;

	for (;;) {
		run_deferred(loop);
		bury_dead(loop);
		if (loop->stop) {
			loop->stop = false;
			return 0;
		}
		n = epoll_wait(loop->epoll_fd, events, EVENTS_PER_ROUND, -1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		loop->now_ns = sbx_now_ns();
		for (int i = 0; i < n; i++) {
			struct sbx_watch *watch = events[i].data.ptr;

			if (watch->fn)
				watch->fn(watch->data, events[i].events);
		}
	}
}

void sbx_loop_stop(struct sbx_loop *loop)
{
	loop->stop = true;
}
