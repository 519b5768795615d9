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
 * A service is for programs that have no progress loop, or whose threads do not
 * share one. A program that polls uses an engine (lawn/engine.h), and its other
 * threads use lawn/shared.h, on which a service is built. The model is Netty's
 * HashedWheelTimer, after G. Varghese and A. Lauck, "Hashed and Hierarchical
 * Timing Wheels", 1987. doc/threads.md compares it with the service.
 *
 * There is no tick. A timer is due at its exact deadline, and the thread sleeps
 * while no timer is due. A start wakes the thread only if the new deadline is
 * earlier than all others. The memory of a cancelled timer is free for the next
 * start at once, but the thread may still wake for nothing at the timer's
 * deadline. Memory grows with the largest number of timers that were pending
 * together, and by some more if a thread finds the free nodes in the hands of
 * others. lawn_service_destroy() frees it.
 *
 * The service's thread runs the callbacks one after the other, so a slow
 * callback delays the others. If your callbacks are slow, set `execute`, which
 * passes them to your own threads. Times are ticks of the process's clock
 * (lawn/time.h). After a fork() the child has no service, and must not use the
 * parent's.
 */
#ifndef LAWN_SERVICE_H
#define LAWN_SERVICE_H

#include <lawn/base.h>
#include <lawn/time.h>

LAWN_BEGIN_DECLS

typedef struct lawn_service lawn_service_t;

/* Names one start. A handle stays valid when its start is long over, until its
 * memory has been used for 2^32 more starts. A zero-filled handle names no
 * start. */
typedef struct {
    uint32_t index;
    uint32_t generation;
} lawn_service_timer_t;

/* A zero-filled structure selects all defaults. */
typedef struct {
    size_t max_pending; /* 0: no limit but memory */
    /* NULL: the service's thread calls fn(arg) itself. Otherwise it calls this
     * function, which must return soon and have fn(arg) called. */
    void (*execute)(void *executor, void (*fn)(void *arg), void *arg);
    void *executor;
    lawn_allocator_t allocator; /* must be thread-safe: any thread that starts
                                 * a timer and the service's own may call it */
} lawn_service_params_t;

/* Makes a service and its thread. All signals are blocked in the thread.
 * `params` may be NULL and need not outlive the call. Returns INVALID_PARAM,
 * NO_MEMORY, or IO if the thread cannot be made. Any thread. */
static inline lawn_status_t
lawn_service_create(const lawn_service_params_t *params,
                    lawn_service_t **service_p);
LAWN_API lawn_status_t
lawn_service_create_sized(const lawn_service_params_t *params, size_t size,
                          lawn_service_t **service_p);

/* Has fn(arg) called `ttl` ticks from now, or later, as soon as the thread gets
 * to it. LAWN_TIME_INFINITY never expires. The 2^32 values below it are
 * negative differences: an assertion in debug builds; in release builds they
 * never expire. `handle_p` may be NULL. It is written before the timer can
 * expire. Returns BUSY if `max_pending` timers are pending, NO_MEMORY,
 * UNSUPPORTED if the service was stopped, and INVALID_PARAM if `fn` is NULL.
 * BUSY and NO_MEMORY cost as much as lawn_service_pending().
 * Any thread, also from callbacks. Holds a lock of the current processor for
 * some instructions. Allocates when more timers are pending than ever before,
 * and sometimes while other threads hold the nodes that are free. */
LAWN_API lawn_status_t lawn_service_start(lawn_service_t *service,
                                          lawn_time_t ttl,
                                          void (*fn)(void *arg), void *arg,
                                          lawn_service_timer_t *handle_p);

/* Cancels a timer. Returns OK if the timer was pending; `fn` will then not be
 * called. Returns NO_ELEM if `fn` was called, is being called or was passed to
 * `execute`, or if the timer was cancelled before or handed back by stop. If
 * several threads cancel one timer, only one of them gets OK. Does not
 * allocate. Any thread, also from callbacks. */
LAWN_API lawn_status_t lawn_service_cancel(lawn_service_t *service,
                                           lawn_service_timer_t handle);

/* Returns how many timers are pending: they were started, and were neither
 * called nor cancelled. The number is exact. A timer counts until just before
 * its callback begins or is passed to `execute`. So when a cancel has returned
 * NO_ELEM, its timer no longer counts. The call costs more than a start. Any
 * thread, also from callbacks. */
LAWN_API size_t lawn_service_pending(const lawn_service_t *service);

/* Ends the thread, after the callback that is running has returned. Then hands
 * the `arg` of every timer that is still pending to `unprocessed(arg, user)`
 * (NULL: to nobody). Returns how many timers these were; 0 if the service was
 * stopped before. Afterwards no timer can be started. Any thread except the
 * service's own, which would wait for itself: an assertion in debug builds; in
 * release builds the call does nothing. */
LAWN_API size_t lawn_service_stop(lawn_service_t *service,
                                  void (*unprocessed)(void *arg, void *user),
                                  void *user);

/* Stops the service and frees it. It is a mistake if timers are still pending
 * that no stop has handed back. Debug builds of the library then write to
 * stderr how many there are and where the first was started, and an assertion
 * fails. Release builds drop the timers. No other call may be in progress. NULL
 * does nothing. Any thread except the service's own, as for
 * lawn_service_stop(). */
LAWN_API void lawn_service_destroy(lawn_service_t *service);

static inline lawn_status_t
lawn_service_create(const lawn_service_params_t *params,
                    lawn_service_t **service_p)
{
    return lawn_service_create_sized(params, sizeof(*params), service_p);
}

LAWN_END_DECLS

#endif
