/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/timer.h - the Lawn: one thread's timers, in first-in first-out queues
 * keyed by TTL.
 *
 * Timers with one TTL expire in the order in which they were started: a queue
 * of them is sorted without sorting, and only its head can be due. That is the
 * Lawn (A. Lev-Libfeld, "Lawn: an Unbound Low Latency Timer Data Structure for
 * Large Scale, High Throughput Systems", 2019). This one has 1024 queues for
 * single TTLs, and for those that find none free, one queue for each *class* of
 * TTLs, 16 classes to the octave as in an HDR histogram; so a million distinct
 * TTLs are a few hundred queues:
 *
 *     bounds (the least `check` of each queue, a tournament of minima)
 *        |
 *        +- single, TTL 40,000,000               ->  A . B . C . D  (FIFO)
 *        +- single, TTL 600,000,000              ->  E . F
 *        +- ...  1024 singles, by a hash of the TTL
 *        +- class 352, TTL [2^25, +2^21)         ->  G . H . I
 *        +- ...  976 classes, TTL 0 to 2^64-1
 *        |
 *     near (a tree by deadline): the next thousand or so of those that came up
 *
 * A timer's place in its queue is a *check*, a time no later than its
 * deadline, not a promise to fire then. When the check has come:
 *   - the deadline has come too: fire;
 *   - it has not (the TTL is above its class's floor, or the timer was
 *     re-armed meanwhile): file what remains under its own, finer class, or in
 *     the tree.
 * So re-arming to a later deadline is a store, however often it is done, and
 * the timer moves once when its old check comes. Each move leaves less than
 * 1/12 of the time; two or three end in the tree. In a single TTL's queue the
 * check is the deadline itself: the Lawn as published, no moves.
 *
 * Time is whatever the caller says: `now` and `ttl` are ticks of any clock
 * that does not run backwards (see lawn/time.h). The structure never reads
 * one.
 *
 * Threads: a lawn and its timers belong to one thread at a time; there are no
 * locks. Different lawns are independent. A timer that runs or is paused is its
 * lawn's: another's functions must not be called for it (an assertion in debug
 * builds, where a short look shows it; release builds cannot tell).
 *
 * Costs: start, re-arm, stop and pause are O(1) and never allocate; so is the
 * expiry of a timer that was not re-armed, O(1) amortised. One that was, and is
 * found overdue after a stall, has to be put in order: O(log m) among m such. A
 * timer takes 40 bytes, a lawn 221 KiB at creation and nothing after.
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
    lawn_time_t now;  /* the latest time seen */
    lawn_time_t next; /* nothing to do before this */
    size_t running;
    uint64_t turn;  /* of the latest start, see lawn_timer.place */
    void *observer; /* NULL, or told of every call, none of which is inline */
};
typedef struct lawn_timer lawn_timer_t;

/* Called when `timer` has expired: its deadline is <= `now`, the time of the
 * advance. The timer is idle; the callback may start, stop, pause or free any
 * timer, this one and others due in the same pass included. It may not advance
 * or destroy the lawn it is called from (an assertion in debug builds; ignored
 * in release builds). */
typedef void (*lawn_expired_fn_t)(lawn_timer_t *timer, lawn_time_t now);

typedef struct lawn_link {
    struct lawn_link *next; /* in a queue; left in the tree */
    struct lawn_link *prev; /* in a queue; right in the tree */
} lawn_link_t;

/* Embed it in your own object; the memory is yours, and must not move or be
 * freed while the timer runs or is paused. Zero-filled is a valid idle timer
 * without a callback. */
struct lawn_timer {
    lawn_link_t link;
    lawn_time_t deadline;
    uint64_t place; /* see below */
    lawn_expired_fn_t expired;
};

/* The bits of `place`, lowest first. A timer in a queue is `native` where its
 * latest start put it, and a `stray` once it was re-armed there or moved. The
 * turn numbers the starts of one `now`, up to two million: only among those can
 * timers of one TTL have equal deadlines. */
enum {
    LAWN_PLACE_WHERE_BITS = 3,  /* 0: idle */
    LAWN_PLACE_QUEUE_BITS = 11, /* which one */
    LAWN_PLACE_CHECK_BITS = 29, /* when to look at it, within the queue */
    LAWN_PLACE_TURN_SHIFT = 43  /* 21 bits */
};
enum { LAWN_PLACE_PAUSED = 1, LAWN_PLACE_STRAY = 2 };
#define LAWN_PLACE_WHERE_MASK ((UINT64_C(1) << LAWN_PLACE_WHERE_BITS) - 1)
#define LAWN_PLACE_TURN_ONE (UINT64_C(1) << LAWN_PLACE_TURN_SHIFT)

/* Zero-filled is the default of everything. */
typedef struct {
    lawn_allocator_t allocator;
    /* Most timers that one advance may move without firing them, so that a
     * pass after a long stall stays short; 0: as many as it takes. When an
     * advance stops here it may return less than its budget although timers
     * are still due; lawn_next() is then <= now. */
    unsigned max_moves;
} lawn_params_t;

/* Makes an empty lawn. `params` may be NULL and need not outlive the call.
 * NO_MEMORY, or INVALID_PARAM when `lawn_p` is NULL or only one of alloc and
 * release is set; *lawn_p is then left alone. */
LAWN_API lawn_status_t lawn_create(const lawn_params_t *params,
                                   lawn_t **lawn_p);

/* Frees the lawn. Timers that still run or are paused become idle, their
 * callbacks are not called, and their memory is not touched afterwards. NULL
 * does nothing. */
LAWN_API void lawn_destroy(lawn_t *lawn);

/* Makes `timer` idle with callback `expired` (NULL: expire silently). Not for
 * a timer that runs or is paused. */
LAWN_API void lawn_timer_init(lawn_timer_t *timer, lawn_expired_fn_t expired);

/* Starts `timer`, or re-arms it when it runs: its deadline is now + ttl
 * exactly, LAWN_TIME_INFINITY (never) when that overflows. A ttl of 0 is due
 * at the next advance, never within the one that is running, so a callback
 * that re-arms itself with 0 cannot spin. A `now` before the latest that this
 * lawn has seen is taken as that one. The paper's StartTimer. */
LAWN_INLINE void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer,
                                  lawn_time_t now, lawn_time_t ttl);

/* Stops `timer` and forgets it: its memory may be freed at once. True if it
 * was running; its callback will then not be called for that start. The
 * paper's DeleteTimer. */
LAWN_API bool lawn_timer_stop(lawn_t *lawn, lawn_timer_t *timer);

/* Stops a timer that will soon be started again: same answer and promise as
 * stop, at the cost of one store. The lawn may still hold the timer, so stop
 * it before its memory goes. */
LAWN_INLINE bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer);

/* True from start until stop, pause or expiry. */
LAWN_API bool lawn_timer_is_active(const lawn_timer_t *timer);

/* The deadline of the latest start, also within the callback, where
 * `now - deadline` is how late it is; LAWN_TIME_INFINITY for a timer that was
 * never started, or was stopped or paused since. */
LAWN_API lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer);

/* Fires every timer whose deadline is <= now, at most `budget` of them (0: no
 * limit), and returns how many it fired: `budget` means call again. Timers
 * with one TTL fire in the order in which they were started, others in any. A
 * `now` that goes back is taken as the latest seen. The paper's
 * PerTickBookkeeping and TimerExpired. */
LAWN_INLINE unsigned lawn_advance(lawn_t *lawn, lawn_time_t now,
                                  unsigned budget);

/* When to advance next: never later than the earliest deadline, possibly
 * earlier; LAWN_TIME_INFINITY when no timer runs. After an advance that fired
 * all that was due it lies in the future. */
LAWN_API lawn_time_t lawn_next(const lawn_t *lawn);

/* Makes lawn_next() the earliest deadline itself, for a caller that is about to
 * sleep until then: timers that were re-armed or paused, or share a class, are
 * moved out of the way, at most `max_moves` of them (0: as many as it takes).
 * True when that is done; false when there is more to do: advance when
 * lawn_next() has come, else call again. Not from a callback (false). */
LAWN_API bool lawn_settle(lawn_t *lawn, unsigned max_moves);

/* Timers that are running. */
LAWN_API size_t lawn_count(const lawn_t *lawn);

/* Empties the lawn: every running timer becomes idle and is handed to `each`
 * (NULL: to nobody) in no order, with the latest time seen; paused timers are
 * let go. Returns how many were handed over. What `each` starts anew stays. */
LAWN_API unsigned lawn_drain(lawn_t *lawn, lawn_expired_fn_t each);

/* Walks the whole structure and every invariant in it, O(count); for tests.
 * LAWN_ERR_CORRUPT when one is broken. */
LAWN_API lawn_status_t lawn_check(const lawn_t *lawn);

/* What is inline: the re-arm to no earlier a deadline, the pause of a timer
 * that was re-armed, the advance with nothing to do. The rest is behind these,
 * which are not for programs. */
LAWN_API void lawn_timer_start_rest(lawn_t *lawn, lawn_timer_t *timer,
                                    lawn_time_t ttl);
LAWN_API bool lawn_timer_pause_rest(lawn_t *lawn, lawn_timer_t *timer);
LAWN_API unsigned lawn_advance_rest(lawn_t *lawn, unsigned budget);

LAWN_INLINE void lawn_see(lawn_t *lawn, lawn_time_t now)
{
    if (now > lawn->now) {
        lawn->now = now;
        lawn->turn = 0;
    }
}

LAWN_INLINE void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer,
                                  lawn_time_t now, lawn_time_t ttl)
{
    const uint64_t where = timer->place & LAWN_PLACE_WHERE_MASK;
    lawn_time_t deadline;
    uint64_t turn;
    lawn_see(lawn, now);
    deadline = lawn->now + ttl;
    turn = lawn->turn + LAWN_PLACE_TURN_ONE;
    /* Not with ttl 0 or an overflow, of the deadline or of the turn. */
    if (LAWN_LIKELY((where == LAWN_PLACE_STRAY || where == LAWN_PLACE_PAUSED) &&
                    deadline >= timer->deadline && deadline > lawn->now &&
                    turn != 0 && !lawn->observer)) {
        lawn->turn = turn;
        lawn->running += where == LAWN_PLACE_PAUSED;
        timer->deadline = deadline;
        timer->place =
            (timer->place & (LAWN_PLACE_TURN_ONE - 1 - LAWN_PLACE_WHERE_MASK)) |
            turn | LAWN_PLACE_STRAY;
        return;
    }
    lawn_timer_start_rest(lawn, timer, ttl);
}

LAWN_INLINE bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer)
{
    if ((timer->place & LAWN_PLACE_WHERE_MASK) != LAWN_PLACE_STRAY ||
        LAWN_UNLIKELY(lawn->observer != NULL)) {
        return lawn_timer_pause_rest(lawn, timer);
    }
    lawn->running--;
    timer->place ^= LAWN_PLACE_STRAY ^ LAWN_PLACE_PAUSED;
    return true;
}

LAWN_INLINE unsigned lawn_advance(lawn_t *lawn, lawn_time_t now,
                                  unsigned budget)
{
    lawn_see(lawn, now);
    return LAWN_LIKELY(lawn->now < lawn->next)
               ? 0
               : lawn_advance_rest(lawn, budget);
}

LAWN_END_DECLS

#endif
