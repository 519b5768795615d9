// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structure behind lawn_t; lawn/timer.h draws it.
//
// What holds between calls, and lawn_check() verifies:
//   1. A timer's check is <= its deadline.
//   2. Checks do not decrease along a queue.
//   3. A queue's bound is <= the check of its head. It may be too low, after a
//      stop; the next visit mends it.
//   4. Natives with one TTL are in the order of their starts in one queue, or
//      the earlier ones in that of their class and the later in a single's.
//   5. A queue's stray bound is >= its bound, and <= the check of each stray.
//
// Never early is plain: only a timer with deadline <= now is fired. Never late
// follows from 1 to 3: while a deadline is <= now, so is some bound or the
// tree's first, and an advance goes on until none is. In order, for timers of
// one TTL, whose deadlines are in the order of their starts: natives are by 4,
// as one in a single's queue fires only when none in the class's can have a
// deadline as early; and any native only when no stray can, by 1 and 5; a stray
// only when no other timer at all can. What is due and may not fire
// yet waits in the tree, or in the calendar to be put there.

#ifndef LAWN_SRC_TIMER_LAWN_IMPL_H
#define LAWN_SRC_TIMER_LAWN_IMPL_H

#include "timer/bounds.h"
#include "timer/calendar.h"
#include "timer/near.h"
#include "timer/observer.h"
#include "timer/queue.h"

#include "base/base.h"
#include "base/ticks.h"

namespace lawn
{

// A timer that comes up goes to the tree when so little remains that about as
// many as this are there: a place in it costs less than a few more moves.
constexpr size_t near_count = 1024;
constexpr lawn_time_t least_near_span = 4096; // 2 us of a 2 GHz counter
constexpr lawn_time_t most_near_span = lawn_time_t{1} << 40;

constexpr unsigned bounds_leaves = 2048;
static_assert(bounds_leaves >= queue_count &&
                  1U << LAWN_PLACE_QUEUE_BITS >= queue_count,
              "room for each queue");

struct Lawn : lawn_impl {
    bool busy; // in an advance or a drain: deadlines <= now wait
    unsigned max_moves;
    lawn_time_t observed_next; // the `next` of a lawn that is observed
    lawn_link_t deferred;      // started with ttl 0 in the pass that runs
    Near near;
    lawn_time_t near_span; // what remains below this goes to the tree
    lawn_allocator_t allocator;
    void *memory; // what it gave, of which this is an aligned part
    Bounds<bounds_leaves> bounds;       // of the checks in each queue
    Bounds<bounds_leaves> stray_bounds; // of those of its strays
    Calendar calendar;
    Queue queues[queue_count];
};

inline Lawn *impl_of(lawn_t *lawn)
{
    return static_cast<Lawn *>(lawn);
}

inline const Lawn *impl_of(const lawn_t *lawn)
{
    return static_cast<const Lawn *>(lawn);
}

// Files a timer under the class of what remains of its time.
void enqueue(Lawn *lawn, lawn_timer_t *timer, Where where);

inline void insert_near(Lawn *lawn, lawn_timer_t *timer)
{
    set_where(timer, near);
    lawn->near.insert(timer);
}

// No deadline in the tree or the calendar is earlier.
inline lawn_time_t first_waiting(const Lawn *lawn)
{
    return earlier_of(lawn->near.first_deadline(), lawn->calendar.begin());
}

// When something is due next, or may be.
inline lawn_time_t find_next(const Lawn *lawn)
{
    return earlier_of(lawn->bounds.least(), first_waiting(lawn));
}

// While a lawn is observed, its `next` is 0, so that no advance ends inline.
inline void set_next(Lawn *lawn, lawn_time_t next)
{
    lawn->observed_next = next;
    lawn->next = lawn->observer ? 0 : next;
}

inline void report(const Lawn *lawn, Event event, const lawn_timer_t *timer,
                   lawn_time_t now, lawn_time_t ttl)
{
    if (LAWN_UNLIKELY(lawn->observer)) {
        Observer *const observer = static_cast<Observer *>(lawn->observer);
        observer->event(observer, event, timer, now, ttl);
    }
}

// Sets the bounds of a queue whose head may have changed.
void settle(Lawn *lawn, unsigned q);

// Ends what set `busy`: timers deferred meanwhile are due from now on.
void leave(Lawn *lawn);

} // namespace lawn

#endif
