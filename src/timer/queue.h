// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The queues. Some are for a single TTL each, found by its hash: their timers
// check at their deadlines. Each TTL class has one more, for the TTLs of the
// class that have none. Timers stand in the order of their checks, which each
// holds in 29 bits, to be read back from the last check of the queue. They
// count steps of a 2^17th of the class's width, a tick at least, and so reach
// back over 128 times the longest TTL of the class. A queue that was left alone
// for longer takes no more until it is worked off.

#ifndef LAWN_SRC_TIMER_QUEUE_H
#define LAWN_SRC_TIMER_QUEUE_H

#include "base/ticks.h"
#include "timer/link.h"
#include "timer/place.h"
#include "timer/ttl_class.h"

namespace lawn
{

// Queues are numbered: those of the classes first.
constexpr unsigned first_single = class_count;
constexpr unsigned single_bits = 10;
constexpr unsigned queue_count = first_single + (1U << single_bits);

constexpr bool is_single(unsigned q)
{
    return q >= first_single;
}

// What a start touches is in one cache line.
struct alignas(64) Queue {
    lawn_link_t head;
    lawn_time_t ttl;   // of a single: its own, or its last when it is empty
    lawn_time_t last;  // steps; no check in the queue is later
    lawn_time_t limit; // no check beyond this fits in behind the head's
    size_t strays;     // timers that are stray or paused
    unsigned shift;    // log2 of the ticks in a step
    unsigned ttl_class;
};

inline void set_class(Queue *queue, unsigned c)
{
    const unsigned octave = c >> class_bits; // its width is 2^(octave - 1)
    queue->ttl_class = c;
    queue->shift = octave > 18 ? octave - 18 : 0;
}

// The queue of a TTL alone, or nullptr: a TTL takes one of two if it is empty.
inline Queue *single_queue(Queue *queues, lawn_time_t ttl)
{
    const uint64_t hash = ttl * UINT64_C(0x9e3779b97f4a7c15);
    Queue *const singles = &queues[first_single];
    Queue *const one = &singles[hash >> (64 - single_bits)];
    if (LAWN_LIKELY(one->ttl == ttl)) {
        return one;
    }
    Queue *const other = &singles[(hash << single_bits) >> (64 - single_bits)];
    if (other->ttl == ttl) {
        return other;
    }
    Queue *const free = list_is_empty(&one->head)     ? one
                        : list_is_empty(&other->head) ? other
                                                      : nullptr;
    if (free) {
        free->ttl = ttl;
        set_class(free, class_of(ttl));
    }
    return free;
}

// The first check of the queue is this; INFINITY for none.
inline void set_first_check(Queue *queue, lawn_time_t check)
{
    queue->limit = add_saturating(check, check_mask << queue->shift);
}

// To the end of queue `q`, behind whose head the check fits. It is rounded down
// to a step.
inline void queue_append(Queue *queue, unsigned q, lawn_timer_t *timer,
                         lawn_time_t check, Where where)
{
    queue->last = check >> queue->shift;
    timer->place = turn_of(timer) | (queue->last & check_mask) << check_shift |
                   uint64_t{q} << queue_shift | where;
    list_append(&queue->head, &timer->link);
}

inline lawn_time_t check_of(const Queue *queue, const lawn_timer_t *timer)
{
    const uint64_t back = queue->last - (timer->place >> check_shift);
    return (queue->last - (back & check_mask)) << queue->shift;
}

// Takes a timer out of the queue that it is in.
inline void take(Queue *queue, lawn_timer_t *timer)
{
    list_remove(&timer->link);
    queue->strays -= where_is(timer) != native;
}

} // namespace lawn

#endif
