/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_timer_alt_lcore_inline.h - the lcores of lawn/rte_timer_alt.h, as
 * each process sees them. That header includes it; nothing else should.
 *
 * For each lcore there is a lawn/shm.h. The process that manages the lcore is
 * its owner, and each process that starts timers there is a client. A started
 * timer has a slot, whose cookie is the timer.
 */
#ifndef LAWN_RTE_TIMER_ALT_LCORE_INLINE_H
#define LAWN_RTE_TIMER_ALT_LCORE_INLINE_H

#ifndef LAWN_RTE_TIMER_ALT_H
#error "include lawn/rte_timer_alt.h"
#endif

#include <lawn/shm.h>

#include <pthread.h>
#include <stdio.h>

LAWN_BEGIN_DECLS

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
    lawn_rte_timer_stop_all_cb_t stopped; /* of rte_timer_stop_all() */
    void *stopped_arg;
    bool is_stopping;          /* in rte_timer_stop_all() */
    lawn_rte_timer_t *running; /* `f` runs for it now, or NULL. Atomic */
    uint64_t manager;          /* the thread that `f` runs on. Atomic */
    uint32_t is_managed;       /* Atomic */
    bool is_touched;           /* `running` was reset or stopped by `f` */
    bool is_inherited;         /* the child of a fork has it from its parent */
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

/* In the child of a fork, which has copies of its parent's tables. The next
 * call leaves the parent's client, as that has no owner here. Another thread of
 * the parent may have had the lock: nobody gives it back here, and what the
 * thread was changing is lost. */
static inline void lawn_rte_alt_forked(void)
{
    uint32_t id, i;
    for (id = 0; id < LAWN_RTE_ALT_DATAS; ++id) {
        lawn_rte_alt_t *const all = lawn_rte_alts[id];
        for (i = 0; all && i < LAWN_RTE_MAX_LCORE; ++i) {
            lawn_rte_alt_t *const alt = &all[i];
            alt->is_inherited = true;
            alt->running = NULL;
            alt->look_at = 0;
            if (alt->lock) {
                alt->client = NULL;
                alt->spare_count = 0;
                alt->lock = 0;
            }
        }
    }
}

/* Several threads may register it, which does no harm. Returns false if there
 * is no memory. */
static inline bool lawn_rte_alt_notice_forks(void)
{
    static bool is_registered;
    bool is_done = __atomic_load_n(&is_registered, __ATOMIC_RELAXED);
    if (!is_done) {
        is_done = pthread_atfork(NULL, NULL, lawn_rte_alt_forked) == 0;
        __atomic_store_n(&is_registered, is_done, __ATOMIC_RELAXED);
    }
    return is_done;
}

/* Returns NULL if there is no memory. */
static inline lawn_rte_alt_t *lawn_rte_alt_new(void)
{
    return lawn_rte_alt_notice_forks()
               ? (lawn_rte_alt_t *)calloc(LAWN_RTE_MAX_LCORE,
                                          sizeof(lawn_rte_alt_t))
               : NULL;
}

/* Makes `all` the table of the number, or returns that of another thread, which
 * was first. */
static inline lawn_rte_alt_t *lawn_rte_alt_publish(uint32_t id,
                                                   lawn_rte_alt_t *all)
{
    lawn_rte_alt_t *there = NULL;
    return __atomic_compare_exchange_n(&lawn_rte_alts[id], &there, all, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
               ? all
               : there;
}

/* Returns NULL if there is no memory. */
static inline lawn_rte_alt_t *lawn_rte_alt_all(uint32_t id)
{
    lawn_rte_alt_t *all = __atomic_load_n(&lawn_rte_alts[id], __ATOMIC_ACQUIRE);
    lawn_rte_alt_t *own;
    if (!all && (own = lawn_rte_alt_new()) != NULL) {
        all = lawn_rte_alt_publish(id, own);
        if (all != own) {
            free(own);
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

LAWN_END_DECLS

#endif
