/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_timer_alt_inline.h - the functions of lawn/rte_timer_alt.h, which
 * includes it. Nothing else should.
 *
 * The status of a timer says who has it. Whoever changes the status has the
 * timer alone.
 */
#ifndef LAWN_RTE_TIMER_ALT_INLINE_H
#define LAWN_RTE_TIMER_ALT_INLINE_H

#ifndef LAWN_RTE_TIMER_ALT_H
#error "include lawn/rte_timer_alt.h"
#endif

#include <lawn/rte_timer_alt_lcore_inline.h>

LAWN_BEGIN_DECLS

/*
 * In the process that manages.
 */

/* For rte_timer_stop_all(), whose function may give the timer's memory back. */
static inline lawn_time_t lawn_rte_alt_stopped(lawn_rte_alt_t *alt,
                                               lawn_rte_timer_t *tim)
{
    lawn_rte_set_status(tim, LAWN_RTE_TIMER_STOP);
    if (alt->stopped) {
        alt->stopped(tim, alt->stopped_arg);
    }
    return LAWN_TIME_INFINITY;
}

/* The caller has won the timer from all threads that might stop it. So the
 * status is PENDING, and no other thread changes it before the caller does. */
static inline lawn_time_t lawn_rte_alt_expired(void *arg, lawn_shm_timer_t slot,
                                               uint64_t cookie,
                                               lawn_time_t deadline,
                                               lawn_time_t now)
{
    lawn_rte_alt_t *const alt = (lawn_rte_alt_t *)arg;
    lawn_rte_timer_t *const tim = (lawn_rte_timer_t *)(uintptr_t)cookie;
    const uint64_t pending = __atomic_load_n(&tim->status, __ATOMIC_ACQUIRE);
    uint64_t left;
    /* The start has stored the slot last, behind all else of the timer. */
    (void)__atomic_load_n(&tim->slot, __ATOMIC_ACQUIRE);
    (void)slot;
    if (LAWN_UNLIKELY(alt->is_stopping)) {
        return lawn_rte_alt_stopped(alt, tim);
    }
    lawn_rte_set_status(tim, lawn_rte_alt_status(LAWN_RTE_TIMER_RUNNING,
                                                 lawn_rte_alt_lcore_of(pending),
                                                 lawn_shm_owner_id(alt->shm)));
    alt->is_touched = false;
    __atomic_store_n(&alt->running, tim, __ATOMIC_RELEASE);
    alt->f(tim);
    __atomic_store_n(&alt->running, (lawn_rte_timer_t *)NULL, __ATOMIC_RELEASE);
    if (alt->is_touched) {
        return LAWN_TIME_INFINITY;
    }
    if (tim->period == 0) {
        lawn_rte_set_status(tim, LAWN_RTE_TIMER_STOP);
        return LAWN_TIME_INFINITY;
    }
    left = tim->period - (now - deadline) % tim->period;
    lawn_rte_set_status(tim, pending);
    /* INFINITY would give up the slot. The tick before never comes, either. */
    return left < LAWN_TIME_INFINITY - now ? now + left
                                           : LAWN_TIME_INFINITY - 1;
}

/* The highest number may be no lcore's: DPDK's event timer adapter has the
 * timers there of all threads without one. */
static inline bool lawn_rte_alt_has(uint32_t lcore)
{
    return lcore == LAWN_RTE_MAX_LCORE - 1 || LAWN_RTE_HAS_LCORE(lcore);
}

/* Does nothing if there is no such lcore. */
static inline lawn_status_t lawn_rte_alt_create(lawn_rte_alt_t *alt,
                                                uint32_t id, uint32_t lcore)
{
    lawn_engine_params_t engine;
    lawn_shm_params_t params;
    char path[LAWN_RTE_ALT_PATH];
    lawn_status_t status;
    if (!lawn_rte_alt_has(lcore)) {
        return LAWN_OK;
    }
    if (!lawn_rte_alt_name(path, id, lcore)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    memset(&engine, 0, sizeof engine);
    memset(&params, 0, sizeof params);
    engine.clock = lawn_rte_alt_clock;
    engine.budget = UINT32_MAX;
    params.timers = LAWN_RTE_ALT_TIMERS;
    params.clients = LAWN_RTE_ALT_CLIENTS - 1;
    params.expired = lawn_rte_alt_expired;
    params.arg = alt;
    status = lawn_engine_create(&engine, &alt->engine);
    if (status == LAWN_OK) {
        status = lawn_shm_create(alt->engine, path, &params, &alt->shm);
    }
    return status;
}

static inline void lawn_rte_alt_destroy(lawn_rte_alt_t *alt)
{
    lawn_rte_spin(&alt->lock);
    lawn_rte_alt_leave(alt);
    /* Nobody ends a pass that was under way in the parent of a fork. */
    if (!alt->is_inherited || !alt->is_managed) {
        lawn_shm_destroy(alt->shm);
        lawn_engine_destroy(alt->engine);
    }
    alt->shm = NULL;
    alt->engine = NULL;
    lawn_rte_alt_unlock(alt);
}

static inline void lawn_rte_alt_free(lawn_rte_alt_t *all)
{
    uint32_t i;
    for (i = 0; i < LAWN_RTE_MAX_LCORE; ++i) {
        lawn_rte_alt_destroy(&all[i]);
    }
    free(all);
}

static inline int lawn_rte_timer_data_dealloc(uint32_t id)
{
    lawn_rte_alt_t *const all =
        id < LAWN_RTE_ALT_DATAS ? lawn_rte_alts[id] : NULL;
    if (!all) {
        return -EINVAL;
    }
    lawn_rte_alts[id] = NULL;
    lawn_rte_alt_free(all);
    return 0;
}

/* Whether this process manages the data. */
static inline bool lawn_rte_alt_is_own(const lawn_rte_alt_t *all)
{
    uint32_t i = 0;
    while (i < LAWN_RTE_MAX_LCORE && !all[i].engine) {
        ++i;
    }
    return i < LAWN_RTE_MAX_LCORE && !all[i].is_inherited;
}

/* The table is nobody else's until it is whole: other threads may use the
 * number meanwhile, as that of another process. */
static inline int lawn_rte_timer_data_alloc(uint32_t *id_ptr)
{
    uint32_t id, i;
    for (id = 0; id < LAWN_RTE_ALT_DATAS; ++id) {
        lawn_status_t status = LAWN_OK;
        lawn_rte_alt_t *all;
        if (__atomic_load_n(&lawn_rte_alts[id], __ATOMIC_ACQUIRE)) {
            continue;
        }
        all = lawn_rte_alt_new();
        if (!all) {
            return -ENOMEM;
        }
        for (i = 0; i < LAWN_RTE_MAX_LCORE && status == LAWN_OK; ++i) {
            status = lawn_rte_alt_create(&all[i], id, i);
        }
        if (status == LAWN_OK && lawn_rte_alt_publish(id, all) == all) {
            if (id_ptr) {
                *id_ptr = id;
            }
            return 0;
        }
        lawn_rte_alt_free(all);
        if (status != LAWN_OK && status != LAWN_ERR_BUSY) {
            return status == LAWN_ERR_NO_MEMORY ? -ENOMEM : -EIO;
        }
    }
    return -ENOSPC;
}

/* Returns 0 and stores the lcore, if this process manages it. */
static inline int lawn_rte_alt_find(uint32_t id, unsigned lcore,
                                    lawn_rte_alt_t **alt_p)
{
    lawn_rte_alt_t *const all =
        id < LAWN_RTE_ALT_DATAS ? lawn_rte_alts[id] : NULL;
    if (!all || lcore >= LAWN_RTE_MAX_LCORE) {
        return -EINVAL;
    }
    if (!all[lcore].engine || all[lcore].is_inherited) {
        return lawn_rte_alt_is_own(all) ? -EINVAL : -EACCES;
    }
    *alt_p = &all[lcore];
    return 0;
}

/* Becomes the thread that manages the lcore, unless there is one. */
static inline bool lawn_rte_alt_begin(lawn_rte_alt_t *alt)
{
    if (__atomic_exchange_n(&alt->is_managed, 1, __ATOMIC_ACQUIRE)) {
        return false;
    }
    __atomic_store_n(&alt->manager, (uint64_t)pthread_self(), __ATOMIC_RELAXED);
    return true;
}

static inline int lawn_rte_timer_alt_manage(uint32_t id,
                                            const unsigned *poll_lcores,
                                            int n_poll_lcores,
                                            lawn_rte_timer_alt_manage_cb_t f)
{
    const unsigned own = LAWN_RTE_LCORE_ID();
    int i, ret;
    if (!poll_lcores) {
        poll_lcores = &own;
        n_poll_lcores = 1;
    }
    for (i = 0; i < n_poll_lcores; ++i) {
        lawn_rte_alt_t *alt;
        ret = lawn_rte_alt_find(id, poll_lcores[i], &alt);
        if (ret != 0) {
            return ret;
        }
        if (lawn_rte_alt_begin(alt)) {
            alt->f = f;
            lawn_engine_progress(alt->engine);
            __atomic_store_n(&alt->is_managed, 0, __ATOMIC_RELEASE);
        }
    }
    return 0;
}

static inline int lawn_rte_timer_stop_all(uint32_t id,
                                          const unsigned *walk_lcores,
                                          int n_walk_lcores,
                                          lawn_rte_timer_stop_all_cb_t f,
                                          void *f_arg)
{
    int i, ret;
    if (id >= LAWN_RTE_ALT_DATAS || !lawn_rte_alts[id]) {
        return -EINVAL;
    }
    for (i = 0; i < n_walk_lcores; ++i) {
        lawn_rte_alt_t *alt;
        ret = lawn_rte_alt_find(id, walk_lcores[i], &alt);
        if (ret != 0) {
            return ret;
        }
        while (!lawn_rte_alt_begin(alt)) {
            sched_yield();
        }
        alt->stopped = f;
        alt->stopped_arg = f_arg;
        alt->is_stopping = true;
        lawn_shm_drain(alt->shm);
        alt->is_stopping = false;
        __atomic_store_n(&alt->is_managed, 0, __ATOMIC_RELEASE);
    }
    return 0;
}

/*
 * In any process.
 */

/* The status for a timer that this process is about to start or stop. Returns 0
 * if there is no such data or lcore. */
static inline uint64_t lawn_rte_alt_config(uint32_t id, uint32_t lcore)
{
    lawn_status_t open;
    lawn_rte_alt_t *const alt = lawn_rte_alt_enter(id, lcore, &open);
    uint64_t status = 0;
    if (alt) {
        status = lawn_rte_alt_status(LAWN_RTE_TIMER_CONFIG, lcore,
                                     lawn_shm_id(alt->client));
        lawn_rte_alt_unlock(alt);
    }
    return status;
}

/* Under the lock of the timer's lcore: makes sure that the timer does not run
 * there and will not run. `slot` was read before `status`. */
static inline int lawn_rte_alt_end(lawn_rte_alt_t *alt, lawn_rte_timer_t *tim,
                                   uint64_t status, lawn_shm_timer_t slot)
{
    const uint64_t client = lawn_rte_alt_client_of(status);
    if ((status & 3) == LAWN_RTE_TIMER_RUNNING && lawn_rte_alt_runs(alt, tim)) {
        alt->is_touched = true; /* only this thread reads it */
        return 0;
    }
    if (client != lawn_shm_id(alt->client)) {
        if (lawn_shm_is_open(alt->client, client)) {
            return (status & 3) == LAWN_RTE_TIMER_PENDING ? -EACCES : -1;
        }
        /* It is gone, or it is of the next process that manages. */
        if (lawn_rte_alt_is_gone(alt)) {
            lawn_rte_alt_leave(alt);
            return -1;
        }
        return 0;
    }
    if ((status & 3) == LAWN_RTE_TIMER_CONFIG ||
        !lawn_shm_stop(alt->client, slot)) {
        return -1;
    }
    lawn_rte_alt_put(alt, slot);
    return 0;
}

/* Changes the status of a timer that the caller has taken. Returns 1, or 0 if
 * the caller has it no more. If the manager of its client is gone, another
 * thread may have taken it. */
static inline int lawn_rte_alt_set(lawn_rte_timer_t *tim, uint64_t from,
                                   uint64_t to)
{
    return __atomic_compare_exchange_n(&tim->status, &from, to, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Returns 0 if the timer now has the status `config`, and is the caller's. */
static inline int lawn_rte_alt_take(uint32_t id, lawn_rte_timer_t *tim,
                                    uint64_t config)
{
    uint64_t was = __atomic_load_n(&tim->status, __ATOMIC_ACQUIRE);
    lawn_status_t open = LAWN_OK;
    lawn_rte_alt_t *const alt =
        (was & 3) != LAWN_RTE_TIMER_STOP
            ? lawn_rte_alt_enter(id, lawn_rte_alt_lcore_of(was), &open)
            : NULL;
    int ret = 0;
    /* If there is no lcore any more, nobody has the timer. */
    if (open != LAWN_OK && open != LAWN_ERR_NO_ELEM) {
        return -EINVAL;
    }
    /* If the status has changed, another thread has the timer. It may change
     * the status back before the exchange below. If the status is `config`,
     * another thread has the timer by the same client, even if that is gone.
     * The manager needs no lock to start the timer anew, with a slot of its
     * own: so the slot is this client's only if the status is, afterwards. */
    if (alt) {
        const lawn_shm_timer_t slot =
            __atomic_load_n(&tim->slot, __ATOMIC_ACQUIRE);
        const uint64_t now = __atomic_load_n(&tim->status, __ATOMIC_ACQUIRE);
        const bool is_same = (was != config) & (now == was);
        ret = is_same ? lawn_rte_alt_end(alt, tim, was, slot) : -1;
    }
    if (ret == 0 && !lawn_rte_change(tim, &was, config)) {
        ret = -1;
    }
    if (alt) {
        lawn_rte_alt_unlock(alt);
    }
    return ret;
}

/* Under the lock: starts a timer that is the caller's by `config`. If it fails,
 * the status is `config` again before another thread can have the lock. */
static inline int lawn_rte_alt_start(lawn_rte_alt_t *alt, lawn_rte_timer_t *tim,
                                     uint64_t config, uint64_t ticks,
                                     enum lawn_rte_timer_type type,
                                     lawn_rte_timer_cb_t f, void *arg)
{
    const uint64_t pending = lawn_rte_alt_status(LAWN_RTE_TIMER_PENDING,
                                                 lawn_rte_alt_lcore_of(config),
                                                 lawn_shm_id(alt->client));
    const lawn_time_t now = lawn_shm_time(alt->client);
    const lawn_time_t deadline =
        ticks < LAWN_TIME_INFINITY - now ? now + ticks : LAWN_TIME_INFINITY;
    const lawn_shm_timer_t slot = lawn_rte_alt_get(alt);
    if (slot == 0) {
        return -ENOSPC;
    }
    lawn_shm_set_cookie(alt->client, slot, (uintptr_t)tim);
    if (!lawn_rte_alt_set(tim, config, pending)) {
        lawn_rte_alt_put(alt, slot);
        return -1;
    }
    tim->period = type == LAWN_RTE_TIMER_PERIODICAL ? ticks : 0;
    tim->f = f;
    tim->arg = arg;
    __atomic_store_n(&tim->slot, slot, __ATOMIC_RELEASE);
    if (!lawn_shm_start(alt->client, slot, deadline)) {
        lawn_rte_alt_set(tim, pending, config);
        lawn_rte_alt_leave(alt);
        return -EINVAL;
    }
    return 0;
}

static inline int lawn_rte_timer_alt_reset(uint32_t id, lawn_rte_timer_t *tim,
                                           uint64_t ticks,
                                           enum lawn_rte_timer_type type,
                                           unsigned tim_lcore,
                                           lawn_rte_timer_cb_t fct, void *arg)
{
    const uint32_t lcore =
        tim_lcore == LAWN_RTE_LCORE_ID_ANY ? LAWN_RTE_LCORE_ID() : tim_lcore;
    const uint64_t config = lawn_rte_alt_config(id, lcore);
    lawn_status_t open;
    lawn_rte_alt_t *alt;
    int ret;
    if (config == 0) {
        return -EINVAL;
    }
    ret = lawn_rte_alt_take(id, tim, config);
    if (ret != 0) {
        return ret;
    }
    ret = -EINVAL;
    alt = lawn_rte_alt_enter(id, lcore, &open);
    if (alt) {
        ret = lawn_rte_alt_start(alt, tim, config, ticks, type, fct, arg);
        lawn_rte_alt_unlock(alt);
    }
    if (ret != 0) {
        lawn_rte_alt_set(tim, config, LAWN_RTE_TIMER_STOP);
    }
    return ret;
}

static inline int lawn_rte_timer_alt_stop(uint32_t id, lawn_rte_timer_t *tim)
{
    const uint64_t was = __atomic_load_n(&tim->status, __ATOMIC_ACQUIRE);
    uint64_t config;
    int ret;
    if (id >= LAWN_RTE_ALT_DATAS) {
        return -EINVAL;
    }
    if ((was & 3) == LAWN_RTE_TIMER_STOP) {
        return 0;
    }
    config = lawn_rte_alt_config(id, lawn_rte_alt_lcore_of(was));
    if (config == 0) {
        return -EINVAL;
    }
    ret = lawn_rte_alt_take(id, tim, config);
    if (ret == 0) {
        ret = lawn_rte_alt_set(tim, config, LAWN_RTE_TIMER_STOP) - 1;
    }
    return ret;
}

LAWN_END_DECLS

#endif
