// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The inside of a TTL queue (lawn/queue.h). Its timers are in a list of their
// own, with a check of INFINITY, so that lawn_timer_start() is never inline for
// them. What brings the queue to the lawn's attention is its alarm, a timer
// like others but for two things: it is not counted as running, and nobody
// sees it fire.

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
    lawn_link_t deferred; // with a TTL of 0: not for the pass that runs
    Queue *next_deferred; // that has some
    Alarm alarm;
    Queue *next; // of the lawn's
    Queue *prev;
    bool is_deferred; // in the lawn's list of those
    bool is_owned;    // by the lawn, which frees it when it is destroyed
};

// Makes an empty queue in memory of the caller's.
void queue_open(Queue *queue, lawn_t *lawn, lawn_time_t ttl);

// Lets go of its timers and takes it out of its lawn.
void queue_close(Queue *queue);

// Ends a pass for the queues that have deferred timers.
void end_deferral(Lawn *lawn);

bool is_alarm(const lawn_timer_t *timer);

inline Queue *queue_of(const lawn_timer_t *alarm)
{
    return reinterpret_cast<const Alarm *>(alarm)->queue;
}

inline Queue *impl_of(lawn_queue_t *queue)
{
    return static_cast<Queue *>(queue);
}

// True for the head of one of the lawn's lists.
bool is_head(const Lawn *lawn, const lawn_link_t *link);

// Takes the timer out of its list, then fires it, lets go of it if it was
// paused, or files it anew.
inline void touch(Lawn *lawn, Pass *pass, lawn_timer_t *timer)
{
    list_remove(&timer->link);
    --pass->left;
    if (LAWN_UNLIKELY(timer->deadline > pass->now)) {
        ++pass->moved;
        if (timer->deadline == LAWN_TIME_INFINITY) {
            timer->link.next = nullptr;
        } else {
            file(lawn, timer);
        }
        return;
    }
    end_run(lawn, timer);
    if (LAWN_UNLIKELY(lawn->observer != nullptr) && !is_alarm(timer)) {
        report(lawn, Event::fire, timer, pass->now, 0);
    }
    if (timer->expired) {
        timer->expired(timer, pass->now);
    }
}

} // namespace lawn

#endif
