// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a lawn is made of, and how a timer is filed in it. lawn/timer.h tells
// the idea and doc/design.md has a picture. lawn_check() walks the invariants:
//   - In a slot, check <= deadline, and checks do not decrease towards the
//     tail. A slot that is late may hold timers for 64 slots on, behind those
//     that are late.
//   - A slot with a timer in it has its bit. A bit may stand for an empty slot:
//     stop does not know the slot. A class has a bit if one of its slots has.
//   - No slot holds a timer with a check at or before `seen`.
//   - `wake` <= every check in a slot, and <= every deadline in `due`. After
//     lawn_settle() only <= every deadline, and the limit is closed, so that no
//     inline re-arm may undercut it.
//   - A queue with a timer in it has its alarm in the lawn, no later than the
//     deadline of any of its timers.

#ifndef LAWN_SRC_TIMER_LAWN_IMPL_H
#define LAWN_SRC_TIMER_LAWN_IMPL_H

#include "base/base.h"
#include "base/ticks.h"
#include "timer/observer.h"
#include "timer/slots.h"

#include <lawn/stats.h>

namespace lawn
{

struct Queue;

constexpr lawn_time_t never = LAWN_TIME_INFINITY - 1; // runs, and never fires
// Deadlines and checks that inline functions may handle are below. What is due
// at once or in a queue has a check from here on: see due_check().
constexpr lawn_time_t open_limit = lawn_time_t{1} << 63;

// One advance.
struct Pass {
    lawn_time_t now;
    size_t left;  // of the budget, in timers touched
    size_t moved; // touched and not fired
};

struct alignas(64) Lawn : lawn_t {
    lawn_time_t wake;  // `next`, which is 0 when there is an observer
    lawn_time_t seen;  // all slots that began until then are done
    lawn_time_t until; // those that began until then are being done
    uint64_t passes;   // advances and drains that have begun
    lawn_link_t due;   // at the next advance: in no slot
    bool busy;         // in an advance or a drain
    bool is_settled;   // `wake` may be later than the begin of a slot
    bool slots_first;  // of the slots and `due`, in the next advance
    Pass *pass;        // that runs
    Queue *queues;     // all
    Queue *firing;     // whose timers fire now
    Queue *draining;   // from this one on
    // NULL, or asked of each timer that a drain takes out. False: it is a
    // shared one that was stopped, and not handed over.
    bool (*on_drain)(lawn_timer_t *timer);
    lawn_histogram_t *late; // NULL, or of the timers that fire
    // NULL, or told of each timer that a drain is about to hand over. It may be
    // one of a table's (lawn/keyed.h), which then lets go of its id.
    void (*on_hand_over)(lawn_timer_t *timer);
    lawn_allocator_t allocator;
    void *memory;                               // what was allocated
    uint64_t occupied;                          // a bit per class
    uint64_t filled[class_count];               // a bit per slot
    lawn_link_t slots[class_count][slot_count]; // heads of circular lists
};

inline Lawn *impl_of(lawn_t *lawn)
{
    return static_cast<Lawn *>(lawn);
}

inline const Lawn *impl_of(const lawn_t *lawn)
{
    return static_cast<const Lawn *>(lawn);
}

// For assertions, of what is in a list: whether its neighbours point back. They
// do not when a timer that runs was initialised anew, freed or overwritten.
inline bool is_in_place(const lawn_link_t *link)
{
    const auto is_link = [](const lawn_link_t *at) {
        return at &&
               reinterpret_cast<uintptr_t>(at) % alignof(lawn_link_t) == 0;
    };
    return is_link(link->next) && is_link(link->prev) &&
           link->next->prev == link && link->prev->next == link;
}

// The link is a timer's first member.
inline lawn_timer_t *timer_of(lawn_link_t *link)
{
    return reinterpret_cast<lawn_timer_t *>(link);
}

inline const lawn_timer_t *timer_of(const lawn_link_t *link)
{
    return reinterpret_cast<const lawn_timer_t *>(link);
}

inline bool list_is_empty(const lawn_link_t *head)
{
    return head->next == head;
}

inline void list_append(lawn_link_t *head, lawn_link_t *link)
{
    lawn_link_t *const last = head->prev;
    link->next = head;
    link->prev = last;
    last->next = link;
    head->prev = link;
}

inline void list_remove(lawn_link_t *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
}

inline bool is_linked(const lawn_timer_t *timer)
{
    return timer->link.next != nullptr;
}

// Of a timer that may be in a list.
inline void unlink(lawn_timer_t *timer)
{
    if (is_linked(timer)) {
        list_remove(&timer->link);
        timer->link.next = nullptr;
    }
}

inline bool is_paused(const lawn_timer_t *timer)
{
    return timer->deadline == LAWN_TIME_INFINITY;
}

// Makes a running timer that is in no list idle, with its deadline still to be
// read by whoever is told of it.
inline void end_run(Lawn *lawn, lawn_timer_t *timer)
{
    timer->link.next = nullptr;
    timer->check = timer->deadline;
    timer->deadline = 0;
    --lawn->running;
}

// Tells in which pass, or after which, a timer was started that is due at once
// or in a queue: such a one is not for that pass.
inline lawn_time_t due_check(const Lawn *lawn)
{
    return open_limit + lawn->passes;
}

inline void set_wake(Lawn *lawn, lawn_time_t wake)
{
    lawn->wake = wake;
    lawn->next = lawn->observer ? 0 : wake;
}

inline void file_in_class(Lawn *lawn, lawn_timer_t *timer, unsigned c)
{
    const lawn_time_t slot = slot_of(c, timer->deadline);
    const lawn_time_t check = slot << shift_of(c);
    LAWN_ASSERT(is_in_place(&lawn->slots[c][slot % slot_count]) &&
                "no timer beside this one was lost while it ran");
    timer->check = check;
    list_append(&lawn->slots[c][slot % slot_count], &timer->link);
    lawn->filled[c] |= bit_of(slot);
    lawn->occupied |= uint64_t{1} << c;
    if (LAWN_UNLIKELY(check < lawn->wake)) {
        set_wake(lawn, check);
    }
}

// Files a timer whose deadline has come, or that has none at the end of time.
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

// Sets `wake` and the limit to what they are outside of passes.
void open(Lawn *lawn);

// Begins an advance or a drain; open() ends it.
void enter(Lawn *lawn);

// Of a timer that the caller says to be idle or the lawn's, as far as a short
// look shows: whether it is one at all, and whether it is another lawn's, for
// which a timer has no room.
bool is_sound(const lawn_timer_t *timer);
bool may_hold(const Lawn *lawn, const lawn_timer_t *timer);

inline void assert_own([[maybe_unused]] const Lawn *lawn,
                       [[maybe_unused]] const lawn_timer_t *timer)
{
    LAWN_ASSERT(is_sound(timer) && "the timer was initialised, and neither "
                                   "moved nor overwritten while it ran");
    LAWN_ASSERT(may_hold(lawn, timer) && "the timer is no other lawn's");
}

} // namespace lawn

#endif
