// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The inside of a TTL queue (lawn/queue.h). What brings it to its lawn's
// attention is its alarm, a timer like others but for two things: it does not
// count as running, and nobody sees it fire.

#ifndef LAWN_SRC_TIMER_QUEUE_H
#define LAWN_SRC_TIMER_QUEUE_H

#include "base/probe.h"
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

// What is not due after all: lets go of a timer that was paused, or files it
// anew. In no list any more.
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
        report(lawn, Event::fire, timer, pass->now, 0);
    }
    if (timer->expired) {
        const lawn_time_t now = pass->now;
        LAWN_PROBE(fire, timer, lawn, now);
        timer->expired(timer, now);
    }
}

} // namespace lawn

#endif
