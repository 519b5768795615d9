// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_timer.place in words: where a timer is, its queue, when to
// look at it, and its turn among the starts of one tick. One word, so that a
// node is 40 bytes and a re-arm writes two neighbouring words.

#ifndef LAWN_SRC_TIMER_PLACE_H
#define LAWN_SRC_TIMER_PLACE_H

#include <lawn/timer.h>

namespace lawn
{

// Zero is idle, so that a zero-filled timer is.
enum Where : uint64_t {
    idle = 0,
    paused = LAWN_PLACE_PAUSED, // in a queue, but not running
    stray = LAWN_PLACE_STRAY,   // in a queue: re-armed there, or moved to it
    native = 3,                 // in a queue, where its latest start put it
    listed = 4, // in a list that is not a queue: deferred, or being drained
    near = 5,   // in the tree
    dated = 6,  // in the calendar
};

constexpr unsigned queue_shift = LAWN_PLACE_WHERE_BITS;
constexpr unsigned check_shift = queue_shift + LAWN_PLACE_QUEUE_BITS;
static_assert(check_shift + LAWN_PLACE_CHECK_BITS == LAWN_PLACE_TURN_SHIFT,
              "the fields of a place fill it");

constexpr uint64_t check_mask = (uint64_t{1} << LAWN_PLACE_CHECK_BITS) - 1;
constexpr uint64_t turn_mask = ~(LAWN_PLACE_TURN_ONE - 1);

inline uint64_t where_is(const lawn_timer_t *timer)
{
    return timer->place & LAWN_PLACE_WHERE_MASK;
}

inline void set_where(lawn_timer_t *timer, Where where)
{
    timer->place = (timer->place & ~LAWN_PLACE_WHERE_MASK) | where;
}

inline bool is_in_queue(const lawn_timer_t *timer)
{
    return where_is(timer) - paused <= native - paused;
}

inline unsigned queue_of(const lawn_timer_t *timer)
{
    return static_cast<unsigned>(timer->place >> queue_shift) &
           ((1U << LAWN_PLACE_QUEUE_BITS) - 1);
}

inline uint64_t turn_of(const lawn_timer_t *timer)
{
    return timer->place & turn_mask;
}

inline void set_turn(lawn_timer_t *timer, uint64_t turn)
{
    timer->place = (timer->place & ~turn_mask) | turn;
}

} // namespace lawn

#endif
