/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The timers of libucs, whose headers are not installed: the layout and the
 * calls of UCX 1.13, to compare lawn/ucs_compat.h with, and to compile a
 * program with that was written for them.
 */
#ifndef LAWN_TEST_UCS_COMPAT_ORIGINAL_H
#define LAWN_TEST_UCS_COMPAT_ORIGINAL_H

#include <ucs/datastruct/list.h>
#include <ucs/time/time_def.h>
#include <ucs/type/spinlock.h>
#include <ucs/type/status.h>

#include <limits.h>

#define UCS_TIME_INFINITY ULLONG_MAX

BEGIN_C_DECLS

typedef struct ucs_wtimer ucs_wtimer_t;
typedef void (*ucs_twheel_callback_t)(ucs_wtimer_t *self);

struct ucs_wtimer {
    ucs_twheel_callback_t cb;
    ucs_list_link_t list;
    int is_active;
};

typedef struct ucs_timer_wheel {
    ucs_time_t res;
    ucs_time_t now;
    uint64_t current;
    ucs_list_link_t *wheel;
    unsigned res_order;
    unsigned num_slots;
    unsigned count;
} ucs_twheel_t;

ucs_status_t ucs_twheel_init(ucs_twheel_t *wheel, ucs_time_t resolution,
                             ucs_time_t now);
void ucs_twheel_cleanup(ucs_twheel_t *wheel);
ucs_status_t ucs_wtimer_init(ucs_wtimer_t *timer, ucs_twheel_callback_t cb);
void __ucs_twheel_sweep(ucs_twheel_t *wheel, ucs_time_t now);
void __ucs_wtimer_add(ucs_twheel_t *wheel, ucs_wtimer_t *timer,
                      ucs_time_t delta);

static inline void ucs_twheel_sweep(ucs_twheel_t *wheel, ucs_time_t now)
{
    if (now - wheel->now >= wheel->res) {
        __ucs_twheel_sweep(wheel, now);
    }
}

static inline ucs_time_t ucs_twheel_get_time(ucs_twheel_t *wheel)
{
    return wheel->now;
}

static inline int ucs_twheel_is_empty(ucs_twheel_t *wheel)
{
    return wheel->count == 0;
}

static inline ucs_status_t ucs_wtimer_add(ucs_twheel_t *wheel,
                                          ucs_wtimer_t *timer, ucs_time_t delta)
{
    if (timer->is_active) {
        return UCS_ERR_BUSY;
    }
    __ucs_wtimer_add(wheel, timer, delta);
    return UCS_OK;
}

static inline void ucs_wtimer_remove(ucs_twheel_t *wheel, ucs_wtimer_t *timer)
{
    if (timer->is_active) {
        timer->is_active = 0;
        ucs_list_del(&timer->list);
        wheel->count--;
    }
}

typedef struct ucs_timer {
    ucs_time_t expiration;
    ucs_time_t interval;
    int id;
} ucs_timer_t;

typedef struct ucs_timer_queue {
    ucs_recursive_spinlock_t lock;
    ucs_time_t min_interval;
    ucs_timer_t *timers;
    unsigned num_timers;
} ucs_timer_queue_t;

ucs_status_t ucs_timerq_init(ucs_timer_queue_t *queue);
void ucs_timerq_cleanup(ucs_timer_queue_t *queue);
ucs_status_t ucs_timerq_add(ucs_timer_queue_t *queue, int id,
                            ucs_time_t interval);
ucs_status_t ucs_timerq_remove(ucs_timer_queue_t *queue, int id);

static inline ucs_time_t ucs_timerq_min_interval(ucs_timer_queue_t *queue)
{
    return queue->min_interval;
}

static inline int ucs_timerq_size(ucs_timer_queue_t *queue)
{
    return (int)queue->num_timers;
}

static inline int ucs_timerq_is_empty(ucs_timer_queue_t *queue)
{
    return queue->num_timers == 0;
}

#define ucs_timerq_for_each_expired(timer, queue, now, code)                   \
    {                                                                          \
        const ucs_time_t present = (now);                                      \
        ucs_recursive_spin_lock(&(queue)->lock);                               \
        for ((timer) = (queue)->timers;                                        \
             (timer) != (queue)->timers + (queue)->num_timers; (timer)++) {    \
            if ((timer)->expiration <= present) {                              \
                (timer)->expiration = present + (timer)->interval;             \
                code;                                                          \
            }                                                                  \
        }                                                                      \
        ucs_recursive_spin_unlock(&(queue)->lock);                             \
    }

END_C_DECLS

#endif
