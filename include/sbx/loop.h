/* SPDX-License-Identifier: MIT */
/*
 * The event loop: epoll(7), one timerfd, one signalfd's worth of signals. Single-threaded.
 * Level-triggered: a callback that does not read everything is called again.
 */
#ifndef SBX_LOOP_H
#define SBX_LOOP_H

#include "sbx/err.h"

struct sbx_loop;
struct sbx_watch;
struct sbx_timer;

typedef void (*sbx_watch_fn)(void *data, uint32_t events); /* EPOLLIN ... */
typedef void (*sbx_timer_fn)(void *data);

int sbx_loop_new(struct sbx_loop **ret);
void sbx_loop_free(struct sbx_loop *loop);
/* Runs until sbx_loop_stop(), which may have come before; then it can be run again. 0, or -errno of
 * epoll_wait. */
int sbx_loop_run(struct sbx_loop *loop);
void sbx_loop_stop(struct sbx_loop *loop);
/* CLOCK_MONOTONIC as of the last wake-up, in ns. */
uint64_t sbx_loop_now(const struct sbx_loop *loop);
uint64_t sbx_now_ns(void);      /* CLOCK_MONOTONIC */
uint64_t sbx_realtime_ns(void); /* CLOCK_REALTIME, since the epoch */

/* Watches fd (borrowed: close it after the watch is freed). */
int sbx_watch_new(struct sbx_loop *loop, int fd, uint32_t events, sbx_watch_fn fn, void *data,
	struct sbx_watch **ret);
int sbx_watch_set(struct sbx_watch *watch, uint32_t events);
/* NULL is fine. Safe inside callbacks, also for another watch with an event already pending. */
void sbx_watch_free(struct sbx_watch *watch);

/* A one-shot timer; it is not freed by firing. */
int sbx_timer_new(struct sbx_loop *loop, sbx_timer_fn fn, void *data, struct sbx_timer **ret);
/* Fires at an absolute sbx_now_ns() time; replaces an earlier setting. */
int sbx_timer_set(struct sbx_timer *timer, uint64_t at_ns);
void sbx_timer_unset(struct sbx_timer *timer);
void sbx_timer_free(struct sbx_timer *timer);

/* Runs fn once, after all events of this round. */
int sbx_loop_defer(struct sbx_loop *loop, sbx_timer_fn fn, void *data);

#endif
