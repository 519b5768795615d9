/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/ucs_compat_inline.h - the functions of lawn/ucs_compat.h, which includes
 * it. Nothing else should.
 */
#ifndef LAWN_UCS_COMPAT_INLINE_H
#define LAWN_UCS_COMPAT_INLINE_H

#ifndef LAWN_UCS_COMPAT_H
#error "include lawn/ucs_compat.h"
#endif

#include <sched.h>
#include <stdlib.h>
#include <string.h>

LAWN_BEGIN_DECLS

/*
 * The wheel.
 */

static inline ucs_status_t
lawn_ucs_twheel_init_with(lawn_ucs_twheel_t *w, ucs_time_t resolution,
                          ucs_time_t current_time, const lawn_params_t *params)
{
    memset(w, 0, sizeof *w);
    w->res = resolution;
    w->now = current_time;
    w->max_delta = LAWN_TIME_INFINITY;
    w->num_slots = 1024;
    switch (lawn_create(params, &w->lawn)) {
    case LAWN_OK:
        return UCS_OK;
    case LAWN_ERR_INVALID_PARAM:
        return UCS_ERR_INVALID_PARAM;
    default:
        return UCS_ERR_NO_MEMORY;
    }
}

static inline ucs_status_t lawn_ucs_twheel_init(lawn_ucs_twheel_t *w,
                                                ucs_time_t resolution,
                                                ucs_time_t current_time)
{
    return lawn_ucs_twheel_init_with(w, resolution, current_time, NULL);
}

static inline void lawn_ucs_twheel_cleanup(lawn_ucs_twheel_t *w)
{
    lawn_destroy(w->lawn);
    w->lawn = NULL;
}

static inline ucs_time_t lawn_ucs_twheel_get_time(const lawn_ucs_twheel_t *w)
{
    return w->now;
}

static inline int lawn_ucs_twheel_is_empty(const lawn_ucs_twheel_t *w)
{
    return lawn_count(w->lawn) == 0;
}

static inline void lawn_ucs_twheel_sweep(lawn_ucs_twheel_t *w,
                                         ucs_time_t current_time)
{
    w->now = current_time > w->now ? current_time : w->now;
    if (LAWN_LIKELY(!w->is_sweeping)) {
        w->is_sweeping = true;
        lawn_advance(w->lawn, w->now, 0);
        w->is_sweeping = false;
    }
}

static inline void lawn_ucs_wtimer_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_ucs_wtimer_t *const self = (lawn_ucs_wtimer_t *)timer;
    (void)now;
    self->cb(self);
}

static inline ucs_status_t lawn_ucs_wtimer_init(lawn_ucs_wtimer_t *timer,
                                                lawn_ucs_twheel_callback_t cb)
{
    memset(timer, 0, sizeof *timer);
    lawn_timer_init(&timer->timer, lawn_ucs_wtimer_expired);
    timer->cb = cb;
    return UCS_OK;
}

static inline bool lawn_ucs_wtimer_is_active(const lawn_ucs_wtimer_t *timer)
{
    return lawn_timer_is_active(&timer->timer);
}

static inline ucs_status_t lawn_ucs_wtimer_add_at(lawn_ucs_twheel_t *w,
                                                  lawn_ucs_wtimer_t *timer,
                                                  ucs_time_t now,
                                                  ucs_time_t delta)
{
    const bool is_negative = delta > INT64_MAX && delta != LAWN_TIME_INFINITY;
    if (lawn_ucs_wtimer_is_active(timer)) {
        return UCS_ERR_BUSY;
    }
    if (is_negative) {
        delta = 0;
    } else if (delta > w->max_delta) {
        delta = w->max_delta;
    }
    w->now = now > w->now ? now : w->now;
    lawn_timer_start(w->lawn, &timer->timer, w->now, delta);
    return UCS_OK;
}

static inline ucs_status_t lawn_ucs_wtimer_add(lawn_ucs_twheel_t *w,
                                               lawn_ucs_wtimer_t *timer,
                                               ucs_time_t delta)
{
    return lawn_ucs_wtimer_add_at(w, timer, w->now, delta);
}

static inline void lawn_ucs_wtimer_remove(lawn_ucs_twheel_t *w,
                                          lawn_ucs_wtimer_t *timer)
{
    if (lawn_ucs_wtimer_is_active(timer)) {
        lawn_timer_stop(w->lawn, &timer->timer);
    }
}

/*
 * The queue.
 */

static inline void *lawn_ucs_timerq_malloc(void *arg, size_t size)
{
    (void)arg;
    return malloc(size);
}

static inline void lawn_ucs_timerq_free(void *arg, void *memory)
{
    (void)arg;
    free(memory);
}

static inline ucs_status_t
lawn_ucs_timerq_init_with(lawn_ucs_timerq_t *q, const lawn_params_t *params)
{
    memset(q, 0, sizeof *q);
    q->min_interval = LAWN_TIME_INFINITY;
    q->memory.alloc = lawn_ucs_timerq_malloc;
    q->memory.release = lawn_ucs_timerq_free;
    if (params && (params->allocator.alloc || params->allocator.release)) {
        if (!params->allocator.alloc || !params->allocator.release) {
            return UCS_ERR_INVALID_PARAM;
        }
        q->memory = params->allocator;
    }
    return UCS_OK;
}

static inline ucs_status_t lawn_ucs_timerq_init(lawn_ucs_timerq_t *q)
{
    return lawn_ucs_timerq_init_with(q, NULL);
}

static inline void lawn_ucs_timerq_cleanup(lawn_ucs_timerq_t *q)
{
    while (q->first) {
        lawn_ucs_timer_t *const timer = q->first;
        q->first = timer->next;
        q->memory.release(q->memory.arg, timer);
    }
}

static inline void lawn_ucs_timerq_lock(lawn_ucs_timerq_t *q)
{
    const pthread_t self = pthread_self();
    pthread_t nobody = (pthread_t)0;
    while (__atomic_load_n(&q->owner, __ATOMIC_RELAXED) != self &&
           !__atomic_compare_exchange_n(&q->owner, &nobody, self, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        nobody = (pthread_t)0;
        sched_yield();
    }
    q->depth++;
}

static inline void lawn_ucs_timerq_unlock(lawn_ucs_timerq_t *q)
{
    if (--q->depth == 0) {
        __atomic_store_n(&q->owner, (pthread_t)0, __ATOMIC_RELEASE);
    }
}

static inline ucs_status_t lawn_ucs_timerq_add(lawn_ucs_timerq_t *q, int id,
                                               ucs_time_t interval)
{
    ucs_status_t status = UCS_OK;
    lawn_ucs_timer_t *timer;
    lawn_ucs_timerq_lock(q);
    for (timer = q->first; timer && timer->id != id; timer = timer->next) {
    }
    if (timer) {
        status = UCS_ERR_ALREADY_EXISTS;
    } else if (!(timer = (lawn_ucs_timer_t *)q->memory.alloc(q->memory.arg,
                                                             sizeof *timer))) {
        status = UCS_ERR_NO_MEMORY;
    } else {
        timer->expiration = 0;
        timer->interval = interval;
        timer->id = id;
        timer->next = q->first; /* where a loop that runs does not come again */
        q->first = timer;
        q->num_timers++;
        if (interval < q->min_interval) {
            q->min_interval = interval;
        }
    }
    lawn_ucs_timerq_unlock(q);
    return status;
}

static inline ucs_status_t lawn_ucs_timerq_remove(lawn_ucs_timerq_t *q, int id)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;
    lawn_ucs_timer_t **link = &q->first;
    lawn_ucs_timerq_lock(q);
    q->min_interval = LAWN_TIME_INFINITY;
    while (*link) {
        lawn_ucs_timer_t *const timer = *link;
        if (timer->id == id) {
            *link = timer->next;
            if (q->next == timer) {
                q->next = timer->next;
            }
            q->memory.release(q->memory.arg, timer);
            q->num_timers--;
            status = UCS_OK;
            continue;
        }
        if (timer->interval < q->min_interval) {
            q->min_interval = timer->interval;
        }
        link = &timer->next;
    }
    lawn_ucs_timerq_unlock(q);
    return status;
}

static inline ucs_time_t
lawn_ucs_timerq_min_interval(const lawn_ucs_timerq_t *q)
{
    return q->min_interval;
}

static inline int lawn_ucs_timerq_size(const lawn_ucs_timerq_t *q)
{
    return (int)q->num_timers;
}

static inline int lawn_ucs_timerq_is_empty(const lawn_ucs_timerq_t *q)
{
    return q->num_timers == 0;
}

static inline void lawn_ucs_timerq_begin(lawn_ucs_timerq_t *q, ucs_time_t now)
{
    lawn_ucs_timerq_lock(q);
    q->now = now;
    q->next = q->first;
}

/* If this loop ran inside of another one, the outer loop then begins anew. It
 * meets no timer twice, because those that have fired are no longer due. */
static inline void lawn_ucs_timerq_end(lawn_ucs_timerq_t *q)
{
    q->next = q->first;
    lawn_ucs_timerq_unlock(q);
}

static inline lawn_ucs_timer_t *
lawn_ucs_timerq_next_expired(lawn_ucs_timerq_t *q)
{
    const ucs_time_t now = q->now;
    while (q->next) {
        lawn_ucs_timer_t *const timer = q->next;
        q->next = timer->next;
        if (timer->expiration <= now &&
            timer->expiration != LAWN_TIME_INFINITY) {
            const ucs_time_t interval = timer->interval ? timer->interval : 1;
            const ucs_time_t late =
                timer->expiration ? now - timer->expiration : 0;
            const ucs_time_t delta = interval - late % interval;
            timer->expiration = now < LAWN_TIME_INFINITY - delta
                                    ? now + delta
                                    : LAWN_TIME_INFINITY;
            return timer;
        }
    }
    return NULL;
}

LAWN_END_DECLS

#endif
