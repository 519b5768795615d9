/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/periodic.h - periodic timers, which keep their phase.
 *
 *     lawn_periodic_init(&tick, on_tick);            // once
 *     lawn_engine_start_periodic(engine, &tick, lawn_time_from_msec(10));
 *     lawn_periodic_stop(&tick);
 *
 * A periodic timer is a timer (lawn/timer.h) that starts itself again, one
 * period after its deadline. It does not count from the pass that finds it due:
 * so the n-th deadline is n periods after the start, however late the passes
 * have been, and never early.
 *
 * If a pass is late by one or several periods, the timer is called once, and is
 * told how many deadlines have come since its last call. The next deadline is
 * the first of the series that is after the time of the pass. So a stall of 50
 * periods makes one call with `periods` 51 or less, not a burst. The `periods`
 * of all calls add up to the deadlines that have come until the latest call.
 *
 * Threads: as for the timers of its lawn. Start and stop are O(1), allocate
 * nothing, and cannot fail for a valid period. A lawn without periodic timers
 * does no work for them. The functions are inline, on top of the public API.
 */
#ifndef LAWN_PERIODIC_H
#define LAWN_PERIODIC_H

#include <lawn/engine.h>

LAWN_BEGIN_DECLS

typedef struct lawn_periodic lawn_periodic_t;

/* `periods` deadlines of `periodic` have come since its last call or its start:
 * 1, or more if the pass is late by a period or more. The latest of them is <=
 * `now`, the time of the advance. The timer runs already, until the next
 * deadline. The callback may do anything to any timer: stop this one, start it
 * with another period, or free it once it is stopped. */
typedef void (*lawn_periodic_fn_t)(lawn_periodic_t *periodic, lawn_time_t now,
                                   uint64_t periods);

/* Embed it in your own object. While it runs, do not move, free or initialise
 * it. Zero-filled is a valid timer that does not run, without a callback.
 * lawn_drain() and lawn_for_each() show the timer that is its first member. */
struct lawn_periodic {
    lawn_timer_t timer; /* first: its address is the whole's */
    lawn_t *lawn;       /* of the latest start */
    lawn_time_t period;
    lawn_periodic_fn_t expired;
};

/* Makes `periodic` a timer that does not run. If `expired` is NULL, the timer
 * expires silently. Do not call it for a timer that runs. */
static inline void lawn_periodic_init(lawn_periodic_t *periodic,
                                      lawn_periodic_fn_t expired);

/* Starts `periodic`, or starts it anew if it runs: the deadlines are `now` +
 * `period`, `now` + 2 `period`, and so on. If `now` is before the latest time
 * that this lawn has seen, the latest time is used. Returns INVALID_PARAM for a
 * period of 0, and changes nothing. Deadlines from LAWN_TIME_INFINITY - 1 on
 * never come: the timer then runs and does not expire again. A timer that runs
 * on another lawn is stopped there, which must be this thread's, too. */
static inline lawn_status_t lawn_periodic_start(lawn_t *lawn,
                                                lawn_periodic_t *periodic,
                                                lawn_time_t now,
                                                lawn_time_t period);

/* The same with the first deadline. Each next one is `period` after the one
 * before. If `first` is past, the timer is due at the next advance, and its
 * `periods` count from `first`. So timers that share a period can be given
 * phases of their own, and a timer can be started anew in its old phase. */
static inline lawn_status_t
lawn_periodic_start_at(lawn_t *lawn, lawn_periodic_t *periodic, lawn_time_t now,
                       lawn_time_t first, lawn_time_t period);

/* Starts `periodic` on the engine's lawn, and reads the clock for that, so the
 * first deadline is exactly a period from now. What lawn_engine_start() says of
 * negative differences holds for `period`. */
static inline lawn_status_t
lawn_engine_start_periodic(lawn_engine_t *engine, lawn_periodic_t *periodic,
                           lawn_time_t period);

/* Stops `periodic`: the caller may free its memory at once. Returns true if it
 * was running. After its lawn was destroyed it does not run, and the lawn is
 * not touched. */
static inline bool lawn_periodic_stop(lawn_periodic_t *periodic);

/* Returns true from start until stop, also in the callback. */
static inline bool lawn_periodic_is_active(const lawn_periodic_t *periodic);

/* Returns the next deadline, also in the callback: the latest that has come is
 * a period before it. Returns LAWN_TIME_INFINITY if the timer does not run, or
 * does not expire again. */
static inline lawn_time_t
lawn_periodic_deadline(const lawn_periodic_t *periodic);

/* Not for programs. It starts the timer before it calls the program, which may
 * then stop it and free it. */
static inline void lawn_periodic_on_expired(lawn_timer_t *timer,
                                            lawn_time_t now)
{
    lawn_periodic_t *const periodic = (lawn_periodic_t *)(void *)timer;
    const lawn_time_t period = periodic->period;
    const lawn_time_t deadline = lawn_timer_deadline(timer);
    /* It reads INFINITY if it was 0. */
    const lawn_time_t late = now - (deadline <= now ? deadline : 0);
    const lawn_time_t next = now - late % period + period;
    lawn_timer_start_at(periodic->lawn, timer, now,
                        next < period ? LAWN_TIME_INFINITY : next);
    if (periodic->expired) {
        periodic->expired(periodic, now, late / period + 1);
    }
}

/* Not for programs. Returns false if the period is 0. */
static inline bool lawn_periodic_prepare(lawn_t *lawn,
                                         lawn_periodic_t *periodic,
                                         lawn_time_t period)
{
    if (period == 0) {
        return false;
    }
    if (periodic->lawn != lawn) {
        lawn_periodic_stop(periodic);
        periodic->lawn = lawn;
    }
    periodic->period = period;
    periodic->timer.expired = lawn_periodic_on_expired;
    return true;
}

static inline void lawn_periodic_init(lawn_periodic_t *periodic,
                                      lawn_periodic_fn_t expired)
{
    lawn_timer_init(&periodic->timer, lawn_periodic_on_expired);
    periodic->lawn = NULL;
    periodic->period = 0;
    periodic->expired = expired;
}

static inline lawn_status_t lawn_periodic_start(lawn_t *lawn,
                                                lawn_periodic_t *periodic,
                                                lawn_time_t now,
                                                lawn_time_t period)
{
    if (!lawn_periodic_prepare(lawn, periodic, period)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_timer_start(lawn, &periodic->timer, now, period);
    return LAWN_OK;
}

static inline lawn_status_t
lawn_periodic_start_at(lawn_t *lawn, lawn_periodic_t *periodic, lawn_time_t now,
                       lawn_time_t first, lawn_time_t period)
{
    if (!lawn_periodic_prepare(lawn, periodic, period)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_timer_start_at(lawn, &periodic->timer, now, first);
    return LAWN_OK;
}

static inline lawn_status_t
lawn_engine_start_periodic(lawn_engine_t *engine, lawn_periodic_t *periodic,
                           lawn_time_t period)
{
    if (!lawn_periodic_prepare(lawn_engine_lawn(engine), periodic, period)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_engine_start(engine, &periodic->timer, period);
    return LAWN_OK;
}

static inline bool lawn_periodic_is_active(const lawn_periodic_t *periodic)
{
    return lawn_timer_is_active(&periodic->timer);
}

static inline bool lawn_periodic_stop(lawn_periodic_t *periodic)
{
    return lawn_periodic_is_active(periodic) &&
           lawn_timer_stop(periodic->lawn, &periodic->timer);
}

static inline lawn_time_t
lawn_periodic_deadline(const lawn_periodic_t *periodic)
{
    return lawn_periodic_is_active(periodic)
               ? lawn_timer_deadline(&periodic->timer)
               : LAWN_TIME_INFINITY;
}

LAWN_END_DECLS

#endif
