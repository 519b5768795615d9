/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/shared.h - timers that any thread starts and stops, and one thread runs.
 *
 *     lawn_box_t *box = lawn_engine_box(engine);     // the owner, once
 *     lawn_shared_init(&timer, box, on_expired);
 *     lawn_shared_start(&timer, lawn_engine_time(engine) + ttl);  // any thread
 *     lawn_shared_stop(&timer);                                   // any thread
 *     lawn_shared_retire(&timer, free_it);           // then it may be freed
 *
 * The idea. A shared timer is a deadline that any thread may store, and a plain
 * timer of its owner's lawn that looks at it no later than that. A start with a
 * later deadline is so one atomic exchange, and costs the owner nothing until
 * the plain timer expires, finds the deadline later, and starts itself anew.
 * Only a start that the plain timer would come too late for is a message: the
 * timer is pushed on the owner's stack, the box, once however often it is
 * started, and the owner takes the stack whole, once per pass. A stop is one
 * exchange, too, and leaves the plain timer where it is.
 *
 * The owner of a box is the thread that runs its lawn or engine now; when that
 * changes, the two threads synchronise, as for the lawn itself. Each function
 * says who may call it. Callbacks are called by the owner, in an advance or
 * pass. `now` and deadlines are ticks, on the clock of the lawn: for an engine,
 * lawn_engine_time().
 *
 * What a start stores before happens before its callback; what the callback
 * does happens before lawn_shared_sync() returns. No order is promised among
 * the timers of a box. If two threads start one timer, the later start counts,
 * and a start of the owner's (lawn_shared_start_local) may count as the later.
 *
 * Start, stop, sync and retire never allocate, and there is nothing that could
 * be full. Create allocates, and the last release frees.
 */
#ifndef LAWN_SHARED_H
#define LAWN_SHARED_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_box lawn_box_t;
typedef struct lawn_shared lawn_shared_t;

/* `timer` has expired: the deadline of its latest start is <= `now`. It is
 * stopped; the callback may start, stop or retire any timer, this one included.
 * It may not destroy the box, nor wait for itself in lawn_shared_sync(). */
typedef void (*lawn_shared_fn_t)(lawn_shared_t *timer, lawn_time_t now);

/* Embed it in your own object; the memory is yours, and must neither move nor
 * be freed from init until `released` is called (lawn_shared_retire). What is
 * shown is for the inline functions below. */
struct lawn_shared {
    lawn_timer_t timer;   /* the owner's; first */
    lawn_time_t deadline; /* atomic; INFINITY: stopped */
    lawn_time_t cover;    /* atomic; `timer` expires no later than this */
    uintptr_t flags;      /* atomic */
    lawn_shared_t *next;  /* in the box */
    lawn_box_t *box;
    lawn_shared_fn_t expired;
    lawn_shared_fn_t released;
};

/* Makes the box of `lawn`, with its allocator; memory is released by the thread
 * that retires last. A lawn may have several. The lawn's thread. INVALID_PARAM
 * for NULL, NO_MEMORY. (An engine makes its own: lawn_engine_box.) */
LAWN_API lawn_status_t lawn_box_create(lawn_t *lawn, lawn_box_t **box_p);

/* Stops all timers of the box; every start returns false afterwards, and a
 * retire calls `released` at once. (A start that is in progress meanwhile may
 * return false although it was called back or stopped before.) Before the lawn
 * is destroyed. The box's memory goes with the last timer that is retired. The
 * owner, but not from a callback of the box (an assertion in debug builds,
 * ignored in release builds). NULL does nothing. */
LAWN_API void lawn_box_destroy(lawn_box_t *box);

/* Takes up to `budget` messages (0: all that are there) and returns how many:
 * starts what other threads have started, and releases what they have retired.
 * Costs two loads when there is none. Call it before each lawn_advance(), with
 * the same `now`. The owner. */
LAWN_API unsigned lawn_box_drain(lawn_box_t *box, lawn_time_t now,
                                 unsigned budget);

/* The owner is about to sleep until `until`. False when there are messages:
 * drain instead. After true, the first start of another thread whose deadline
 * is before `until`, and each retire, calls the function of lawn_box_on_wake(),
 * once until the owner drains or sleeps again. The owner. */
LAWN_API bool lawn_box_sleep(lawn_box_t *box, lawn_time_t until);

/* Sets what wakes a sleeping owner, e.g. a write to an eventfd; called by the
 * thread that starts or retires. It may come late, when the owner has woken by
 * itself and sleeps again. The owner, before the box is known to others. */
LAWN_API void lawn_box_on_wake(lawn_box_t *box, void (*wake)(void *arg),
                               void *arg);

/* Binds a stopped timer to `box`; `expired` may be NULL. Each timer that was
 * initialised is to be retired. One thread, while nobody else uses the timer;
 * the box must not have been destroyed. */
LAWN_API void lawn_shared_init(lawn_shared_t *timer, lawn_box_t *box,
                               lawn_shared_fn_t expired);

/* Starts `timer`, or re-arms it, to expire at `deadline`; LAWN_TIME_INFINITY is
 * never, a deadline that is past is due at the owner's next pass. True; false
 * when the timer is retired (an assertion in debug builds) or the box
 * destroyed. Any thread. One exchange, and where the timer has to be brought to
 * its owner two more, and a wake-up of a sleeping owner.
 *
 * A thread that is interrupted in the middle of a start may hold others up. If
 * it was about to bring the timer to its owner, later starts of that timer wait
 * with it. If it was about to wake the owner, the owner sleeps on until it
 * would have woken by itself, whatever else is started. */
LAWN_API bool lawn_shared_start(lawn_shared_t *timer, lawn_time_t deadline);

/* The same for the owner: a store, where the deadline is not before the one
 * that the owner's plain timer stands at. */
LAWN_INLINE bool lawn_shared_start_local(lawn_shared_t *timer,
                                         lawn_time_t deadline);

/* Stops `timer`. True: it was running, and for that start its callback will not
 * be called. False: it was not, or the callback has been or is being called;
 * lawn_shared_sync() waits for it. Any thread. One exchange.
 *
 * True is no licence to free the timer: the callback of an earlier start may be
 * running. Retire it. */
LAWN_API bool lawn_shared_stop(lawn_shared_t *timer);

/* Waits until no callback of `timer` is running that began before the call.
 * Spins and yields, for as long as the callback takes. Any thread; from the
 * callback itself it would wait for ever: an assertion in debug builds, and in
 * release builds it returns at once. */
LAWN_API void lawn_shared_sync(lawn_shared_t *timer);

/* Stops `timer` for good. When the owner has let go of it, it calls
 * `released(timer, now)`, which may free it; `released` may be NULL. Any
 * thread, also the callback of the timer; once, as the last call for `timer`.
 * Calls in other threads must have returned before `released` is called, which
 * is certain if they have returned before the retire. So a callback should not
 * retire a timer that another thread may be starting or about to stop: let that
 * thread do it. */
LAWN_API void lawn_shared_retire(lawn_shared_t *timer,
                                 lawn_shared_fn_t released);

/* Whether the timer is running, and its deadline; LAWN_TIME_INFINITY when it is
 * not, or never expires. Any thread; what another does may have changed it by
 * the time it returns. */
LAWN_INLINE bool lawn_shared_is_active(const lawn_shared_t *timer);
LAWN_INLINE lawn_time_t lawn_shared_deadline(const lawn_shared_t *timer);

/* Behind lawn_shared_start_local(), not for programs. */
LAWN_API bool lawn_shared_start_rest(lawn_shared_t *timer,
                                     lawn_time_t deadline);

LAWN_INLINE bool lawn_shared_start_local(lawn_shared_t *timer,
                                         lawn_time_t deadline)
{
    if (LAWN_LIKELY(deadline >=
                        __atomic_load_n(&timer->cover, __ATOMIC_RELAXED) &&
                    deadline < LAWN_TIME_INFINITY)) {
        __atomic_store_n(&timer->deadline, deadline, __ATOMIC_RELEASE);
        return true;
    }
    return lawn_shared_start_rest(timer, deadline);
}

LAWN_INLINE bool lawn_shared_is_active(const lawn_shared_t *timer)
{
    return __atomic_load_n(&timer->deadline, __ATOMIC_ACQUIRE) !=
           LAWN_TIME_INFINITY;
}

LAWN_INLINE lawn_time_t lawn_shared_deadline(const lawn_shared_t *timer)
{
    const lawn_time_t deadline =
        __atomic_load_n(&timer->deadline, __ATOMIC_ACQUIRE);
    return deadline < LAWN_TIME_INFINITY - 1 ? deadline : LAWN_TIME_INFINITY;
}

LAWN_END_DECLS

#endif
