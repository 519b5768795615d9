/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The symbols of the inline functions of lawn/timer.h. C, because there this
 * declaration is all it takes.
 */
#include <lawn/timer.h>

extern inline void lawn_see(lawn_t *lawn, lawn_time_t now);
extern inline void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer,
                                    lawn_time_t now, lawn_time_t ttl);
extern inline bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer);
extern inline unsigned lawn_advance(lawn_t *lawn, lawn_time_t now,
                                    unsigned budget);
