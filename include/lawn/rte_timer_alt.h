/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_timer_alt.h - DPDK's timers that processes share, on lawn/shm.h.
 *
 *     uint32_t id;                             // the primary
 *     rte_timer_data_alloc(&id);
 *     for (;;)                                 // any of its lcores
 *         rte_timer_alt_manage(id, lcores, n, expired);
 *
 *     rte_timer_alt_reset(id, tim, ticks, SINGLE, lcore, NULL, arg);
 *     rte_timer_alt_stop(id, tim);             // any process
 *
 * `tim` must be in memory that all processes have at the same address, such as
 * that of rte_malloc() or a memzone. The names are as in lawn/rte_timer.h: with
 * lawn_ before them, or DPDK's own by lawn/rte_compat.h.
 *
 * As in DPDK, any process may start and stop timers, for any lcore of the
 * process that has allocated the data. That process runs them there, never
 * early, by a function of its own. The function may stop or reset its timer,
 * and free it after the stop. -1 means that another thread has the timer now.
 *
 * Not as in DPDK 22.11:
 *   - No process waits for another. DPDK's processes share locks: one that is
 *     killed while it has a lock stops all of them.
 *   - The pending timers of a process end with it, also if it is killed. The
 *     process that manages notices that in a pass, at most a millisecond later.
 *     Then any process may reset these timers; before that, it gets -EACCES. In
 *     DPDK such timers go on, and one that was being reset can never be used
 *     again.
 *   - The pending timers of an lcore end with the process that manages it. The
 *     next process that calls rte_timer_data_alloc() gets the same number,
 *     unless it has used that number itself. Other processes notice within a
 *     millisecond. What they start before that does not run.
 *   - Only the process that has started a pending timer may stop or reset it.
 *     Others get -EACCES. The function that runs the timer may do both.
 *   - Only the process that has allocated the data manages it. In DPDK any may.
 *   - An lcore has places for LAWN_RTE_ALT_TIMERS timers of all processes
 *     together. Without a place, a reset gives -ENOSPC. A process keeps the
 *     places of its timers that have fired, and up to 64 of those that it has
 *     stopped, for the timers that it starts next. So it has as many places as
 *     it had timers pending at once.
 *   - The numbers begin at 0. No number stands for the timers of
 *     lawn/rte_timer.h, as 0 does in DPDK.
 *   - Ticks that end beyond 2^64 never expire.
 *   - No rte_timer_alt_dump_stats().
 *
 * A process allocates at its first call for an lcore, and opens files in
 * LAWN_RTE_ALT_DIR(), which is EAL's runtime directory.
 */
#ifndef LAWN_RTE_TIMER_ALT_H
#define LAWN_RTE_TIMER_ALT_H

#include <lawn/rte_timer.h>
#include <lawn/shm.h>

#include <pthread.h>
#include <stdio.h>

#if defined(__has_include) && !defined(LAWN_RTE_ALT_DIR)
#if __has_include(<rte_eal.h>)
#include <rte_eal.h>
#define LAWN_RTE_ALT_DIR() rte_eal_get_runtime_dir()
#endif
#endif
#ifndef LAWN_RTE_ALT_DIR
#define LAWN_RTE_ALT_DIR() "/dev/shm"
#endif

/* Per lcore, in the process that allocates the data: 112 bytes each. */
#ifndef LAWN_RTE_ALT_TIMERS
#define LAWN_RTE_ALT_TIMERS 65536u
#endif

LAWN_BEGIN_DECLS

typedef void (*lawn_rte_timer_alt_manage_cb_t)(struct lawn_rte_timer *tim);

/* Limits: data instances, slots that a process keeps for its next timers, and
 * the length of a file's name. */
enum {
    LAWN_RTE_ALT_DATAS = 64,
    LAWN_RTE_ALT_SPARE = 64,
    LAWN_RTE_ALT_PATH = 4096
};

/* The timers of one lcore, as this process sees them. */
typedef struct {
    /* For the process that manages the lcore; NULL in others. */
    lawn_engine_t *engine;
    lawn_shm_t *shm;
    lawn_rte_timer_alt_manage_cb_t f;
    lawn_rte_timer_t *running; /* `f` runs for it now, or NULL. Atomic */
    uint64_t manager;          /* the thread that `f` runs on. Atomic */
    uint32_t is_managed;       /* Atomic */
    bool is_touched;           /* `running` was reset or stopped by `f` */
    /* Under the lock, which only threads of this process take. */
    uint32_t lock;
    lawn_shm_client_t *client; /* NULL: not yet */
    lawn_time_t look_at;       /* when to ask whether the manager is gone */
    uint32_t spare_count;
    lawn_shm_timer_t spare[LAWN_RTE_ALT_SPARE];
} lawn_rte_alt_t;

/* Weak: all files that include this share it. For each data, its lcores. */
LAWN_API __attribute__((weak))
lawn_rte_alt_t *lawn_rte_alts[LAWN_RTE_ALT_DATAS];

/* A timer's status: its state, its lcore, and the id of the client that has it,
 * or of the owner that runs it. The number in that id is below
 * LAWN_RTE_ALT_CLIENTS. */
enum {
    LAWN_RTE_ALT_LCORE_BITS = 12,
    LAWN_RTE_ALT_CLIENT_BITS = 20,
    LAWN_RTE_ALT_CLIENTS = 256
};

static inline uint32_t lawn_rte_alt_lcore_of(uint64_t status)
{
    return (uint32_t)(status >> 2) & ((1u << LAWN_RTE_ALT_LCORE_BITS) - 1);
}

static inline uint64_t lawn_rte_alt_client_of(uint64_t status)
{
    const uint64_t id = status >> (2 + LAWN_RTE_ALT_LCORE_BITS);
    return (id >> LAWN_RTE_ALT_CLIENT_BITS) << 32 |
           (id & ((1u << LAWN_RTE_ALT_CLIENT_BITS) - 1));
}

static inline uint64_t lawn_rte_alt_status(uint32_t state, uint32_t lcore,
                                           uint64_t client)
{
    const uint64_t id =
        (client >> 32) << LAWN_RTE_ALT_CLIENT_BITS | (client & UINT32_MAX);
    return (id << LAWN_RTE_ALT_LCORE_BITS | lcore) << 2 | state;
}

/*
 * Within one process.
 */

static inline void lawn_rte_alt_unlock(lawn_rte_alt_t *alt)
{
    __atomic_store_n(&alt->lock, 0, __ATOMIC_RELEASE);
}

static inline lawn_time_t lawn_rte_alt_clock(void *arg)
{
    (void)arg;
    return LAWN_RTE_CYCLES();
}

static inline bool lawn_rte_alt_name(char *path, uint32_t id, uint32_t lcore)
{
    const int length = snprintf(path, LAWN_RTE_ALT_PATH, "%s/lawn-timers.%u.%u",
                                LAWN_RTE_ALT_DIR(), id, lcore);
    return (unsigned)length < (unsigned)LAWN_RTE_ALT_PATH;
}

/* Returns NULL if there is no such data or no memory. */
static inline lawn_rte_alt_t *lawn_rte_alt_all(uint32_t id)
{
    lawn_rte_alt_t *all, *none = NULL;
    if (id >= LAWN_RTE_ALT_DATAS) {
        return NULL;
    }
    all = __atomic_load_n(&lawn_rte_alts[id], __ATOMIC_ACQUIRE);
    if (!all) {
        all = (lawn_rte_alt_t *)calloc(LAWN_RTE_MAX_LCORE, sizeof *all);
        if (all &&
            !__atomic_compare_exchange_n(&lawn_rte_alts[id], &none, all, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            free(all);
            all = none;
        }
    }
    return all;
}

/* The caller has the lock. */
static inline void lawn_rte_alt_leave(lawn_rte_alt_t *alt)
{
    lawn_shm_close(alt->client);
    alt->client = NULL;
    alt->spare_count = 0;
}

/* Under the lock: gets a slot for a timer; 0 if all are taken. An expired slot
 * is free for this process again when its event is read, here. */
static inline lawn_shm_timer_t lawn_rte_alt_get(lawn_rte_alt_t *alt)
{
    lawn_shm_event_t event;
    lawn_shm_timer_t slot = 0;
    while (alt->spare_count < LAWN_RTE_ALT_SPARE &&
           lawn_shm_next(alt->client, &event)) {
        alt->spare[alt->spare_count++] = event.timer;
    }
    if (alt->spare_count > 0) {
        slot = alt->spare[--alt->spare_count];
    } else {
        lawn_shm_alloc(alt->client, 0, &slot);
    }
    return slot;
}

/* Under the lock: takes back the slot of a stopped timer. */
static inline void lawn_rte_alt_put(lawn_rte_alt_t *alt, lawn_shm_timer_t slot)
{
    if (alt->spare_count < LAWN_RTE_ALT_SPARE) {
        alt->spare[alt->spare_count++] = slot;
    } else {
        lawn_shm_release(alt->client, slot);
    }
}

/* Becomes a client of the lcore. */
static inline lawn_status_t lawn_rte_alt_open(uint32_t id, uint32_t lcore,
                                              lawn_shm_client_t **client_p)
{
    char path[LAWN_RTE_ALT_PATH];
    return lawn_rte_alt_name(path, id, lcore)
               ? lawn_shm_open(path, lawn_rte_alt_clock, NULL, client_p)
               : LAWN_ERR_INVALID_PARAM;
}

/* Under the lock: whether the process that manages is gone. */
static inline bool lawn_rte_alt_is_gone(const lawn_rte_alt_t *alt)
{
    return !lawn_shm_is_open(alt->client, 0);
}

/* Under the lock: leaves a manager that is gone, and asks at most once in a
 * millisecond. */
static inline void lawn_rte_alt_look(lawn_rte_alt_t *alt)
{
    const lawn_time_t now = lawn_get_time();
    if (LAWN_UNLIKELY(now >= alt->look_at)) {
        alt->look_at = now + lawn_time_from_msec(1);
        if (lawn_rte_alt_is_gone(alt)) {
            lawn_rte_alt_leave(alt);
        }
    }
}

/* Locks an lcore of a data instance. Stores NO_ELEM and returns NULL if there
 * is none, or stores another status if it cannot be opened. */
static inline lawn_rte_alt_t *lawn_rte_alt_enter(uint32_t id, uint32_t lcore,
                                                 lawn_status_t *status_p)
{
    lawn_rte_alt_t *all, *alt;
    lawn_shm_client_t *client = NULL;
    *status_p = LAWN_ERR_NO_ELEM;
    if (id >= LAWN_RTE_ALT_DATAS || lcore >= LAWN_RTE_MAX_LCORE) {
        return NULL;
    }
    /* A number with a table is none for rte_timer_data_alloc(). So only data
     * that is there gets one. */
    all = __atomic_load_n(&lawn_rte_alts[id], __ATOMIC_ACQUIRE);
    if (LAWN_UNLIKELY(!all)) {
        *status_p = lawn_rte_alt_open(id, lcore, &client);
        if (*status_p != LAWN_OK) {
            return NULL;
        }
        all = lawn_rte_alt_all(id);
        if (!all) {
            lawn_shm_close(client);
            *status_p = LAWN_ERR_NO_MEMORY;
            return NULL;
        }
    }
    alt = &all[lcore];
    lawn_rte_spin(&alt->lock);
    *status_p = LAWN_OK;
    if (alt->client) {
        lawn_rte_alt_look(alt);
    }
    if (LAWN_UNLIKELY(!alt->client)) {
        if (!client) {
            *status_p = lawn_rte_alt_open(id, lcore, &client);
        }
        alt->client = client;
    } else if (LAWN_UNLIKELY(client != NULL)) {
        lawn_shm_close(client); /* another thread was first */
    }
    if (*status_p != LAWN_OK) {
        lawn_rte_alt_unlock(alt);
        return NULL;
    }
    return alt;
}

/* Whether `f` runs for the timer, on this thread. */
static inline bool lawn_rte_alt_runs(const lawn_rte_alt_t *alt,
                                     const lawn_rte_timer_t *tim)
{
    return __atomic_load_n(&alt->running, __ATOMIC_ACQUIRE) == tim &&
           __atomic_load_n(&alt->manager, __ATOMIC_RELAXED) ==
               (uint64_t)pthread_self();
}

/*
 * In the process that manages.
 */

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
    (void)slot;
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
    now += tim->period - (now - deadline) % tim->period;
    lawn_rte_set_status(tim, pending);
    return now;
}

/* Does nothing if there is no such lcore. */
static inline lawn_status_t lawn_rte_alt_create(lawn_rte_alt_t *alt,
                                                uint32_t id, uint32_t lcore)
{
    lawn_engine_params_t engine;
    lawn_shm_params_t params;
    char path[LAWN_RTE_ALT_PATH];
    lawn_status_t status;
    if (!LAWN_RTE_HAS_LCORE(lcore)) {
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
    lawn_shm_destroy(alt->shm);
    lawn_engine_destroy(alt->engine);
    alt->shm = NULL;
    alt->engine = NULL;
    lawn_rte_alt_unlock(alt);
}

/* Ends the data in the process that has allocated it, or its use in another.
 * Pending timers are stopped, but rte_timer_pending() is still true. No other
 * call for it may be in progress. Returns 0, or -EINVAL for no such data. */
static inline int lawn_rte_timer_data_dealloc(uint32_t id)
{
    lawn_rte_alt_t *const all =
        id < LAWN_RTE_ALT_DATAS ? lawn_rte_alts[id] : NULL;
    uint32_t i;
    if (!all) {
        return -EINVAL;
    }
    for (i = 0; i < LAWN_RTE_MAX_LCORE; ++i) {
        lawn_rte_alt_destroy(&all[i]);
    }
    lawn_rte_alts[id] = NULL;
    free(all);
    return 0;
}

/* Whether this process manages the data. */
static inline bool lawn_rte_alt_is_own(const lawn_rte_alt_t *all)
{
    uint32_t i = 0;
    while (i < LAWN_RTE_MAX_LCORE && !all[i].engine) {
        ++i;
    }
    return i < LAWN_RTE_MAX_LCORE;
}

/* Makes timers for the lcores that there are. Stores the number by which all
 * processes know them, unless `id_ptr` is NULL. Returns 0, -ENOSPC if there are
 * 64 instances, -ENOMEM, or -EIO if the files cannot be made. Not for two
 * threads at once. */
static inline int lawn_rte_timer_data_alloc(uint32_t *id_ptr)
{
    uint32_t id, i;
    for (id = 0; id < LAWN_RTE_ALT_DATAS; ++id) {
        lawn_status_t status = LAWN_OK;
        lawn_rte_alt_t *all;
        if (lawn_rte_alts[id]) {
            continue;
        }
        all = lawn_rte_alt_all(id);
        if (!all) {
            return -ENOMEM;
        }
        for (i = 0; i < LAWN_RTE_MAX_LCORE && status == LAWN_OK; ++i) {
            status = lawn_rte_alt_create(&all[i], id, i);
        }
        if (status == LAWN_OK) {
            if (id_ptr) {
                *id_ptr = id;
            }
            return 0;
        }
        lawn_rte_timer_data_dealloc(id);
        if (status != LAWN_ERR_BUSY) {
            return status == LAWN_ERR_NO_MEMORY ? -ENOMEM : -EIO;
        }
    }
    return -ENOSPC;
}

/* Runs the due timers of the given lcores, or of the caller's if `poll_lcores`
 * is NULL. Skips lcores that another thread is managing. Returns 0, -EINVAL for
 * no such data or lcore, or -EACCES in a process that did not allocate it. */
static inline int lawn_rte_timer_alt_manage(uint32_t id,
                                            const unsigned *poll_lcores,
                                            int n_poll_lcores,
                                            lawn_rte_timer_alt_manage_cb_t f)
{
    lawn_rte_alt_t *const all =
        id < LAWN_RTE_ALT_DATAS ? lawn_rte_alts[id] : NULL;
    const unsigned own = LAWN_RTE_LCORE_ID();
    int i;
    if (!poll_lcores) {
        poll_lcores = &own;
        n_poll_lcores = 1;
    }
    for (i = 0; i < n_poll_lcores; ++i) {
        lawn_rte_alt_t *alt;
        if (!all || poll_lcores[i] >= LAWN_RTE_MAX_LCORE) {
            return -EINVAL;
        }
        alt = &all[poll_lcores[i]];
        if (!alt->engine) {
            return lawn_rte_alt_is_own(all) ? -EINVAL : -EACCES;
        }
        if (__atomic_exchange_n(&alt->is_managed, 1, __ATOMIC_ACQUIRE)) {
            continue;
        }
        __atomic_store_n(&alt->manager, (uint64_t)pthread_self(),
                         __ATOMIC_RELAXED);
        alt->f = f;
        lawn_engine_progress(alt->engine);
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
 * there and will not run. */
static inline int lawn_rte_alt_end(lawn_rte_alt_t *alt, lawn_rte_timer_t *tim,
                                   uint64_t status)
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
        !lawn_shm_stop(alt->client, tim->slot)) {
        return -1;
    }
    lawn_rte_alt_put(alt, tim->slot);
    return 0;
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
     * the status back before the exchange below. */
    if (alt) {
        ret = __atomic_load_n(&tim->status, __ATOMIC_ACQUIRE) == was
                  ? lawn_rte_alt_end(alt, tim, was)
                  : -1;
    }
    if (ret == 0 && !lawn_rte_change(tim, &was, config)) {
        ret = -1;
    }
    if (alt) {
        lawn_rte_alt_unlock(alt);
    }
    return ret;
}

/* Under the lock: starts a timer that is the caller's. */
static inline int lawn_rte_alt_start(lawn_rte_alt_t *alt, lawn_rte_timer_t *tim,
                                     uint32_t lcore, uint64_t ticks)
{
    const uint64_t pending = lawn_rte_alt_status(LAWN_RTE_TIMER_PENDING, lcore,
                                                 lawn_shm_id(alt->client));
    const lawn_time_t now = lawn_shm_time(alt->client);
    const lawn_time_t deadline =
        ticks < LAWN_TIME_INFINITY - now ? now + ticks : LAWN_TIME_INFINITY;
    tim->slot = lawn_rte_alt_get(alt);
    if (tim->slot == 0) {
        return -ENOSPC;
    }
    lawn_shm_set_cookie(alt->client, tim->slot, (uintptr_t)tim);
    lawn_rte_set_status(tim, pending);
    if (!lawn_shm_start(alt->client, tim->slot, deadline)) {
        lawn_rte_alt_leave(alt);
        return -EINVAL;
    }
    return 0;
}

/* Returns 0, -1 if another thread has the timer at the moment, -EACCES if
 * another process has started it, -ENOSPC, or -EINVAL for no such data or
 * lcore, or one that this process cannot open. The function of
 * rte_timer_alt_manage() runs; it may read `f` and `arg`. */
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
    tim->period = type == LAWN_RTE_TIMER_PERIODICAL ? ticks : 0;
    tim->f = fct;
    tim->arg = arg;
    ret = -EINVAL;
    alt = lawn_rte_alt_enter(id, lcore, &open);
    if (alt) {
        ret = lawn_rte_alt_start(alt, tim, lcore, ticks);
        lawn_rte_alt_unlock(alt);
    }
    if (ret != 0) {
        lawn_rte_set_status(tim, LAWN_RTE_TIMER_STOP);
    }
    return ret;
}

/* Returns 0, also if the timer was stopped: it will not run, and its memory may
 * be freed. -1, -EACCES and -EINVAL as reset. */
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
        lawn_rte_set_status(tim, LAWN_RTE_TIMER_STOP);
    }
    return ret;
}

LAWN_END_DECLS

#endif
