/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_timer_inline.h - the functions of lawn/rte_timer.h, which includes
 * it. Nothing else should.
 *
 * A thread that makes a timer RUNNING or CONFIG by an atomic exchange has it
 * alone. A PENDING timer is in the lawn of its lcore, which has a lock.
 */
#ifndef LAWN_RTE_TIMER_INLINE_H
#define LAWN_RTE_TIMER_INLINE_H

#ifndef LAWN_RTE_TIMER_H
#error "include lawn/rte_timer.h"
#endif

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

LAWN_BEGIN_DECLS

enum {
    LAWN_RTE_TIMER_STOP,
    LAWN_RTE_TIMER_PENDING,
    LAWN_RTE_TIMER_RUNNING, /* due, until its function returns; PENDING + 1 */
    LAWN_RTE_TIMER_CONFIG   /* being reset or stopped */
};

/* Counted on each lcore if RTE_LIBRTE_TIMER_DEBUG is defined. */
enum { LAWN_RTE_RESETS, LAWN_RTE_STOPS, LAWN_RTE_MANAGES, LAWN_RTE_COUNTERS };

/* Only the lcore itself uses the fields from `running` to `last`. */
typedef struct lawn_rte_lcore {
    uint64_t next; /* when to advance the lawn; read without the lock */
    uint32_t lock;
    bool is_managing;
    bool is_touched; /* `running` was reset or stopped by its function */
    void *memory;    /* of the lawn */
    lawn_t *lawn;    /* NULL: no such lcore */
    lawn_rte_timer_t *running;
    lawn_rte_timer_t *first; /* due, and still to run */
    lawn_rte_timer_t *last;
    uint64_t counters[LAWN_RTE_COUNTERS]; /* Atomic */
} __attribute__((aligned(64))) lawn_rte_lcore_t;

typedef struct {
    lawn_rte_lcore_t *lcores; /* NULL: not initialised */
    uint32_t count;
    uint32_t generation; /* how often it was finalised */
} lawn_rte_timers_t;

/* Weak: all files that include this header share it. */
LAWN_API __attribute__((weak)) lawn_rte_timers_t lawn_rte_timers;

/* The lcore with that id; NULL if there is none. */
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

/* It yields because two lcores may share a processor. */
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

/* What is due as of the latest time seen is due at any time: the clock may have
 * gone back since. */
static inline void lawn_rte_unlock(lawn_rte_lcore_t *lcore)
{
    const lawn_time_t next = lawn_next(lcore->lawn);
    __atomic_store_n(&lcore->next, next > lawn_now(lcore->lawn) ? next : 0,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&lcore->lock, 0, __ATOMIC_RELEASE);
}

/* The state, << 2 the number of the lcore, << 32 the generation. */
static inline uint64_t lawn_rte_status(uint32_t state,
                                       const lawn_rte_lcore_t *lcore)
{
    return state | (uint64_t)(lcore - lawn_rte_timers.lcores) << 2 |
           (uint64_t)lawn_rte_timers.generation << 32;
}

static inline lawn_rte_lcore_t *lawn_rte_lcore_of(uint64_t status)
{
    return &lawn_rte_timers.lcores[(uint32_t)status >> 2];
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

static inline void *lawn_rte_alloc(void *arg, size_t size)
{
    return ((lawn_rte_lcore_t *)arg)->memory = malloc(size);
}

static inline void lawn_rte_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static inline lawn_status_t lawn_rte_create(lawn_rte_lcore_t *lcore)
{
    lawn_params_t params;
    memset(&params, 0, sizeof params);
    params.allocator.alloc = lawn_rte_alloc;
    params.allocator.release = lawn_rte_release;
    params.allocator.arg = lcore;
    return lawn_create(&params, &lcore->lawn);
}

/* Without lawn_destroy(), which looks at the timers that are still pending. As
 * in DPDK, their memory may be gone. */
static inline void lawn_rte_timer_subsystem_finalize(void)
{
    lawn_rte_timers_t *const timers = &lawn_rte_timers;
    uint32_t i;
    if (!timers->lcores) {
        return;
    }
    for (i = 0; i < timers->count; ++i) {
        lawn_rte_release(NULL, timers->lcores[i].memory);
    }
    free(timers->lcores);
    timers->lcores = NULL;
    timers->count = 0;
    ++timers->generation;
}

static inline int lawn_rte_timer_subsystem_init(void)
{
    lawn_rte_timers_t *const timers = &lawn_rte_timers;
    const size_t size = LAWN_RTE_MAX_LCORE * sizeof *timers->lcores;
    uint32_t i;
    if (timers->lcores) {
        return -EALREADY;
    }
    /* Not aligned_alloc(), which C99 does not have. */
    timers->lcores = (lawn_rte_lcore_t *)memalign(64, size);
    if (!timers->lcores) {
        return -ENOMEM;
    }
    memset(timers->lcores, 0, size);
    timers->count = LAWN_RTE_MAX_LCORE;
    for (i = 0; i < timers->count; ++i) {
        timers->lcores[i].next = LAWN_TIME_INFINITY;
        if (LAWN_RTE_HAS_LCORE(i) &&
            lawn_rte_create(&timers->lcores[i]) != LAWN_OK) {
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
 * Due timers.
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

/* Under the lock. If the timer is CONFIG, another thread will stop it. */
static inline void lawn_rte_timer_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_rte_timer_t *const tim = (lawn_rte_timer_t *)timer;
    uint64_t status = __atomic_load_n(&tim->status, __ATOMIC_RELAXED);
    (void)now;
    if ((status & 3) == LAWN_RTE_TIMER_PENDING &&
        lawn_rte_change(tim, &status, status + 1)) {
        lawn_rte_append(lawn_rte_lcore_of(status), tim);
    }
}

/* Under the lock of `lcore`, for a timer that the caller has alone. */
static inline void lawn_rte_timer_start(lawn_rte_lcore_t *lcore,
                                        lawn_rte_timer_t *tim, uint64_t now,
                                        uint64_t ticks)
{
    tim->timer.expired = lawn_rte_timer_expired;
    lawn_timer_start(lcore->lawn, &tim->timer, now, ticks);
    lawn_rte_set_status(tim, lawn_rte_status(LAWN_RTE_TIMER_PENDING, lcore));
}

/* Starts a PERIODICAL timer again. It may be late by more than a period. */
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

/* With no timer, the clock would take longer than all the rest. */
static inline int lawn_rte_timer_manage(void)
{
    const lawn_rte_lcore_t *const lcore = lawn_rte_find(LAWN_RTE_LCORE_ID_ANY);
    const bool is_empty =
        lcore &&
        __atomic_load_n(&lcore->next, __ATOMIC_RELAXED) == LAWN_TIME_INFINITY;
    return lawn_rte_timer_manage_at(is_empty ? 0 : LAWN_RTE_CYCLES());
}

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

/* Takes a timer for the caller, also from the due timers of the caller's lcore.
 * Stores its status before. Returns false if another lcore has the timer. */
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

/* Takes a timer that was PENDING out of its lawn, which may be gone. */
static inline void lawn_rte_timer_leave(lawn_rte_timer_t *tim, uint64_t was)
{
    lawn_rte_lcore_t *lcore;
    if ((was & 3) != LAWN_RTE_TIMER_PENDING) {
        return;
    }
    if (LAWN_UNLIKELY(was >> 32 != lawn_rte_timers.generation)) {
        memset(&tim->timer, 0, sizeof tim->timer);
        return;
    }
    lcore = lawn_rte_lcore_of(was);
    lawn_rte_lock(lcore);
    lawn_timer_stop(lcore->lawn, &tim->timer);
    lawn_rte_unlock(lcore);
}

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
 * Statistics.
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
