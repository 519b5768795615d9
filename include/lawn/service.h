/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/service.h - timeouts for programs with ordinary threads: a thread that
 * sleeps until something is due.
 *
 *     lawn_service_create(NULL, &service);
 *     lawn_service_timer_t handle;
 *     lawn_service_start(service, lawn_time_from_sec(30), give_up, request,
 *                        &handle);                  // any thread
 *     lawn_service_cancel(service, handle);         // any thread: OK, or late
 *     lawn_service_destroy(service);
 *
 * It is for programs that have no progress loop, or whose threads have none in
 * common; one that polls has an engine (lawn/engine.h), and its other threads
 * lawn/shared.h, on which this is built. The model is Netty's
 * HashedWheelTimer, after G. Varghese and A. Lauck, "Hashed and Hierarchical
 * Timing Wheels", 1987; doc/threads.md compares the two.
 *
 * There is no tick: a timer is due at its deadline and not rounded, and while
 * none is due the thread sleeps. A start wakes it only if it is to be earlier
 * than all others. A cancelled timer's memory is free for the next start at
 * once, though the thread may wake at its deadline for nothing. Memory grows
 * with the most timers that were pending together, and is given back by
 * destroy.
 *
 * Callbacks run in the service's thread, one after the other, and a slow one
 * delays the others: then give `execute`, which hands them to threads of your
 * own. Times are ticks of the process's clock (lawn/time.h). After a fork() the
 * child has no service: it may not use the parent's.
 */
#ifndef LAWN_SERVICE_H
#define LAWN_SERVICE_H

#include <lawn/base.h>
#include <lawn/time.h>

LAWN_BEGIN_DECLS

typedef struct lawn_service lawn_service_t;

/* Names one start. It stays good for ever: what it named may be long over.
 * Zero-filled names none. */
typedef struct {
    uint32_t index;
    uint32_t generation;
} lawn_service_timer_t;

/* Zero-filled is the default of everything. */
typedef struct {
    size_t max_pending; /* 0: no limit but memory */
    /* NULL: the service's thread calls fn(arg) itself. Else it calls this,
     * which sees to it that fn(arg) is called, and returns soon. */
    void (*execute)(void *executor, void (*fn)(void *arg), void *arg);
    void *executor;
    lawn_allocator_t allocator; /* called by any thread that starts a timer, by
                                 * one at a time */
} lawn_service_params_t;

/* Makes a service and its thread, in which all signals are blocked. `params`
 * may be NULL and need not outlive the call. INVALID_PARAM, NO_MEMORY, or IO
 * when there can be no thread. Any thread. */
static inline lawn_status_t
lawn_service_create(const lawn_service_params_t *params,
                    lawn_service_t **service_p);
LAWN_API lawn_status_t
lawn_service_create_sized(const lawn_service_params_t *params, size_t size,
                          lawn_service_t **service_p);

/* Has fn(arg) called `ttl` ticks from now, or later, as soon as the thread
 * comes to it; LAWN_TIME_INFINITY is never. So are the 2^32 ticks below it, a
 * negative difference in disguise, but for an assertion in debug builds.
 * `handle_p` may be NULL. It is written before the timer can expire. BUSY when
 * `max_pending` timers are pending, NO_MEMORY, UNSUPPORTED when the service has
 * been stopped, INVALID_PARAM when `fn` is NULL. Any thread, callbacks
 * included. Takes a lock of its processor's for some instructions. Allocates
 * when more timers are pending than ever before. */
LAWN_API lawn_status_t lawn_service_start(lawn_service_t *service,
                                          lawn_time_t ttl,
                                          void (*fn)(void *arg), void *arg,
                                          lawn_service_timer_t *handle_p);

/* Cancels a timer. OK: it was pending, and `fn` will not be called. NO_ELEM: it
 * was called, is being called (or handed to `execute`), was cancelled before,
 * or handed back by stop. Of several threads that cancel one timer, one is told
 * OK. Any thread, callbacks included. */
LAWN_API lawn_status_t lawn_service_cancel(lawn_service_t *service,
                                           lawn_service_timer_t handle);

/* Timers that were started, and neither called nor cancelled. Exact, and
 * dearer than a start. Any thread, callbacks included. */
LAWN_API size_t lawn_service_pending(const lawn_service_t *service);

/* Ends the thread, when the callback that it is in has returned, and hands the
 * `arg` of every timer that is still pending to `unprocessed(arg, user)` (NULL:
 * to nobody). Returns how many they were; 0 for a service that was stopped
 * before. Nothing can be started afterwards. Any thread but the service's own,
 * which would wait for itself: an assertion in debug builds, in release builds
 * it does nothing. */
LAWN_API size_t lawn_service_stop(lawn_service_t *service,
                                  void (*unprocessed)(void *arg, void *user),
                                  void *user);

/* Stops the service and frees it. Timers that are pending and were not handed
 * back by a stop are a mistake: in debug builds of the library their number,
 * and where the first was started, is written to stderr, and an assertion
 * fails; in release builds they are dropped. No other call may be in progress.
 * NULL does nothing. Any thread but the service's own, as stop. */
LAWN_API void lawn_service_destroy(lawn_service_t *service);

static inline lawn_status_t
lawn_service_create(const lawn_service_params_t *params,
                    lawn_service_t **service_p)
{
    return lawn_service_create_sized(params, sizeof(*params), service_p);
}

LAWN_END_DECLS

#endif
