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

bool is_alarm(const lawn_timer_t *timer);

inline Queue *queue_of(const lawn_timer_t *alarm)
{
    return reinterpret_cast<const Alarm *>(alarm)->queue;
}

// Returns true if the timer runs and is no alarm.
inline bool is_running(const lawn_timer_t *timer)
{
    return is_linked(timer) && !is_paused(timer) && !is_alarm(timer);
}

// Handles a touched timer that is not due. If it was paused, the lawn forgets
// it. Otherwise it is filed again. The caller has taken it out of its list.
LAWN_COLD_PATH inline void put_off(Lawn *lawn, Pass *pass, lawn_timer_t *timer)
{
    ++pass->moved;
    if (is_paused(timer)) {
        timer->link.next = nullptr;
    } else {
        LAWN_PROBE(move, timer, lawn, pass->now);
        file(lawn, timer);
    }
}

// Takes the timer out of its list, then fires it or puts it off.
inline void touch(Lawn *lawn, Pass *pass, lawn_timer_t *timer)
{
    LAWN_ASSERT(is_in_place(&timer->link) && "no timer was lost while it ran");
    list_remove(&timer->link);
    --pass->left;
    if (LAWN_UNLIKELY(timer->deadline > pass->now)) {
        put_off(lawn, pass, timer);
        return;
    }
    end_run(lawn, timer);
    if (lawn->late && !is_alarm(timer)) {
        lawn_histogram_add(lawn->late, pass->now - timer->check);
    }
    if (LAWN_UNLIKELY(lawn->observer != nullptr) && !is_alarm(timer)) {
        report(lawn, LAWN_EVENT_FIRE, timer, pass->now, 0);
    }
    if (timer->expired) {
        const lawn_time_t now = pass->now;
        LAWN_PROBE(fire, timer, lawn, now);
        timer->expired(timer, now);
    }
}

} // namespace lawn

#endif
