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
 * timer in its owner's lawn, which checks that deadline in time. A start with a
 * later deadline is one atomic exchange. It costs the owner nothing until the
 * plain timer expires, finds the later deadline and restarts. Only a start with
 * a deadline before the plain timer's sends a message: it pushes the timer on
 * the owner's stack, the box. The timer is in the box once, however often it is
 * started. The owner takes the whole stack once per pass. A stop is one
 * exchange, too, and leaves the plain timer where it is.
 *
 * The owner of a box is the thread that runs its lawn or engine now. When the
 * owner changes, the two threads must synchronise, as for the lawn itself. The
 * owner calls the callbacks, in an advance or pass. Each function below says
 * who may call it. `now` and deadlines are ticks of the lawn's clock. For an
 * engine, that is lawn_engine_time().
 *
 * What a thread stores before a start happens before the callback of that
 * start. What the callback does happens before lawn_shared_sync() returns. The
 * timers of a box expire in any order. If two threads start one timer, the
 * later start counts. The owner's lawn_shared_start_local() may count as the
 * later one even if it came first.
 *
 * Start, stop, sync and retire do not allocate, and there is nothing that could
 * be full. lawn_box_create() allocates, and the last release frees.
 */
#ifndef LAWN_SHARED_H
#define LAWN_SHARED_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_box lawn_box_t;
typedef struct lawn_shared lawn_shared_t;

/* `timer` has expired: the deadline of its latest start is <= `now`. The timer
 * is stopped. The callback may start, stop or retire any timer, including this
 * one. It must not destroy the box, nor call lawn_shared_sync() for its own
 * timer. */
typedef void (*lawn_shared_fn_t)(lawn_shared_t *timer, lawn_time_t now);

/* Embed it in your own object. The memory is yours. It must neither move nor be
 * freed from lawn_shared_init() until `released` is called (see
 * lawn_shared_retire()). The fields are shown for the inline functions
 * below. */
struct lawn_shared {
    lawn_timer_t timer;   /* first; only the owner uses it */
    lawn_time_t deadline; /* atomic; INFINITY: stopped */
    lawn_time_t cover;    /* atomic; `timer` expires no later than this */
    uintptr_t flags;      /* atomic */
    lawn_shared_t *next;  /* the next in the box */
    lawn_box_t *box;
    lawn_shared_fn_t expired;
    lawn_shared_fn_t released;
};

/* Makes a box for `lawn`, with the lawn's allocator. A lawn may have several.
 * The memory is freed when the box is destroyed and all its timers are
 * released, by the thread that comes last. Returns INVALID_PARAM for NULL, or
 * NO_MEMORY. Only the lawn's thread may call it. (An engine makes its own box:
 * lawn_engine_box().) */
LAWN_API lawn_status_t lawn_box_create(lawn_t *lawn, lawn_box_t **box_p);

/* Stops all timers of the box. Afterwards every start returns false, and a
 * retire calls `released` at once. A start that another thread has in progress
 * may return false although its callback has run or a stop has returned true
 * for it. Destroy the box before the lawn. The box's memory is freed with the
 * last timer that is retired. Only the owner may call it, but not from a
 * callback of the box (an assertion in debug builds, ignored in release
 * builds). NULL does nothing. */
LAWN_API void lawn_box_destroy(lawn_box_t *box);

/* Takes up to `budget` messages (0: all that are there) and returns how many it
 * took. It starts what other threads have started, and releases what they have
 * retired. It costs two loads if there is no message. Call it before each
 * lawn_advance(), with the same `now`. Only the owner may call it. In the
 * callback of a timer that was retired, it releases that timer: the callback
 * must not use it any more. */
LAWN_API unsigned lawn_box_drain(lawn_box_t *box, lawn_time_t now,
                                 unsigned budget);

/* Tells the box that the owner is about to sleep, until the time `until`.
 * Returns false if there are messages: drain instead of sleeping. After true, a
 * start of another thread with a deadline before `until`, or a retire, calls
 * the function of lawn_box_on_wake(). It is called once, until the owner drains
 * or sleeps again. Only the owner may call it. */
LAWN_API bool lawn_box_sleep(lawn_box_t *box, lawn_time_t until);

/* Sets the function that wakes a sleeping owner, e.g. by a write to an eventfd.
 * The thread that starts or retires a timer calls it. The call may come late,
 * when the owner has woken by itself and sleeps again. Only the owner may set
 * it, before other threads know the box. */
LAWN_API void lawn_box_on_wake(lawn_box_t *box, void (*wake)(void *arg),
                               void *arg);

/* Makes `timer` a stopped timer of `box`. `expired` may be NULL. Each
 * initialised timer must be retired. The box must not have been destroyed. One
 * thread may call it, while no other thread uses the timer. */
LAWN_API void lawn_shared_init(lawn_shared_t *timer, lawn_box_t *box,
                               lawn_shared_fn_t expired);

/* Starts `timer`, or re-arms it, to expire at `deadline`. LAWN_TIME_INFINITY is
 * never. A deadline in the past is due at the owner's next pass. Returns true.
 * Returns false if the timer is retired (an assertion in debug builds) or the
 * box is destroyed. Any thread may call it. It costs one exchange. If the owner
 * needs a message, it costs two more, and a wake-up if the owner sleeps.
 *
 * A thread that is preempted in the middle of a start may delay others until it
 * runs again. If it was about to push the message, later starts of that timer
 * wait for that message. If it was about to wake the owner, the owner sleeps
 * until its own deadline, whatever else is started. */
LAWN_API bool lawn_shared_start(lawn_shared_t *timer, lawn_time_t deadline);

/* The same for the owner. It costs one store if `deadline` is not before the
 * deadline of the owner's plain timer. It need not notice that the timer is
 * retired: it may then return true, although the timer never fires. */
LAWN_INLINE bool lawn_shared_start_local(lawn_shared_t *timer,
                                         lawn_time_t deadline);

/* Stops `timer`. Returns true if the timer was running: its callback will not
 * be called for that start. Returns false if it was not running, or if its
 * callback was called or is being called. lawn_shared_sync() waits for that
 * callback. Any thread may call it. It costs one exchange.
 *
 * True does not allow the caller to free the timer: the callback of an earlier
 * start may be running. Retire the timer instead. */
LAWN_API bool lawn_shared_stop(lawn_shared_t *timer);

/* Waits until each callback of `timer` that began before this call has
 * returned. It spins and yields for as long as the callback takes. Any thread
 * may call it, except from the callback itself, where it would wait for ever.
 * That is an assertion in debug builds; in release builds the call returns at
 * once. In the child of a fork, it does not wait for a callback that began in
 * the parent. */
LAWN_API void lawn_shared_sync(lawn_shared_t *timer);

/* Stops `timer` for good. When the owner no longer uses the timer, the owner
 * calls `released(timer, now)`, which may free it. If `released` is NULL, the
 * memory must stay until the box is destroyed. If the box is destroyed already,
 * the calling thread calls `released` at once. Any thread may call it, also in
 * the timer's callback. Call it once, as the last call for `timer`. Other
 * threads' calls for `timer` must have returned before `released` is called.
 * That is certain if they have returned before the retire. So a callback should
 * not retire a timer that another thread may be starting or about to stop: let
 * that thread retire it. */
LAWN_API void lawn_shared_retire(lawn_shared_t *timer,
                                 lawn_shared_fn_t released);

/* Whether the timer is running, and its deadline. The deadline is
 * LAWN_TIME_INFINITY if the timer is not running or never expires. Any thread
 * may call them. Another thread may change the answer before it is returned. */
LAWN_INLINE bool lawn_shared_is_active(const lawn_shared_t *timer);
LAWN_INLINE lawn_time_t lawn_shared_deadline(const lawn_shared_t *timer);

/* Used by lawn_shared_start_local(), not for programs. */
LAWN_API bool lawn_shared_start_slow(lawn_shared_t *timer,
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
    return lawn_shared_start_slow(timer, deadline);
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
