// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The inside of a TTL queue (lawn/queue.h). What brings it to its lawn's
// attention is its alarm, a timer like others but for two things: it does not
// count as running, and nobody sees it fire.

#ifndef LAWN_SRC_TIMER_QUEUE_H
#define LAWN_SRC_TIMER_QUEUE_H

#include "timer/lawn_impl.h"

#include <lawn/queue.h>

namespace lawn
{

struct Alarm {
    lawn_timer_t timer; // first
    Queue *queue;
};

struct Queue : lawn_queue_t {
    Alarm alarm;
    lawn_time_t turn; // what was due before this fires in one go
    Queue *next;      // of the lawn's
    Queue *prev;
    bool is_owned; // by the lawn, which frees it when it is destroyed
};

// Makes an empty queue in memory of the caller's.
void queue_open(Queue *queue, lawn_t *lawn, lawn_time_t ttl);

// Lets go of its timers and takes it out of its lawn.
void queue_close(Queue *queue);

bool is_alarm(const lawn_timer_t *timer);

inline Queue *queue_of(const lawn_timer_t *alarm)
{
    return reinterpret_cast<const Alarm *>(alarm)->queue;
}

// Running, and a program has started it.
inline bool is_running(const lawn_timer_t *timer)
{
    return is_linked(timer) && !is_paused(timer) && !is_alarm(timer);
}

// Takes the timer out of its list, then fires it, lets go of it if it was
// paused, or files it anew.
inline void touch(Lawn *lawn, Pass *pass, lawn_timer_t *timer)
{
    list_remove(&timer->link);
    --pass->left;
    if (LAWN_UNLIKELY(timer->deadline > pass->now)) {
        ++pass->moved;
        if (is_paused(timer)) {
            timer->link.next = nullptr;
        } else {
            file(lawn, timer);
        }
        return;
    }
    end_run(lawn, timer);
    if (lawn->late && !is_alarm(timer)) {
        lawn_histogram_add(lawn->late, pass->now - timer->check);
    }
    if (LAWN_UNLIKELY(lawn->observer != nullptr) && !is_alarm(timer)) {
        report(lawn, Event::fire, timer, pass->now, 0);
    }
    if (timer->expired) {
        timer->expired(timer, pass->now);
    }
}

} // namespace lawn

#endif
