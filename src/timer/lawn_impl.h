// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structure behind lawn_t; lawn/timer.h draws it.

#ifndef LAWN_SRC_TIMER_LAWN_IMPL_H
#define LAWN_SRC_TIMER_LAWN_IMPL_H

#include "timer/bounds.h"
#include "timer/link.h"
#include "timer/near.h"
#include "timer/ttl_class.h"

#include "base/base.h"

#include <lawn/timer.h>

namespace lawn
{

// Where a timer is: the low bits of its order. Zero is idle, so that a
// zero-filled timer is.
enum Where : uint64_t {
    idle = 0,
    paused = 1, // in a queue, but not running
    queued = 2, // in a queue
    listed = 3, // in a list that is not a queue: deferred, or being drained
    near = 4,   // in the tree
};

constexpr unsigned where_bits = 3;
constexpr uint64_t where_mask = (uint64_t{1} << where_bits) - 1;

inline uint64_t where_is(const lawn_timer_t *timer)
{
    return timer->order & where_mask;
}

inline void set_where(lawn_timer_t *timer, Where where)
{
    timer->order = (timer->order & ~where_mask) | where;
}

// The timers of one TTL class, in the order of their checks.
struct Queue {
    lawn_link_t head;
    lawn_time_t last_check; // no check in the queue is later
    lawn_time_t sole_ttl;   // starts with this TTL check at their deadline
    lawn_time_t last_ttl;   // of the latest start
};

// What remains below this goes to the tree: 2 us of a 2 GHz counter.
constexpr lawn_time_t near_ticks = 4096;

constexpr unsigned bounds_leaves = 1024;
static_assert(bounds_leaves >= class_count, "a leaf for each class");

} // namespace lawn

struct lawn_impl {
    lawn_time_t now;  // the latest time seen
    lawn_time_t next; // nothing to do before this
    uint64_t starts;  // numbers them
    size_t running;
    bool busy; // in an advance or a drain: deadlines <= now wait
    unsigned max_moves;
    lawn_link_t deferred; // started with ttl 0 in the pass that runs
    lawn::Near near;
    lawn_allocator_t allocator;
    lawn::Bounds<lawn::bounds_leaves> bounds; // of the heads' checks
    lawn::Queue queues[lawn::class_count];
};

#endif
