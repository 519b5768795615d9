/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The symbols of the inline functions of lawn/timer.h and lawn/queue.h, for
 * callers that do not inline them. This file is C, because in C these
 * declarations are enough.
 */
#include <lawn/queue.h>

extern inline lawn_time_t lawn_see(lawn_t *lawn, lawn_time_t now);
extern inline void lawn_timer_init(lawn_timer_t *timer,
                                   lawn_expired_fn_t expired);
extern inline bool lawn_timer_is_active(const lawn_timer_t *timer);
extern inline lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer);
extern inline lawn_time_t lawn_now(const lawn_t *lawn);
extern inline void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer,
                                    lawn_time_t now, lawn_time_t ttl);
extern inline void lawn_timer_start_at(lawn_t *lawn, lawn_timer_t *timer,
                                       lawn_time_t now, lawn_time_t deadline);
extern inline bool lawn_timer_stop(lawn_t *lawn, lawn_timer_t *timer);
extern inline bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer);
extern inline unsigned lawn_advance(lawn_t *lawn, lawn_time_t now,
                                    unsigned budget);
extern inline void lawn_queue_start(lawn_queue_t *queue, lawn_timer_t *timer,
                                    lawn_time_t now);
extern inline lawn_time_t lawn_queue_ttl(const lawn_queue_t *queue);
