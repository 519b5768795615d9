// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The queue of a TTL class. Its timers stand in the order of their checks,
// which each holds in 30 bits, to be read back from the last check of the
// queue. They count steps of a 2^18th of the class's width, a tick at least,
// and so reach back over 128 times the longest TTL of the class. A queue that
// was left alone for longer takes no more timers until it is worked off.

#ifndef LAWN_SRC_TIMER_QUEUE_H
#define LAWN_SRC_TIMER_QUEUE_H

#include "base/ticks.h"
#include "timer/link.h"
#include "timer/place.h"

namespace lawn
{

struct Queue {
    lawn_link_t head;
    lawn_time_t last_check; // no check in the queue is later
    lawn_time_t sole_ttl;   // starts with this TTL check at their deadline
    lawn_time_t last_ttl;   // of the latest start
    size_t strays;          // timers that are stray or paused
};

// log2 of the ticks in a step.
constexpr unsigned step_shift(unsigned c)
{
    return class_width(c) >> 18 == 0 ? 0 : (c >> class_bits) - 1 - 18;
}

inline lawn_time_t round_to_step(lawn_time_t time, unsigned c)
{
    return time >> step_shift(c) << step_shift(c);
}

// How far the last check may be behind the first.
constexpr lawn_time_t reach(unsigned c)
{
    return check_mask << step_shift(c);
}

inline uint64_t check_bits(lawn_time_t check, unsigned c)
{
    return ((check >> step_shift(c)) & check_mask) << check_shift;
}

inline lawn_time_t check_of(const Queue *queue, unsigned c,
                            const lawn_timer_t *timer)
{
    const lawn_time_t last = queue->last_check >> step_shift(c);
    const uint64_t steps = (last - (timer->place >> check_shift)) & check_mask;
    return (last - steps) << step_shift(c);
}

} // namespace lawn

#endif
