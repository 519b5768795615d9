/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/observer.h - a function that is told of everything that is done to a
 * lawn.
 *
 *     static void on_event(lawn_observer_t *observer, lawn_event_t event,
 *                          const lawn_timer_t *timer, lawn_time_t now,
 *                          lawn_time_t ttl) { ... }
 *
 *     my_log_t log = {.observer = {on_event}};       // embed it
 *     lawn_observe(lawn, &log.observer);
 *     lawn_unobserve(lawn, &log.observer);
 *
 * An observer is told of each call to a timer of the lawn as it is made, and of
 * each timer that fires. It is not told of the timers that lawn_destroy() makes
 * idle: to see these stop, drain the lawn first. The traces of an engine
 * (doc/trace.md) are written by an observer. While a lawn has an observer, the
 * inline functions of lawn/timer.h leave all work to the library, so each start
 * is a call. A lawn without an observer pays nothing.
 *
 * Not every timer is one that the program has made. A timer of lawn/keyed.h,
 * and the plain timer behind one of lawn/shared.h or lawn/shm.h, are shown when
 * the owner's thread starts, stops or fires them. Only the alarms of queues are
 * not shown. So do not take `timer` for a part of an object of yours.
 *
 * Threads: those of the lawn.
 */
#ifndef LAWN_OBSERVER_H
#define LAWN_OBSERVER_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_observer lawn_observer_t;

typedef enum {
    LAWN_EVENT_START,  /* or a re-arm */
    LAWN_EVENT_STOP,   /* also of an idle timer, and of each drained timer */
    LAWN_EVENT_PAUSE,  /* also of an idle timer */
    LAWN_EVENT_FIRE,   /* before the callback */
    LAWN_EVENT_ADVANCE /* before its timers fire */
} lawn_event_t;

/* Embed it in your own object. The memory is yours, and must stay until
 * lawn_unobserve() or the end of the lawn. */
struct lawn_observer {
    /* `timer` is NULL with ADVANCE. `ttl` is 0 except with START. `now` is the
     * latest time that the lawn has seen. With FIRE it is the time of the pass,
     * which is earlier if a callback has brought a later time. All times are in
     * ticks. The function must not call any function for the lawn that changes
     * it. */
    void (*event)(lawn_observer_t *observer, lawn_event_t event,
                  const lawn_timer_t *timer, lawn_time_t now, lawn_time_t ttl);
};

/* Gives the lawn an observer. A lawn has one observer at most: returns BUSY if
 * there is one, as in the lawn of an engine that writes a trace, or if an
 * advance or a drain is running. Returns INVALID_PARAM if `lawn`, `observer` or
 * its function is NULL. Does not allocate. */
LAWN_API lawn_status_t lawn_observe(lawn_t *lawn, lawn_observer_t *observer);

/* Takes the observer away. Returns NO_ELEM if it does not observe the lawn, and
 * BUSY if an advance or a drain is running. */
LAWN_API lawn_status_t lawn_unobserve(lawn_t *lawn,
                                      const lawn_observer_t *observer);

LAWN_END_DECLS

#endif
