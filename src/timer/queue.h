// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The queues. Each TTL class has two: one for a single TTL, whose timers check
// at their deadlines, and one for all others of the class. Timers stand in the
// order of their checks, which each holds in 29 bits, to be read back from the
// last check of the queue. They count steps of a 2^18th of the class's width, a
// tick at least, and so reach back over 128 times the longest TTL of the class.
// A queue that was left alone for longer takes no more until it is worked off.

#ifndef LAWN_SRC_TIMER_QUEUE_H
#define LAWN_SRC_TIMER_QUEUE_H

#include "base/ticks.h"
#include "timer/link.h"
#include "timer/place.h"
#include "timer/ttl_class.h"

namespace lawn
{

struct Queue {
    lawn_link_t head;
    lawn_time_t last_check; // no check in the queue is later
    lawn_time_t sole_ttl;   // the single TTL, while there are timers with it
    size_t strays;          // timers that are stray or paused
};

// Queues are numbered: 2c that of a single TTL of class c, 2c+1 the other.
constexpr unsigned queue_count = 2 * class_count;

// log2 of the ticks in a step.
constexpr unsigned step_shift(unsigned q)
{
    const unsigned octave = q / 2 >> class_bits; // its width is 2^(octave - 1)
    return octave > 18 ? octave - 18 : 0;
}

inline lawn_time_t round_to_step(lawn_time_t time, unsigned q)
{
    return time >> step_shift(q) << step_shift(q);
}

// How far the last check may be behind the first.
constexpr lawn_time_t reach(unsigned q)
{
    return check_mask << step_shift(q);
}

inline void set_check(lawn_timer_t *timer, lawn_time_t check, unsigned q)
{
    const uint64_t steps = (check >> step_shift(q)) & check_mask;
    timer->place =
        (timer->place & ~(check_mask << check_shift)) | steps << check_shift;
}

inline lawn_time_t check_of(const Queue *queue, unsigned q,
                            const lawn_timer_t *timer)
{
    const lawn_time_t last = queue->last_check >> step_shift(q);
    const uint64_t steps = (last - (timer->place >> check_shift)) & check_mask;
    return (last - steps) << step_shift(q);
}

} // namespace lawn

#endif
