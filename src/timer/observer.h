// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An observer is told everything that is done to a lawn, as it is done and in
// its order. It is how a trace is recorded (engine/trace.h) without the timers
// knowing of files.

#ifndef LAWN_SRC_TIMER_OBSERVER_H
#define LAWN_SRC_TIMER_OBSERVER_H

#include "base/base.h"

#include <lawn/timer.h>

namespace lawn
{

enum class Event {
    start,   // also a re-arm
    stop,    // also of an idle timer; and of each timer that a drain hands over
    pause,   // likewise
    fire,    // before the callback
    advance, // before its timers fire; one that comes from a callback is none
};

struct Observer {
    // `now` is the latest time that the lawn has seen, for `fire` that of the
    // pass, which may be earlier; no `timer` with `advance`, and a `ttl` only
    // with `start`. It may do nothing to the lawn.
    void (*event)(Observer *observer, Event event, const lawn_timer_t *timer,
                  lawn_time_t now, lawn_time_t ttl);
};

inline void report(const lawn_t *lawn, Event event, const lawn_timer_t *timer,
                   lawn_time_t now, lawn_time_t ttl)
{
    if (LAWN_UNLIKELY(lawn->observer != nullptr)) {
        Observer *const observer = static_cast<Observer *>(lawn->observer);
        observer->event(observer, event, timer, now, ttl);
    }
}

// Tells `observer` (nullptr: nobody) what is done to `lawn` from now on. Not
// from inside a pass.
void observe(lawn_t *lawn, Observer *observer);

// True in the callbacks of an advance or a drain.
bool is_busy(const lawn_t *lawn);

} // namespace lawn

#endif
