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
 * The caller passes the time to each call. `now`, `ttl` and deadlines are ticks
 * of any clock (see lawn/time.h). If the clock runs backwards, timers wait
 * until it has caught up. A lawn reads no clock.
 *
 * A Lawn files a timer by its TTL, the time from its start to its deadline.
 * Timers of one TTL, in the order of their starts, are sorted by deadline. So
 * if the first is not due, none is (A. Lev-Libfeld, "Lawn: an Unbound Low
 * Latency Timer Data Structure for Large Scale, High Throughput Systems",
 * 2019, arXiv:1906.10860). This lawn has 21 classes for all 64-bit TTLs. A
 * class is for TTLs within a factor of 8 and has 64 slots. A slot is for an
 * interval of deadlines, an eighth of the shortest TTL of the class. For
 * example, TTLs of 512 to 4095 ticks have slots of 64 ticks. A word of 64 bits
 * per class shows which slots have timers.
 *
 * An advance looks at a timer when the timer's slot begins, which is never
 * after the deadline:
 *   - If the deadline has come, the timer fires.
 *   - If the deadline has not come, the timer moves to a narrower slot: at most
 *     ten times after its start, and at most eleven times after each re-arm.
 *   - If the timer was paused, the lawn forgets it.
 *
 * So a re-arm to a later deadline only stores the deadline. The timer stays
 * where it is, and the advance that looks at it finds the later deadline. A
 * pause does the same. Both cost a few instructions, however often the program
 * does them. For a TTL that many timers share, a program may declare a queue:
 * the Lawn as published, without moves (lawn/queue.h). doc/design.md explains
 * the structure.
 *
 * Threads: a lawn and its timers belong to one thread at a time. There are no
 * locks. Different lawns are independent. While a timer runs or is paused, it
 * belongs to its lawn: do not call functions of another lawn for it. While a
 * thread is inside an advance or a drain, no other thread may use the lawn, not
 * even if the callback waits for it. A lawn that was destroyed must not be
 * used. Debug builds of the library assert all this where a short check detects
 * it. Release builds cannot detect it.
 *
 * Costs: start, re-arm, stop and pause are O(1), cannot fail and do not
 * allocate. An advance touches at most as many timers as its budget says. It
 * also looks at no more than 1,344 empty slots. A timer takes 40 bytes. A lawn
 * takes 22 KiB at creation and nothing later.
 */
#ifndef LAWN_TIMER_H
#define LAWN_TIMER_H

#include <lawn/base.h>
#include <lawn/time.h>

#include <stdbool.h>

LAWN_BEGIN_DECLS

/* One thread's timers. Its fields, and those of a timer, are visible only for
 * the inline functions below. Programs must not use them. In C++ `lawn` is a
 * namespace, so the tag differs. */
#ifdef __cplusplus
typedef struct lawn_impl lawn_t;
struct lawn_impl {
#else
typedef struct lawn lawn_t;
struct lawn {
#endif
    lawn_time_t now;  /* the latest time seen */
    lawn_time_t next; /* an advance before this time has nothing to do */
    /* Inline functions handle only deadlines below it: 2^63, or 0 with an
     * observer, in a pass, and after lawn_settle(). */
    lawn_time_t inline_limit;
    size_t running;
    void *observer; /* NULL, or is told of every call */
};
typedef struct lawn_timer lawn_timer_t;

/* Called when `timer` has expired: its deadline is <= `now`. `now` is the time
 * of the advance (at most LAWN_TIME_INFINITY - 2). The timer is idle. The
 * callback may start, stop, pause or free any timer, also this one and others
 * that are due in the same pass. It must not advance or destroy the lawn that
 * calls it: debug builds assert this, release builds ignore the call. */
typedef void (*lawn_expired_fn_t)(lawn_timer_t *timer, lawn_time_t now);

typedef struct lawn_link {
    struct lawn_link *next; /* NULL: idle */
    struct lawn_link *prev;
} lawn_link_t;

/* Embed it in your own object. The memory is yours. While the timer runs or is
 * paused, do not move, free or initialise it: debug builds assert this where
 * they detect it. A zero-filled timer is a valid idle timer without a callback.
 * Memory with any other content must go through lawn_timer_init() first: what a
 * start or a stop does with it is not defined in release builds, and in debug
 * builds it fails an assertion where a short check detects it. */
struct lawn_timer {
    lawn_link_t link;
    /* INFINITY: paused or stopped. INFINITY - 1: runs and never fires. 0 in an
     * idle timer: it was never started, or it fired at deadline `check`. */
    lawn_time_t deadline;
    /* If the timer is in a slot, this is when the slot begins, which is not
     * after the deadline. The first advance from then on looks at the timer. If
     * it runs or is paused elsewhere, this is 2^63 or more, so that the inline
     * functions leave its re-arm to the library. */
    lawn_time_t check;
    lawn_expired_fn_t expired;
};

/* A zero-filled structure selects the default of everything. Its size is fixed,
 * because structures of other parameters contain it. */
typedef struct {
    lawn_allocator_t allocator;
} lawn_params_t;

/* Creates an empty lawn. `params` may be NULL and need not outlive the call.
 * Returns NO_MEMORY, or INVALID_PARAM if `lawn_p` is NULL or if only one of
 * alloc and release is set. *lawn_p is then unchanged. */
LAWN_API lawn_status_t lawn_create(const lawn_params_t *params,
                                   lawn_t **lawn_p);

/* Frees the lawn and the queues that are left (lawn/queue.h). Timers that still
 * run or are paused become idle. Their callbacks are not called, and their
 * memory is not touched afterwards. NULL is ignored. */
LAWN_API void lawn_destroy(lawn_t *lawn);

/* Makes `timer` idle, with callback `expired`. If `expired` is NULL, the timer
 * expires silently. Do not call it for a timer that runs or is paused. */
LAWN_INLINE void lawn_timer_init(lawn_timer_t *timer,
                                 lawn_expired_fn_t expired);

/* Starts `timer`, or re-arms it if it runs. Its deadline is exactly now + ttl,
 * or LAWN_TIME_INFINITY (never) if the sum overflows. A timer with a ttl of 0
 * is due at the next advance, never within the running one. So a callback that
 * re-arms its own timer with 0 cannot spin. If `now` is before the latest time
 * that this lawn has seen, the latest time is used.
 *
 * Deadlines from LAWN_TIME_INFINITY - 1 on never come. A negative difference
 * that is passed as the ttl, such as (lawn_time_t)-5, is a TTL of nearly 2^64
 * ticks: the sum overflows, and the timer never fires. Only if `now` is below 3
 * does it not overflow, and the timer fires at 2^64 - 5 + now. No check detects
 * the mistake. If a deadline may be past, use lawn_timer_start_at(). This is
 * the paper's StartTimer. */
LAWN_INLINE void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer,
                                  lawn_time_t now, lawn_time_t ttl);

/* The same with a deadline instead of a TTL. A timer whose deadline is past is
 * due at the next advance, as with a ttl of 0. */
LAWN_INLINE void lawn_timer_start_at(lawn_t *lawn, lawn_timer_t *timer,
                                     lawn_time_t now, lawn_time_t deadline);

/* Stops `timer` and forgets it: the caller may free its memory at once. Returns
 * true if the timer was running. Its callback is then not called for that
 * start. This is the paper's DeleteTimer. */
LAWN_INLINE bool lawn_timer_stop(lawn_t *lawn, lawn_timer_t *timer);

/* Stops a timer that will soon be started again. It returns and promises the
 * same as lawn_timer_stop(), at the cost of one store. The lawn may still hold
 * the timer, so call lawn_timer_stop() before you free its memory. */
LAWN_INLINE bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer);

/* Returns true from start until stop, pause or expiry. */
LAWN_INLINE bool lawn_timer_is_active(const lawn_timer_t *timer);

/* Returns the deadline of the latest start. Within the callback,
 * `now - deadline` is how late the timer is. Returns LAWN_TIME_INFINITY for a
 * timer that never fires or was never started, or that was stopped or paused
 * since its start. A timer that was drained still has its deadline. A timer
 * that fired at deadline 0 gives LAWN_TIME_INFINITY too. */
LAWN_INLINE lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer);

/* Fires the timers whose deadline is <= now, and returns how many it fired. It
 * touches at most `budget` timers (0: no limit): it fires them, moves them, or
 * forgets paused ones. So every call is bounded, whatever happened before it.
 * If lawn_next() <= now afterwards, work is left: call again. Due timers fire
 * in any order, except that the timers of a queue fire in the order of their
 * starts. If `now` goes back, the latest time seen is used. This is the paper's
 * PerTickBookkeeping and TimerExpired.
 *
 * If timers become due faster than the budget allows, no timer waits for ever
 * behind others. Advances that leave work over do it in rounds. A round is the
 * work that is there when it begins, and what becomes due later is for the next
 * round. So with n timers running or paused and q queues (lawn/queue.h), a due
 * timer fires within 8 (n / budget + q) + 8 more advances. (If a callback
 * starts its timer in another queue meanwhile, that counts as one more
 * timer.) */
LAWN_INLINE unsigned lawn_advance(lawn_t *lawn, lawn_time_t now,
                                  unsigned budget);

/* Returns when to advance next. The time is never later than the earliest
 * deadline, and it may be earlier. Returns LAWN_TIME_INFINITY if no timer runs.
 * After an advance that left nothing to do, the time is in the future. After an
 * advance that left work, it is 0. */
LAWN_API lawn_time_t lawn_next(const lawn_t *lawn);

/* Looks for the earliest deadline, so that lawn_next() returns just that, for a
 * caller that is about to sleep until then. It looks at no more than
 * `max_touches` timers (0: no limit), and moves none. Returns true if it has
 * found it. If the limit was too low, it returns false, and lawn_next() may be
 * earlier: wake up at that time, advance, and call again. It also returns false
 * if a timer is due now, and in a callback.
 *
 * Do not call it in a loop without an advance: the result does not change. The
 * first start after it may make lawn_next() earlier again. */
LAWN_API bool lawn_settle(lawn_t *lawn, unsigned max_touches);

/* Returns the number of running timers. O(1). This function, lawn_for_each()
 * and lawn_drain() leave out the library's own timers: those inside of shared
 * timers (lawn/shared.h) and of timers in shared memory (lawn/shm.h). */
LAWN_API size_t lawn_count(const lawn_t *lawn);

/* Returns the latest time that the lawn was told. */
LAWN_INLINE lawn_time_t lawn_now(const lawn_t *lawn);

/* Calls `each` for every running timer, in no order. `each` must not change the
 * lawn or its timers. O(count + paused). */
LAWN_API void lawn_for_each(const lawn_t *lawn,
                            void (*each)(const lawn_timer_t *timer, void *arg),
                            void *arg);

/* Empties the lawn. Every running timer becomes idle and is handed to `each`,
 * with the latest time seen, in no order. If `each` is NULL, the timers are
 * handed to nobody. The lawn forgets paused timers. Returns the number of
 * timers that were handed over or, if `each` is NULL, would have been. A shared
 * timer is stopped, and may be started again. A start of one that is still in
 * its box is not in the lawn: call lawn_box_drain() before. A timer in shared
 * memory is stopped, too, if a pass of its owner has taken its start, and its
 * client gets no event.
 *
 * Timers that `each` starts stay in the lawn. A drain from inside `each` takes
 * all timers that are left, and those that `each` has started. The timers of
 * lawn/keyed.h are drained too: see lawn_keyed_identify().
 *
 * O(count + paused). Does not allocate. */
LAWN_API unsigned lawn_drain(lawn_t *lawn, lawn_expired_fn_t each);

/* Checks every invariant of the whole structure, for tests. Returns OK, or
 * CORRUPT if one is broken or `lawn` is NULL. O(count + paused). */
LAWN_API lawn_status_t lawn_check(const lawn_t *lawn);

/* Not for programs: the part that is not inline. Inline are stop, pause, the
 * re-arm to a deadline at or after the check, and the advance with nothing to
 * do. */
LAWN_API void lawn_timer_start_slow(lawn_t *lawn, lawn_timer_t *timer,
                                    lawn_time_t deadline);
LAWN_API bool lawn_timer_stop_slow(lawn_t *lawn, lawn_timer_t *timer);
LAWN_API bool lawn_timer_pause_slow(lawn_t *lawn, lawn_timer_t *timer);
LAWN_API unsigned lawn_advance_slow(lawn_t *lawn, unsigned budget);

/* Not for programs. Uses the carry of an addition. x86 adds the carry to a
 * count in two instructions, where a comparison takes four. */
#if defined(__GNUC__) && !defined(__clang__)
#define LAWN_IS_INFINITY(time)                                                 \
    __builtin_add_overflow_p((time), (lawn_time_t)1, (lawn_time_t)0)
#else
#define LAWN_IS_INFINITY(time) ((time) == LAWN_TIME_INFINITY)
#endif

/* Not for programs. Returns the later of the lawn's time and `now`, and keeps
 * it as the lawn's time. */
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

LAWN_INLINE lawn_time_t lawn_now(const lawn_t *lawn)
{
    return lawn->now;
}

LAWN_INLINE void lawn_timer_start_at(lawn_t *lawn, lawn_timer_t *timer,
                                     lawn_time_t now, lawn_time_t deadline)
{
    lawn_see(lawn, now);
    if (LAWN_LIKELY(timer->link.next && deadline >= timer->check &&
                    deadline < lawn->inline_limit)) {
        lawn->running += LAWN_IS_INFINITY(timer->deadline);
        timer->deadline = deadline;
        return;
    }
    lawn_timer_start_slow(lawn, timer, deadline);
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

/* True if the timer runs and the limit allows the inline path. An idle timer
 * has deadline INFINITY, or 0, which wraps around: neither passes. */
#define LAWN_IS_OPEN(lawn, timer) ((timer)->deadline - 1 < (lawn)->inline_limit)

LAWN_INLINE bool lawn_timer_stop(lawn_t *lawn, lawn_timer_t *timer)
{
    if (LAWN_UNLIKELY(!LAWN_IS_OPEN(lawn, timer))) {
        return lawn_timer_stop_slow(lawn, timer);
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
        return lawn_timer_pause_slow(lawn, timer);
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
               : lawn_advance_slow(lawn, budget);
}

LAWN_END_DECLS

#endif
