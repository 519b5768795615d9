// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The inside of a TTL queue (lawn/queue.h). A lawn learns that a queue has due
// timers by the queue's alarm. The alarm is a timer that is filed like any
// other. But it does not count as running, and no observer or histogram is told
// that it fires.

#ifndef LAWN_SRC_TIMER_QUEUE_H
#define LAWN_SRC_TIMER_QUEUE_H

#include "base/probe.h"
#include "timer/lawn_impl.h"

#include <lawn/queue.h>

namespace lawn
{

struct Alarm {
    lawn_timer_t timer; // first, so that an alarm can be cast
    Queue *queue;
};

struct Queue : lawn_queue_t {
    Alarm alarm;
    lawn_time_t turn; // this turn fires the timers due before this time
    Queue *next;      // in the lawn's list
    Queue *prev;
    bool is_owned; // the lawn frees it in lawn_destroy()
};

// Makes an empty queue in memory that the caller owns.
void queue_open(Queue *queue, lawn_t *lawn, lawn_time_t ttl);

// Stops the queue's timers and takes the queue out of its lawn.
void queue_close(Queue *queue);

// The callback of an alarm.
void on_alarm(lawn_timer_t *alarm, lawn_time_t now);

inline bool is_alarm(const lawn_timer_t *timer)
{
    return timer->expired == on_alarm;
}

inline Queue *queue_of(const lawn_timer_t *alarm)
{
    return reinterpret_cast<const Alarm *>(alarm)->queue;
}

// For a timer of a list. Returns true if the timer runs and is no alarm.
inline bool is_running(const lawn_timer_t *timer)
{
    return !is_paused(timer) && !is_alarm(timer);
}

inline void call_back(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->expired) {
        const lawn_time_t now = lawn->time;
        LAWN_PROBE(fire, timer, lawn, now);
        timer->expired(timer, now);
    }
}

// Handles a touched timer that is not due, or that somebody else must be told
// of.
bool touch_rest(Lawn *lawn, lawn_timer_t *timer);

// Fires the timer or puts it off. The caller has taken it out of its list.
// Returns false if this was the last one of the budget.
inline bool touch(Lawn *lawn, lawn_timer_t *timer)
{
    if (LAWN_LIKELY(timer->deadline < lawn->plain)) {
        end_run(lawn, timer);
        call_back(lawn, timer);
        return --lawn->left != 0;
    }
    return touch_rest(lawn, timer);
}

} // namespace lawn

#endif
