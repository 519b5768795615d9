// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The fields of a lawn, and how a timer is filed in it. All of src/timer is
// built on this header. src/shared, src/shm and src/stats read these fields,
// too. lawn/timer.h has the idea and doc/design.md a picture.
//
// The invariants, which lawn_check() verifies:
//   - In a slot, check <= deadline, and checks do not decrease towards the
//     tail. While timers of a begun slot are left over, the slot may also hold
//     timers for 64 slots later, behind those left over.
//   - A slot that holds a timer has its bit set. The bit of an empty slot may
//     be set too, because a stop does not know the slot. A class has its bit
//     set if and only if one of its slots has.
//   - No slot holds a timer with a check at or before `seen`.
//   - Outside of passes, `wake` <= every check in a slot, and <= every deadline
//     in `due`. After lawn_settle() `wake` is only <= every deadline. The limit
//     is then closed, so that no inline re-arm can set a deadline before
//     `wake`.
//   - If a queue holds a timer, its alarm is in the lawn, with a deadline no
//     later than that of any of its timers. While the queue fires and during a
//     drain, this does not hold.

#ifndef LAWN_SRC_TIMER_LAWN_IMPL_H
#define LAWN_SRC_TIMER_LAWN_IMPL_H

#include "base/base.h"
#include "base/ticks.h"
#include "timer/slots.h"

#include <lawn/observer.h>
#include <lawn/stats.h>

namespace lawn
{

struct Queue;

constexpr lawn_time_t never = LAWN_TIME_INFINITY - 1; // runs, and never fires
// Inline functions handle only deadlines and checks below this value. A timer
// in `due` or in a queue has a check at or above it: see the member due_check.
constexpr lawn_time_t open_limit = lawn_time_t{1} << 63;

struct alignas(64) Lawn : lawn_t {
    lawn_time_t wake;  // the same as `next`, but `next` is 0 with an observer
    lawn_time_t seen;  // all slots that began at or before it are done
    lawn_time_t until; // the round does slots that began at or before it
    lawn_link_t due;   // timers in no slot, for the next advance
    // The check of a timer that is put into `due` or a queue: 2^63 and the
    // number of the latest advance or drain, which skips timers that carry it.
    lawn_time_t due_check;
    bool busy;        // an advance or a drain runs
    bool is_settled;  // `wake` may be later than the beginning of a slot
    bool slots_first; // the next advance does the slots before `due`
    // Of the advance that runs:
    lawn_time_t time;  // timers that are due by then fire
    lawn_time_t plain; // timers due before then fire and nobody else is told
    size_t left;       // of the budget, in timers to touch
    size_t moved;      // timers touched that did not fire
    Queue *queues;     // list of all queues
    Queue *firing;     // the queue whose timers fire now
    Queue *draining;   // the first queue that a drain has not emptied
    // NULL, or called for each timer that a drain takes out. Returns false if
    // the drain must not hand the timer over: it belongs to a shared timer that
    // was stopped.
    bool (*on_drain)(lawn_timer_t *timer);
    lawn_histogram_t *late; // NULL, or counts the lateness of timers that fire
    // NULL, or called for each timer that a drain is about to hand over. If the
    // timer belongs to a table (lawn/keyed.h), the table frees its id.
    void (*on_hand_over)(lawn_timer_t *timer);
    lawn_allocator_t allocator;
    void *memory;                                // what the allocator returned
    uint64_t occupied;                           // a bit per class
    uint64_t filled[class_count];                // a bit per slot
    lawn_link_t slots[class_count * slot_count]; // heads of circular lists
};

inline Lawn *impl_of(lawn_t *lawn)
{
    return static_cast<Lawn *>(lawn);
}

inline const Lawn *impl_of(const lawn_t *lawn)
{
    return static_cast<const Lawn *>(lawn);
}

#ifndef NDEBUG
// For assertions about a timer in a list: returns whether its neighbours point
// back to it. They do not if the timer was initialised, freed or overwritten
// while it ran.
inline bool is_in_place(const lawn_link_t *link)
{
    const auto is_link = [](const lawn_link_t *at) {
        return at &&
               reinterpret_cast<uintptr_t>(at) % alignof(lawn_link_t) == 0;
    };
    return is_link(link->next) && is_link(link->prev) &&
           link->next->prev == link && link->prev->next == link;
}
#endif

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

// Takes the first or the last link out of a list that is not empty. Prefetches
// the link that will be the second: a pass soon takes the link before it, and
// then writes to it.
inline void list_take_first(lawn_link_t *head)
{
    lawn_link_t *const next = head->next->next;
    __builtin_prefetch(next->next);
    head->next = next;
    next->prev = head;
}

inline void list_take_last(lawn_link_t *head)
{
    lawn_link_t *const prev = head->prev->prev;
    __builtin_prefetch(prev->prev);
    head->prev = prev;
    prev->next = head;
}

inline bool is_linked(const lawn_timer_t *timer)
{
    return timer->link.next != nullptr;
}

// The timer may be in a list or not.
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

// Makes a running timer idle. The caller has taken it out of its list. Its
// deadline moves to `check`, where lawn_timer_deadline() still finds it.
inline void end_run(Lawn *lawn, lawn_timer_t *timer)
{
    timer->link.next = nullptr;
    timer->check = timer->deadline;
    timer->deadline = 0;
    --lawn->running;
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
    lawn_link_t *head = &lawn->slots[index_of(c, slot)];
    __asm__("" : "+r"(head)); // or gcc computes the address twice
    LAWN_ASSERT(is_in_place(head) &&
                "no timer beside this one was lost while it ran");
    timer->check = check;
    list_append(head, &timer->link);
    lawn->filled[c] |= bit_of(slot);
    lawn->occupied |= uint64_t{1} << c;
    if (LAWN_UNLIKELY(check < lawn->wake)) {
        set_wake(lawn, check);
    }
}

// Files a timer whose deadline is not after the lawn's time. A timer with
// deadline `never` goes to a slot, because it must not fire even at the end of
// time.
void file_due(Lawn *lawn, lawn_timer_t *timer);

// Files a timer by its deadline. The timer must be in no list.
inline void file(Lawn *lawn, lawn_timer_t *timer)
{
    if (LAWN_LIKELY(timer->deadline > lawn->now)) {
        file_in_class(lawn, timer, class_of(timer->deadline - lawn->now));
    } else {
        file_due(lawn, timer);
    }
}

// Ends an advance or a drain: sets `wake` and the limit to their values outside
// of passes.
void open(Lawn *lawn);

inline void report(const lawn_t *lawn, lawn_event_t event,
                   const lawn_timer_t *timer, lawn_time_t now, lawn_time_t ttl)
{
    if (LAWN_UNLIKELY(lawn->observer != nullptr)) {
        lawn_observer_t *const observer =
            static_cast<lawn_observer_t *>(lawn->observer);
        observer->event(observer, event, timer, now, ttl);
    }
}

// Begins an advance or a drain. open() ends it.
void enter(Lawn *lawn);

// For assertions about a timer that should be idle or in this lawn. A timer
// does not store its lawn, so both functions only take a short look. is_sound()
// returns false if the timer cannot be one. may_hold() returns false if the
// timer is damaged or belongs to another lawn.
#ifndef NDEBUG
bool is_sound(const lawn_timer_t *timer);
bool may_hold(const Lawn *lawn, const lawn_timer_t *timer);
#endif

inline void assert_own([[maybe_unused]] const Lawn *lawn,
                       [[maybe_unused]] const lawn_timer_t *timer)
{
    LAWN_ASSERT(is_sound(timer) && "the timer was initialised, and neither "
                                   "moved nor overwritten while it ran");
    LAWN_ASSERT(may_hold(lawn, timer) && "the timer is no other lawn's");
}

} // namespace lawn

#endif
