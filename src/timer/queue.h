// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The fields of a queue (lawn/queue.h), for those who have it in memory of
// their own; and its alarm.

#ifndef LAWN_SRC_TIMER_QUEUE_H
#define LAWN_SRC_TIMER_QUEUE_H

#include "timer/inside.h"

#include <lawn/queue.h>

namespace lawn
{

struct Queue;

// A lawn learns that a queue has due timers by the queue's alarm. The alarm is
// a timer that is filed like any other. But it does not count as running, and
// no observer or histogram is told that it fires.
struct Alarm {
    lawn_timer_t timer; // first, so that an alarm can be cast
    Queue *queue;
};

struct Queue : lawn_queue_t {
    Alarm alarm;
    // Behind the last timer that the queue's turn may touch. In the list only
    // during a turn. For all who walk the list, it is a paused timer.
    lawn_timer_t mark;
    Queue *next; // in the lawn's list
    Queue *prev;
    bool is_owned; // the lawn frees it in lawn_destroy()
};

// The callback of an alarm.
void on_alarm(lawn_timer_t *alarm, lawn_time_t now);

inline bool is_alarm(const lawn_timer_t *timer)
{
    return timer->expired == on_alarm;
}

// For a timer of a list. Returns true if the timer runs and is no alarm.
inline bool is_running(const lawn_timer_t *timer)
{
    return !is_paused(timer) && !is_alarm(timer);
}

inline Queue *queue_of(const lawn_timer_t *alarm)
{
    return reinterpret_cast<const Alarm *>(alarm)->queue;
}

// Makes an empty queue in memory that the caller owns.
void queue_open(Queue *queue, lawn_t *lawn, lawn_time_t ttl);

// Stops the queue's timers and takes the queue out of its lawn.
void queue_close(Queue *queue);

// Sets the alarm if it is not set and the queue has timers.
void set_alarm(Queue *queue);

} // namespace lawn

#endif
