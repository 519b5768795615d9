/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/timer.h - the Lawn: one thread's timers, filed by their TTL.
 *
 *     lawn_timer_init(&timer, on_expired);           // once
 *     lawn_timer_start(lawn, &timer, now, ttl);      // again: the re-arm
 *     lawn_timer_stop(lawn, &timer);
 *     lawn_advance(lawn, now, 64);                   // in every pass
 *     lawn_next(lawn);                               // when to come back
 *
 * Time is whatever the caller says: `now`, `ttl` and deadlines are ticks of any
 * clock that does not run backwards (see lawn/time.h). A lawn reads no clock.
 *
 * The idea. A Lawn files a timer by its TTL: timers of one TTL, in the order of
 * their starts, are sorted without sorting, and only the first can be due
 * (A. Lev-Libfeld, "Lawn: an Unbound Low Latency Timer Data Structure for Large
 * Scale, High Throughput Systems", 2019). Here, 21 classes of three octaves
 * take all 64-bit TTLs, and a class is a row of 64 slots by deadline: a TTL
 * queue cut into pieces, each an eighth to a 64th of the TTL wide, of which
 * only the first filled one can be due. A bit per slot finds it.
 *
 * A timer is looked at when its slot begins, which is never after its deadline:
 *   - the deadline has come: it fires;
 *   - it has not, or was re-armed meanwhile: what remains is a shorter TTL, and
 *     the timer moves to a finer slot, at most ten times, and once more after a
 *     re-arm;
 *   - it was paused: the lawn lets go of it.
 * So a re-arm to a later deadline is one store, and a pause is one store,
 * however often they are done. A program that declares a TTL which many timers
 * share gets the Lawn as published, without moves: lawn/queue.h.
 *
 * Threads: a lawn and its timers belong to one thread at a time; there are no
 * locks. Different lawns are independent. A timer that runs or is paused is its
 * lawn's: another's functions must not be called for it (an assertion in debug
 * builds of the library, where a short look shows it; release builds cannot
 * tell).
 *
 * Costs: start, re-arm, stop and pause are O(1), cannot fail and never
 * allocate. An advance touches at most as many timers as its budget says, and
 * looks at no more than 1,344 empty slots besides. A timer takes 40 bytes, a
 * lawn 22 KiB at creation and nothing after.
 */
#ifndef LAWN_TIMER_H
#define LAWN_TIMER_H

#include <lawn/base.h>
#include <lawn/time.h>

#include <stdbool.h>

LAWN_BEGIN_DECLS

/* One thread's timers. What is shown of it, and of a timer, is for the inline
 * functions below; programs never look inside. In C++ `lawn` is a namespace, so
 * the tag differs. */
#ifdef __cplusplus
typedef struct lawn_impl lawn_t;
struct lawn_impl {
#else
typedef struct lawn lawn_t;
struct lawn {
#endif
    lawn_time_t now;   /* the latest time seen */
    lawn_time_t next;  /* an advance before this has nothing to do */
    lawn_time_t limit; /* deadlines from here on, 2^63 or 0, are not for the
                        * inline functions */
    size_t running;
    void *observer; /* NULL, or told of every call */
};
typedef struct lawn_timer lawn_timer_t;

/* Called when `timer` has expired: its deadline is <= `now`, the time of the
 * advance (at most LAWN_TIME_INFINITY - 2). The timer is idle; the callback may
 * start, stop, pause or free any timer, this one and others due in the same
 * pass included. It may not advance or destroy the lawn it is called from (an
 * assertion in debug builds; ignored in release builds). */
typedef void (*lawn_expired_fn_t)(lawn_timer_t *timer, lawn_time_t now);

typedef struct lawn_link {
    struct lawn_link *next; /* NULL: idle */
    struct lawn_link *prev;
} lawn_link_t;

/* Embed it in your own object; the memory is yours, and must not move, be freed
 * or be initialised anew while the timer runs or is paused: an assertion in
 * debug builds, where they come upon it. Zero-filled is a valid idle timer
 * without a callback. */
struct lawn_timer {
    lawn_link_t link;
    /* INFINITY: paused or stopped. One less: runs and never fires. When idle,
     * 0: never started, or fired at `check`. */
    lawn_time_t deadline;
    /* In a slot: looked at from here on, no later than the deadline. Elsewhere,
     * 2^63 or more: inline functions do not move it. */
    lawn_time_t check;
    lawn_expired_fn_t expired;
};

/* Zero-filled is the default of everything. */
typedef struct {
    lawn_allocator_t allocator;
} lawn_params_t;

/* Makes an empty lawn. `params` may be NULL and need not outlive the call.
 * NO_MEMORY, or INVALID_PARAM when `lawn_p` is NULL or only one of alloc and
 * release is set; *lawn_p is then left alone. */
LAWN_API lawn_status_t lawn_create(const lawn_params_t *params,
                                   lawn_t **lawn_p);

/* Frees the lawn and the queues that are left (lawn/queue.h). Timers that still
 * run or are paused become idle, their callbacks are not called, and their
 * memory is not touched afterwards. NULL does nothing. */
LAWN_API void lawn_destroy(lawn_t *lawn);

/* Makes `timer` idle with callback `expired` (NULL: expire silently). Not for
 * a timer that runs or is paused. */
LAWN_INLINE void lawn_timer_init(lawn_timer_t *timer,
                                 lawn_expired_fn_t expired);

/* Starts `timer`, or re-arms it when it runs: its deadline is now + ttl
 * exactly, LAWN_TIME_INFINITY (never) when that overflows. A ttl of 0 is due
 * at the next advance, never within the one that is running, so a callback
 * that re-arms itself with 0 cannot spin. A `now` before the latest that this
 * lawn has seen is taken as that one. Deadlines from INFINITY - 1 on never
 * come. So a ttl that is a negative difference in disguise, (lawn_time_t)-5,
 * never fires, and nothing here tells it from one that is meant; a deadline
 * that may be past is for lawn_timer_start_at(). The paper's StartTimer. */
LAWN_INLINE void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer,
                                  lawn_time_t now, lawn_time_t ttl);

/* The same with a deadline instead of a TTL. One that is past is due at the
 * next advance, as with a ttl of 0. */
LAWN_INLINE void lawn_timer_start_at(lawn_t *lawn, lawn_timer_t *timer,
                                     lawn_time_t now, lawn_time_t deadline);

/* Stops `timer` and forgets it: its memory may be freed at once. True if it
 * was running; its callback will then not be called for that start. The
 * paper's DeleteTimer. */
LAWN_INLINE bool lawn_timer_stop(lawn_t *lawn, lawn_timer_t *timer);

/* Stops a timer that will soon be started again: same answer and promise as
 * stop, at the cost of one store. The lawn may still hold the timer, so stop
 * it before its memory goes. */
LAWN_INLINE bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer);

/* True from start until stop, pause or expiry. */
LAWN_INLINE bool lawn_timer_is_active(const lawn_timer_t *timer);

/* The deadline of the latest start, also within the callback, where
 * `now - deadline` is how late it is. LAWN_TIME_INFINITY for a timer that was
 * never started, was stopped or paused since, or never fires; also for one that
 * fired at deadline 0. */
LAWN_INLINE lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer);

/* Fires timers whose deadline is <= now and returns how many it fired. `budget`
 * is the most timers that it touches, fired or only moved (0: no limit), so
 * that every call is bounded, whatever happened before it. Work is left when
 * lawn_next() <= now afterwards: call again. What is due fires in any order,
 * the timers of a queue in the order of their starts. A `now` that goes back is
 * taken as the latest seen. The paper's PerTickBookkeeping and TimerExpired.
 *
 * Under a lasting backlog no timer waits for ever behind others. Advances at
 * their budget work in rounds: a round takes what is due when it begins, and
 * what comes meanwhile waits for the next. So with n timers running or paused
 * and q queues (lawn/queue.h), a timer that is due fires within
 * 8 (n / budget + q) + 8 more advances. */
LAWN_INLINE unsigned lawn_advance(lawn_t *lawn, lawn_time_t now,
                                  unsigned budget);

/* When to advance next: never later than the earliest deadline, possibly
 * earlier; LAWN_TIME_INFINITY when no timer runs. After an advance that left
 * nothing to do it lies in the future; after one that did, it is 0. */
LAWN_API lawn_time_t lawn_next(const lawn_t *lawn);

/* Makes lawn_next() the earliest deadline itself, for a caller that is about to
 * sleep until then, by looking at no more than `max_touches` timers (0: no
 * limit); nothing moves. True when it is. False when that was not enough, and
 * lawn_next() is earlier than it could be: wake up then, advance, and ask
 * again. False also when something is due now, and from a callback. Advance
 * between two calls: it fires nothing by itself, and told the same it answers
 * the same, so a loop that only asks until it is true may never end. The first
 * start after it may make lawn_next() earlier again. */
LAWN_API bool lawn_settle(lawn_t *lawn, unsigned max_touches);

/* Timers that are running. O(1). */
LAWN_INLINE size_t lawn_count(const lawn_t *lawn);

/* The latest time that the lawn was told. */
LAWN_INLINE lawn_time_t lawn_now(const lawn_t *lawn);

/* Calls `each` for every running timer, in no order. `each` may do nothing to
 * the lawn. O(count + paused). */
LAWN_API void lawn_for_each(const lawn_t *lawn,
                            void (*each)(const lawn_timer_t *timer, void *arg),
                            void *arg);

/* Empties the lawn: every running timer becomes idle and is handed to `each`
 * (NULL: to nobody) in no order, with the latest time seen; paused timers are
 * let go. Returns how many were handed over. What `each` starts anew stays. A
 * drain from inside `each` takes all that is left, and what was started anew.
 * Timers of lawn/keyed.h are among them, see lawn_keyed_identify(). */
LAWN_API unsigned lawn_drain(lawn_t *lawn, lawn_expired_fn_t each);

/* Walks the whole structure and every invariant in it, O(count); for tests.
 * LAWN_ERR_CORRUPT when one is broken. */
LAWN_API lawn_status_t lawn_check(const lawn_t *lawn);

/* What is inline: the re-arm to no earlier a check, stop, pause, and the
 * advance with nothing to do. The rest is behind these, which are not for
 * programs. */
LAWN_API void lawn_timer_start_rest(lawn_t *lawn, lawn_timer_t *timer,
                                    lawn_time_t deadline);
LAWN_API bool lawn_timer_stop_rest(lawn_t *lawn, lawn_timer_t *timer);
LAWN_API bool lawn_timer_pause_rest(lawn_t *lawn, lawn_timer_t *timer);
LAWN_API unsigned lawn_advance_rest(lawn_t *lawn, unsigned budget);

/* By the carry of an addition, which x86 adds to a count in two instructions
 * where a comparison takes four. */
#if defined(__GNUC__) && !defined(__clang__)
#define LAWN_IS_INFINITY(time)                                                 \
    __builtin_add_overflow_p((time), (lawn_time_t)1, (lawn_time_t)0)
#else
#define LAWN_IS_INFINITY(time) ((time) == LAWN_TIME_INFINITY)
#endif

/* The latest time, of the lawn or the caller's. */
LAWN_INLINE lawn_time_t lawn_see(lawn_t *lawn, lawn_time_t now)
{
    const lawn_time_t latest = now > lawn->now ? now : lawn->now;
    lawn->now = latest;
    return latest;
}

LAWN_INLINE void lawn_timer_init(lawn_timer_t *timer, lawn_expired_fn_t expired)
{
    timer->link.next = NULL;
    timer->link.prev = NULL;
    timer->deadline = 0;
    timer->check = 0;
    timer->expired = expired;
}

LAWN_INLINE bool lawn_timer_is_active(const lawn_timer_t *timer)
{
    return timer->link.next && timer->deadline != LAWN_TIME_INFINITY;
}

LAWN_INLINE lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer)
{
    lawn_time_t deadline = timer->deadline;
    if (!timer->link.next && deadline == 0) {
        deadline = timer->check ? timer->check : LAWN_TIME_INFINITY;
    }
    return deadline < LAWN_TIME_INFINITY - 1 ? deadline : LAWN_TIME_INFINITY;
}

LAWN_INLINE size_t lawn_count(const lawn_t *lawn)
{
    return lawn->running;
}

LAWN_INLINE lawn_time_t lawn_now(const lawn_t *lawn)
{
    return lawn->now;
}

LAWN_INLINE void lawn_timer_start_at(lawn_t *lawn, lawn_timer_t *timer,
                                     lawn_time_t now, lawn_time_t deadline)
{
    lawn_see(lawn, now);
    if (LAWN_LIKELY(timer->link.next && deadline >= timer->check &&
                    deadline < lawn->limit)) {
        lawn->running += LAWN_IS_INFINITY(timer->deadline);
        timer->deadline = deadline;
        return;
    }
    lawn_timer_start_rest(lawn, timer, deadline);
}

LAWN_INLINE void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer,
                                  lawn_time_t now, lawn_time_t ttl)
{
    const lawn_time_t latest = lawn_see(lawn, now);
    const lawn_time_t deadline = latest + ttl;
    lawn_timer_start_at(lawn, timer, latest,
                        LAWN_UNLIKELY(deadline < ttl) ? LAWN_TIME_INFINITY
                                                      : deadline);
}

/* Runs, and the limit allows it: 0, which is idle, wraps around. */
#define LAWN_IS_OPEN(lawn, timer) ((timer)->deadline - 1 < (lawn)->limit)

LAWN_INLINE bool lawn_timer_stop(lawn_t *lawn, lawn_timer_t *timer)
{
    if (LAWN_UNLIKELY(!LAWN_IS_OPEN(lawn, timer))) {
        return lawn_timer_stop_rest(lawn, timer);
    }
    timer->link.next->prev = timer->link.prev;
    timer->link.prev->next = timer->link.next;
    timer->link.next = NULL;
    timer->deadline = LAWN_TIME_INFINITY;
    lawn->running--;
    return true;
}

LAWN_INLINE bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer)
{
    if (LAWN_UNLIKELY(!LAWN_IS_OPEN(lawn, timer))) {
        return lawn_timer_pause_rest(lawn, timer);
    }
    timer->deadline = LAWN_TIME_INFINITY;
    lawn->running--;
    return true;
}

LAWN_INLINE unsigned lawn_advance(lawn_t *lawn, lawn_time_t now,
                                  unsigned budget)
{
    return LAWN_LIKELY(lawn_see(lawn, now) < lawn->next)
               ? 0
               : lawn_advance_rest(lawn, budget);
}

LAWN_END_DECLS

#endif
