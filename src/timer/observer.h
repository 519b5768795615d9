// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Tells the observer of a lawn (lawn/observer.h).

#ifndef LAWN_SRC_TIMER_OBSERVER_H
#define LAWN_SRC_TIMER_OBSERVER_H

#include <lawn/observer.h>

namespace lawn
{

inline void report(const lawn_t *lawn, lawn_event_t event,
                   const lawn_timer_t *timer, lawn_time_t now, lawn_time_t ttl)
{
    if (LAWN_UNLIKELY(lawn->observer != nullptr)) {
        lawn_observer_t *const observer =
            static_cast<lawn_observer_t *>(lawn->observer);
        observer->event(observer, event, timer, now, ttl);
    }
}

} // namespace lawn

#endif
