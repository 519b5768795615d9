// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a lawn is made of, and how a timer is filed in it. lawn/timer.h tells
// the idea and doc/design.md has a picture.
//
// Invariants, which lawn_check() walks:
//   - In a slot, check <= deadline, and checks do not decrease towards the
//     tail. A slot that is late may hold timers for 64 slots on, behind those
//     that are late.
//   - A slot with a timer in it has its bit, and its class has one. A bit may
//     stand for an empty slot: stop does not know the slot.
//   - No slot that began at or before `seen` holds a timer with a check at or
//     before `seen`.
//   - `wake` <= every check in a slot, and <= every deadline in `due`. After
//     lawn_settle() only <= every deadline, and the limit is closed, so that no
//     inline re-arm may undercut it.
//   - A queue with a timer in it has its alarm in the lawn, no later than the
//     deadline of any of its timers.

#ifndef LAWN_SRC_TIMER_LAWN_IMPL_H
#define LAWN_SRC_TIMER_LAWN_IMPL_H

#include "base/base.h"
#include "base/ticks.h"
#include "timer/link.h"
#include "timer/observer.h"
#include "timer/slots.h"

namespace lawn
{

struct Pass;
struct Queue;

constexpr lawn_time_t never = LAWN_TIME_INFINITY - 1; // runs, and never fires
constexpr lawn_time_t last_time = never - 1;          // of any advance
// Below this, a deadline may be handled inline: LAWN_IS_OPEN looks one lower.
constexpr lawn_time_t open_limit = never - 1;

struct alignas(64) Lawn : lawn_t {
    lawn_time_t wake;       // `next`, which is 0 when there is an observer
    lawn_time_t seen;       // all slots that began until then are done
    lawn_time_t until;      // those that began until then are being done
    uint64_t occupied;      // a bit per class
    lawn_link_t due;        // at once: in no slot
    lawn_link_t deferred;   // due, but not in the pass that runs
    bool busy;              // in a pass or a drain
    bool is_settled;        // `wake` may be later than a slot's begin
    bool slots_first;       // the pass before ended in `due`
    Pass *pass;             // that runs
    Queue *queues;          // all
    Queue *deferred_queues; // with timers that are deferred
    Queue *running_queue;   // whose timers fire now
    lawn_allocator_t allocator;
    void *memory;                 // what was allocated
    uint64_t filled[class_count]; // a bit per slot
    lawn_link_t slots[class_count][slot_count];
};

// One advance.
struct Pass {
    lawn_time_t now;
    size_t left;  // of the budget, in timers touched
    size_t moved; // touched and not fired
};

inline Lawn *impl_of(lawn_t *lawn)
{
    return static_cast<Lawn *>(lawn);
}

inline const Lawn *impl_of(const lawn_t *lawn)
{
    return static_cast<const Lawn *>(lawn);
}

inline bool is_linked(const lawn_timer_t *timer)
{
    return timer->link.next != nullptr;
}

inline bool is_active(const lawn_timer_t *timer)
{
    return is_linked(timer) && timer->deadline != LAWN_TIME_INFINITY;
}

inline void report(const Lawn *lawn, Event event, const lawn_timer_t *timer,
                   lawn_time_t now, lawn_time_t ttl)
{
    if (LAWN_UNLIKELY(lawn->observer != nullptr)) {
        Observer *const observer = static_cast<Observer *>(lawn->observer);
        observer->event(observer, event, timer, now, ttl);
    }
}

inline void set_wake(Lawn *lawn, lawn_time_t wake)
{
    lawn->wake = wake;
    lawn->next = lawn->observer ? 0 : wake;
}

// Takes a timer out of its list and leaves it idle, as if stopped.
inline void let_go(lawn_timer_t *timer)
{
    list_remove(&timer->link);
    timer->link.next = nullptr;
    timer->deadline = LAWN_TIME_INFINITY;
}

// Makes a running timer that is in no list idle, with its deadline still to be
// read, for whoever is told of it next.
inline void end_run(Lawn *lawn, lawn_timer_t *timer)
{
    timer->link.next = nullptr;
    timer->check = timer->deadline;
    timer->deadline = 0;
    --lawn->running;
}

// Puts a timer in a slot of class c.
inline void file_in_class(Lawn *lawn, lawn_timer_t *timer, unsigned c)
{
    const lawn_time_t slot = slot_of(c, timer->deadline);
    const lawn_time_t check = slot << shift_of(c);
    timer->check = check;
    list_append(&lawn->slots[c][slot % slot_count], &timer->link);
    lawn->filled[c] |= bit_of(slot);
    lawn->occupied |= uint64_t{1} << c;
    if (LAWN_UNLIKELY(check < lawn->wake)) {
        set_wake(lawn, check);
    }
}

// Puts a timer where it is due at once, or never: its deadline has come.
void file_due(Lawn *lawn, lawn_timer_t *timer);

// Puts a timer that is in no list where its deadline belongs.
inline void file(Lawn *lawn, lawn_timer_t *timer)
{
    if (LAWN_LIKELY(timer->deadline > lawn->now)) {
        file_in_class(lawn, timer, class_of(timer->deadline - lawn->now));
    } else {
        file_due(lawn, timer);
    }
}

// The begin of the first slot with a bit that is not done; INFINITY without.
lawn_time_t first_slot(const Lawn *lawn);

// Sets `wake` and the limit to what they are outside of passes.
void open(Lawn *lawn);

// Begin and end a pass or a drain.
void enter(Lawn *lawn);
void leave(Lawn *lawn);

#ifndef NDEBUG
// False for a timer that another lawn holds, that was moved or overwritten, as
// far as a short look shows: its list is not walked to the end. A timer has no
// room for its lawn.
bool may_hold(const Lawn *lawn, const lawn_timer_t *timer);
#endif

} // namespace lawn

#endif
