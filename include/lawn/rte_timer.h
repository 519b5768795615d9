/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_timer.h - the timers of DPDK, rte_timer, on top of a lawn per
 * lcore: the same calls, named lawn_rte_timer_...; lawn/rte_compat.h has them
 * by the names of DPDK, as they are called below. Where DPDK's headers are
 * found, lcores and ticks are EAL's. Elsewhere ticks are lawn_get_time()'s, and
 * there is one lcore, for one thread; a program with more defines
 * LAWN_RTE_MAX_LCORE, and LAWN_RTE_LCORE_ID() to tell which the caller is on.
 *
 * As in DPDK: any thread may reset and stop any timer, for any lcore. The
 * function runs on that lcore, in its rte_timer_manage(), never early and with
 * no lock held; until it returns, the timer is not pending, and other lcores'
 * calls for it, and for those that were due with it, give -1 (the _sync ones
 * wait, so they are not for such functions). It may reset or stop its own
 * timer, here or for another lcore, and free it once it has. Reset to 0, it
 * runs again in the next pass. PERIODICAL timers keep their phase; with 0 ticks
 * they are SINGLE.
 *
 * Not as in DPDK 22.11:
 *   - A reset, and what is due, costs O(1), not O(log n) of what is pending.
 *   - What is due in one pass runs in any order. There, in that of the times.
 *   - A function may also reset, stop and free others that are due in the same
 *     pass, and they do not run. There, these calls give -1, and the _sync ones
 *     never return.
 *   - Of the periods that a late pass has missed, one is made up for. There,
 *     all, one per pass: after a stall of 50 periods, 50 in a row.
 *   - Ticks that end beyond 2^64 are never. There, the sum wraps: at once.
 *   - LCORE_ID_ANY is the caller's lcore; a thread that is on none gets
 *     -EINVAL. There, another lcore each time.
 *   - There are the lcores of rte_timer_subsystem_init(); others, such as those
 *     of threads registered later, give -EINVAL. So does an lcore that does not
 *     exist, and anything before rte_timer_subsystem_init().
 *   - rte_timer_next_ticks() may tell less than it takes, never more. A pass
 *     inside a function does nothing.
 *   - rte_timer_subsystem_finalize() stops what is pending, so it must still
 *     exist. There it is forgotten as it is.
 *   - Each process has its own timers: those of more than one are started by
 *     rte_timer_alt_...(), see lawn/rte_timer_alt.h. A shared library shares
 *     those of the program if that exports lawn_rte_timers.
 *   - rte_timer_dump_stats() tells how many timers are pending in any build,
 *     and in files with RTE_LIBRTE_TIMER_DEBUG what DPDK's tells: the resets,
 *     stops and passes of those files are counted.
 *   - rte_timer_stop_all() is not here; `period`, `f` and `arg` are what is
 * left of the fields.
 *
 * An lcore takes a lawn, 22 KiB, a timer 88 bytes. Only the first and last call
 * allocate and free.
 */
#ifndef LAWN_RTE_TIMER_H
#define LAWN_RTE_TIMER_H

#include <lawn/timer.h>

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include) && !defined(LAWN_RTE_LCORE_ID)
#if __has_include(<rte_lcore.h>) && __has_include(<rte_cycles.h>)
#include <rte_config.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#define LAWN_RTE_LCORE_ID() rte_lcore_id()
#define LAWN_RTE_MAX_LCORE RTE_MAX_LCORE
#define LAWN_RTE_HAS_LCORE(id) (rte_eal_lcore_role(id) != ROLE_OFF)
#define LAWN_RTE_CYCLES() rte_get_timer_cycles()
#endif
#endif
#ifndef LAWN_RTE_LCORE_ID
#define LAWN_RTE_LCORE_ID() 0u
#endif
#ifndef LAWN_RTE_MAX_LCORE
#define LAWN_RTE_MAX_LCORE 1u
#endif
#ifndef LAWN_RTE_HAS_LCORE
#define LAWN_RTE_HAS_LCORE(id) true
#endif
#ifndef LAWN_RTE_CYCLES
#define LAWN_RTE_CYCLES() lawn_get_time()
#endif

LAWN_BEGIN_DECLS

#define LAWN_RTE_LCORE_ID_ANY UINT32_MAX

enum lawn_rte_timer_type { LAWN_RTE_TIMER_SINGLE, LAWN_RTE_TIMER_PERIODICAL };

typedef struct lawn_rte_timer lawn_rte_timer_t;
typedef void (*lawn_rte_timer_cb_t)(struct lawn_rte_timer *tim, void *arg);

/* Zero-filled is a valid stopped timer. */
struct lawn_rte_timer {
    union {
        lawn_timer_t timer; /* first: what expires is the whole */
        uint32_t slot;      /* of lawn/rte_timer_alt.h */
    };
    struct lawn_rte_timer *next; /* of those that are due */
    struct lawn_rte_timer *prev;
    uint64_t period; /* 0: single */
    lawn_rte_timer_cb_t f;
    void *arg;
    uint64_t status; /* a state, and << 2 the lcore that it is on */
};

/* Whoever has made a timer RUNNING or CONFIG by an atomic exchange has it for
 * himself. A PENDING one is in the lawn of its lcore, which has a lock. */
enum {
    LAWN_RTE_TIMER_STOP,
    LAWN_RTE_TIMER_PENDING,
    LAWN_RTE_TIMER_RUNNING, /* due, until its function returns; PENDING + 1 */
    LAWN_RTE_TIMER_CONFIG   /* being reset or stopped */
};

/* What was done on an lcore, where RTE_LIBRTE_TIMER_DEBUG is defined. */
enum { LAWN_RTE_RESETS, LAWN_RTE_STOPS, LAWN_RTE_MANAGES, LAWN_RTE_COUNTERS };

/* The fields from `running` on are the lcore's own. */
typedef struct lawn_rte_lcore {
    uint64_t next; /* when to look at the lawn; read without the lock */
    uint32_t lock;
    bool is_managing;
    bool is_touched; /* `running` was reset or stopped by its function */
    lawn_t *lawn;    /* NULL: no such lcore */
    lawn_rte_timer_t *running;
    lawn_rte_timer_t *first; /* due, and still to run */
    lawn_rte_timer_t *last;
    uint64_t counters[LAWN_RTE_COUNTERS]; /* Atomic */
} __attribute__((aligned(64))) lawn_rte_lcore_t;

typedef struct {
    lawn_rte_lcore_t *lcores; /* NULL: not initialised */
    uint32_t count;
} lawn_rte_timers_t;

/* Weak: one for all files that include this. */
LAWN_API __attribute__((weak)) lawn_rte_timers_t lawn_rte_timers;

/* The lcore; NULL when there is no such one. */
static inline lawn_rte_lcore_t *lawn_rte_find(uint32_t id)
{
    const lawn_rte_timers_t *const timers = &lawn_rte_timers;
    id = id == LAWN_RTE_LCORE_ID_ANY ? LAWN_RTE_LCORE_ID() : id;
    return timers->lcores && id < timers->count && timers->lcores[id].lawn
               ? &timers->lcores[id]
               : NULL;
}

static inline void lawn_rte_count(unsigned counter)
{
#ifdef RTE_LIBRTE_TIMER_DEBUG
    lawn_rte_lcore_t *const own = lawn_rte_find(LAWN_RTE_LCORE_ID_ANY);
    if (own) {
        __atomic_fetch_add(&own->counters[counter], 1, __ATOMIC_RELAXED);
    }
#else
    (void)counter;
#endif
}

/* Two lcores may share a processor. */
static inline void lawn_rte_spin(uint32_t *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

static inline void lawn_rte_lock(lawn_rte_lcore_t *lcore)
{
    lawn_rte_spin(&lcore->lock);
}

static inline void lawn_rte_unlock(lawn_rte_lcore_t *lcore)
{
    __atomic_store_n(&lcore->next, lawn_next(lcore->lawn), __ATOMIC_RELAXED);
    __atomic_store_n(&lcore->lock, 0, __ATOMIC_RELEASE);
}

static inline uint64_t lawn_rte_status(uint32_t state,
                                       const lawn_rte_lcore_t *lcore)
{
    return state | (uint64_t)(lcore - lawn_rte_timers.lcores) << 2;
}

static inline bool lawn_rte_change(lawn_rte_timer_t *tim, uint64_t *from,
                                   uint64_t to)
{
    return __atomic_compare_exchange_n(&tim->status, from, to, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void lawn_rte_set_status(lawn_rte_timer_t *tim, uint64_t status)
{
    __atomic_store_n(&tim->status, status, __ATOMIC_RELEASE);
}

/*
 * Set-up.
 */

static inline void lawn_rte_timer_drop(lawn_timer_t *timer, lawn_time_t now)
{
    (void)now;
    ((lawn_rte_timer_t *)timer)->status = LAWN_RTE_TIMER_STOP;
}

static inline void lawn_rte_timer_subsystem_finalize(void)
{
    lawn_rte_timers_t *const timers = &lawn_rte_timers;
    uint32_t i;
    for (i = 0; timers->lcores && i < timers->count; ++i) {
        if (timers->lcores[i].lawn) {
            lawn_drain(timers->lcores[i].lawn, lawn_rte_timer_drop);
            lawn_destroy(timers->lcores[i].lawn);
        }
    }
    free(timers->lcores);
    memset(timers, 0, sizeof *timers);
}

/* -EALREADY, which is no error, or -ENOMEM. Not by two threads at once. */
static inline int lawn_rte_timer_subsystem_init(void)
{
    lawn_rte_timers_t *const timers = &lawn_rte_timers;
    const size_t size = LAWN_RTE_MAX_LCORE * sizeof *timers->lcores;
    uint32_t i;
    if (timers->lcores) {
        return -EALREADY;
    }
    timers->lcores = (lawn_rte_lcore_t *)aligned_alloc(64, size);
    if (!timers->lcores) {
        return -ENOMEM;
    }
    memset(timers->lcores, 0, size);
    timers->count = LAWN_RTE_MAX_LCORE;
    for (i = 0; i < timers->count; ++i) {
        timers->lcores[i].next = LAWN_TIME_INFINITY;
        if (LAWN_RTE_HAS_LCORE(i) &&
            lawn_create(NULL, &timers->lcores[i].lawn) != LAWN_OK) {
            lawn_rte_timer_subsystem_finalize();
            return -ENOMEM;
        }
    }
    return 0;
}

static inline void lawn_rte_timer_init(lawn_rte_timer_t *tim)
{
    memset(tim, 0, sizeof *tim);
}

/*
 * What is due.
 */

static inline void lawn_rte_append(lawn_rte_lcore_t *lcore,
                                   lawn_rte_timer_t *tim)
{
    tim->next = NULL;
    tim->prev = lcore->last;
    *(lcore->last ? &lcore->last->next : &lcore->first) = tim;
    lcore->last = tim;
}

static inline void lawn_rte_remove(lawn_rte_lcore_t *lcore,
                                   lawn_rte_timer_t *tim)
{
    *(tim->prev ? &tim->prev->next : &lcore->first) = tim->next;
    *(tim->next ? &tim->next->prev : &lcore->last) = tim->prev;
}

/* With the lock. Whoever has the timer in CONFIG is about to stop it. */
static inline void lawn_rte_timer_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_rte_timer_t *const tim = (lawn_rte_timer_t *)timer;
    uint64_t status = __atomic_load_n(&tim->status, __ATOMIC_RELAXED);
    (void)now;
    if ((status & 3) == LAWN_RTE_TIMER_PENDING &&
        lawn_rte_change(tim, &status, status + 1)) {
        lawn_rte_append(&lawn_rte_timers.lcores[status >> 2], tim);
    }
}

/* With the lock of `lcore`, and the timer in the caller's hands. */
static inline void lawn_rte_timer_start(lawn_rte_lcore_t *lcore,
                                        lawn_rte_timer_t *tim, uint64_t now,
                                        uint64_t ticks)
{
    tim->timer.expired = lawn_rte_timer_expired;
    lawn_timer_start(lcore->lawn, &tim->timer, now, ticks);
    lawn_rte_set_status(tim, lawn_rte_status(LAWN_RTE_TIMER_PENDING, lcore));
}

/* Time has gone on since the timer was due, perhaps for more than a period. */
static inline void lawn_rte_timer_repeat(lawn_rte_lcore_t *lcore,
                                         lawn_rte_timer_t *tim)
{
    uint64_t now, late;
    lawn_rte_count(LAWN_RTE_RESETS);
    lawn_rte_lock(lcore);
    now = lawn_now(lcore->lawn);
    late = now - lawn_timer_deadline(&tim->timer);
    lawn_rte_timer_start(lcore, tim, now, tim->period - late % tim->period);
    lawn_rte_unlock(lcore);
}

static inline void lawn_rte_timer_run(lawn_rte_lcore_t *lcore,
                                      lawn_rte_timer_t *tim)
{
    lcore->running = tim;
    lcore->is_touched = false;
    tim->f(tim, tim->arg);
    lcore->running = NULL;
    if (lcore->is_touched) {
        return;
    }
    if (tim->period) {
        lawn_rte_timer_repeat(lcore, tim);
    } else {
        lawn_rte_set_status(tim, LAWN_RTE_TIMER_STOP);
    }
}

/* rte_timer_manage() at `now`; DPDK has no such call. A `now` that goes back is
 * taken as the latest seen. */
static inline int lawn_rte_timer_manage_at(uint64_t now)
{
    lawn_rte_lcore_t *const lcore = lawn_rte_find(LAWN_RTE_LCORE_ID_ANY);
    lawn_rte_timer_t *tim;
    if (LAWN_UNLIKELY(!lcore)) {
        return -EINVAL;
    }
    lawn_rte_count(LAWN_RTE_MANAGES);
    if (LAWN_LIKELY(now < __atomic_load_n(&lcore->next, __ATOMIC_RELAXED)) ||
        lcore->is_managing) {
        return 0;
    }
    lcore->is_managing = true;
    lawn_rte_lock(lcore);
    lawn_advance(lcore->lawn, now, 0);
    lawn_rte_unlock(lcore);
    while ((tim = lcore->first) != NULL) {
        lawn_rte_remove(lcore, tim);
        lawn_rte_timer_run(lcore, tim);
    }
    lcore->is_managing = false;
    return 0;
}

static inline int lawn_rte_timer_manage(void)
{
    return lawn_rte_timer_manage_at(LAWN_RTE_CYCLES());
}

/* Ticks from `now` until there may be something to do; -ENOENT: nothing is
 * pending. */
static inline int64_t lawn_rte_timer_next_ticks_at(uint64_t now)
{
    const lawn_rte_lcore_t *const lcore = lawn_rte_find(LAWN_RTE_LCORE_ID_ANY);
    uint64_t next;
    if (!lcore) {
        return -EINVAL;
    }
    next = __atomic_load_n(&lcore->next, __ATOMIC_RELAXED);
    if (next == LAWN_TIME_INFINITY) {
        return -ENOENT;
    }
    next = next > now ? next - now : 0;
    return next < INT64_MAX ? (int64_t)next : INT64_MAX;
}

static inline int64_t lawn_rte_timer_next_ticks(void)
{
    return lawn_rte_timer_next_ticks_at(LAWN_RTE_CYCLES());
}

/*
 * Timers.
 */

/* Takes a timer for the caller, out of what is due on its lcore, and tells what
 * it was. False: another lcore has it. */
static inline bool lawn_rte_timer_take(lawn_rte_timer_t *tim, uint64_t *was_p)
{
    lawn_rte_lcore_t *const own = lawn_rte_find(LAWN_RTE_LCORE_ID_ANY);
    uint64_t was = __atomic_load_n(&tim->status, __ATOMIC_RELAXED);
    do {
        if ((was & 3) == LAWN_RTE_TIMER_CONFIG ||
            ((was & 3) == LAWN_RTE_TIMER_RUNNING &&
             (!own || was != lawn_rte_status(LAWN_RTE_TIMER_RUNNING, own)))) {
            return false;
        }
    } while (!lawn_rte_change(tim, &was, LAWN_RTE_TIMER_CONFIG));
    if ((was & 3) == LAWN_RTE_TIMER_RUNNING) {
        if (tim == own->running) {
            own->is_touched = true;
        } else {
            lawn_rte_remove(own, tim);
        }
    }
    *was_p = was;
    return true;
}

/* Takes a timer that was PENDING out of its lawn. */
static inline void lawn_rte_timer_leave(lawn_rte_timer_t *tim, uint64_t was)
{
    if ((was & 3) == LAWN_RTE_TIMER_PENDING) {
        lawn_rte_lcore_t *const lcore = &lawn_rte_timers.lcores[was >> 2];
        lawn_rte_lock(lcore);
        lawn_timer_stop(lcore->lawn, &tim->timer);
        lawn_rte_unlock(lcore);
    }
}

/* rte_timer_reset(), with `ticks` from `now`; DPDK has no such call. */
static inline int lawn_rte_timer_reset_at(lawn_rte_timer_t *tim, uint64_t now,
                                          uint64_t ticks,
                                          enum lawn_rte_timer_type type,
                                          unsigned tim_lcore,
                                          lawn_rte_timer_cb_t fct, void *arg)
{
    lawn_rte_lcore_t *const lcore = lawn_rte_find(tim_lcore);
    uint64_t was;
    if (LAWN_UNLIKELY(!lcore)) {
        return -EINVAL;
    }
    if (LAWN_UNLIKELY(!lawn_rte_timer_take(tim, &was))) {
        return -1;
    }
    lawn_rte_count(LAWN_RTE_RESETS);
    if (was != lawn_rte_status(LAWN_RTE_TIMER_PENDING, lcore)) {
        lawn_rte_timer_leave(tim, was);
    }
    tim->period = type == LAWN_RTE_TIMER_PERIODICAL ? ticks : 0;
    tim->f = fct;
    tim->arg = arg;
    lawn_rte_lock(lcore);
    lawn_rte_timer_start(lcore, tim, now, ticks);
    lawn_rte_unlock(lcore);
    return 0;
}

/* 0; -1 when another lcore has the timer: try again; -EINVAL for no lcore. */
static inline int lawn_rte_timer_reset(lawn_rte_timer_t *tim, uint64_t ticks,
                                       enum lawn_rte_timer_type type,
                                       unsigned tim_lcore,
                                       lawn_rte_timer_cb_t fct, void *arg)
{
    return lawn_rte_timer_reset_at(tim, LAWN_RTE_CYCLES(), ticks, type,
                                   tim_lcore, fct, arg);
}

static inline void lawn_rte_timer_reset_sync(lawn_rte_timer_t *tim,
                                             uint64_t ticks,
                                             enum lawn_rte_timer_type type,
                                             unsigned tim_lcore,
                                             lawn_rte_timer_cb_t fct, void *arg)
{
    while (lawn_rte_timer_reset(tim, ticks, type, tim_lcore, fct, arg) == -1) {
        sched_yield();
    }
}

/* 0, also when it was stopped; its memory may be freed. -1 as reset. */
static inline int lawn_rte_timer_stop(lawn_rte_timer_t *tim)
{
    uint64_t was;
    if (!lawn_rte_timers.lcores) {
        return -EINVAL;
    }
    if (!lawn_rte_timer_take(tim, &was)) {
        return -1;
    }
    lawn_rte_count(LAWN_RTE_STOPS);
    lawn_rte_timer_leave(tim, was);
    lawn_rte_set_status(tim, LAWN_RTE_TIMER_STOP);
    return 0;
}

static inline void lawn_rte_timer_stop_sync(lawn_rte_timer_t *tim)
{
    while (lawn_rte_timer_stop(tim) == -1) {
        sched_yield();
    }
}

static inline int lawn_rte_timer_pending(lawn_rte_timer_t *tim)
{
    return (__atomic_load_n(&tim->status, __ATOMIC_RELAXED) & 3) ==
           LAWN_RTE_TIMER_PENDING;
}

/*
 * What is going on, of all lcores together. 0, or -EINVAL before
 * rte_timer_subsystem_init().
 */

static inline uint64_t lawn_rte_timer_sum(unsigned counter)
{
    const lawn_rte_timers_t *const timers = &lawn_rte_timers;
    uint64_t sum = 0;
    uint32_t i;
    for (i = 0; i < timers->count; ++i) {
        sum += __atomic_load_n(&timers->lcores[i].counters[counter],
                               __ATOMIC_RELAXED);
    }
    return sum;
}

static inline int lawn_rte_timer_dump_stats(FILE *f)
{
    const lawn_rte_timers_t *const timers = &lawn_rte_timers;
    uint64_t pending = 0;
    uint32_t i;
    if (!timers->lcores) {
        return -EINVAL;
    }
    for (i = 0; i < timers->count; ++i) {
        lawn_rte_lcore_t *const lcore = &timers->lcores[i];
        if (lcore->lawn) {
            lawn_rte_lock(lcore);
            pending += lawn_count(lcore->lawn);
            lawn_rte_unlock(lcore);
        }
    }
    fprintf(f, "Timer statistics:\n");
#ifdef RTE_LIBRTE_TIMER_DEBUG
    fprintf(f, "  reset = %" PRIu64 "\n", lawn_rte_timer_sum(LAWN_RTE_RESETS));
    fprintf(f, "  stop = %" PRIu64 "\n", lawn_rte_timer_sum(LAWN_RTE_STOPS));
    fprintf(f, "  manage = %" PRIu64 "\n",
            lawn_rte_timer_sum(LAWN_RTE_MANAGES));
#endif
    fprintf(f, "  pending = %" PRIu64 "\n", pending);
    return 0;
}

LAWN_END_DECLS

#endif
