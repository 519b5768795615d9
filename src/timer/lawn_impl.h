// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lawn: its fields, and how a timer is filed and touched. lawn/timer.h has
// the idea, doc/design.md a picture. Other rooms include inside.h instead.
//
// The invariants, which lawn_check() verifies:
//   1. In a slot, check <= deadline, and checks do not decrease towards the
//      tail. While timers of a begun slot are left over, the slot may also hold
//      timers for 64 slots later, behind those left over.
//   2. A slot that holds a timer has its bit set. The bit of an empty slot may
//      be set too, because a stop does not know the slot. A class has its bit
//      set if and only if one of its slots has.
//   3. No slot holds a timer with a check at or before `done`.
//   4. Outside of passes, `wake` is at or before every check in a slot and
//      every deadline in `due`. If the inline limit is 0, it need only be at or
//      before every deadline: no inline re-arm can then set a deadline before
//      `wake`.
//   5. If a queue holds a timer, its alarm is in the lawn, with a deadline no
//      later than that of any of its timers.

#ifndef LAWN_SRC_TIMER_LAWN_IMPL_H
#define LAWN_SRC_TIMER_LAWN_IMPL_H

#include "base/probe.h"
#include "base/ticks.h"
#include "timer/check.h"
#include "timer/inside.h"
#include "timer/list.h"
#include "timer/observer.h"
#include "timer/queue.h"
#include "timer/slots.h"

namespace lawn
{

// Inline functions handle only deadlines and checks below this value. A timer
// in `due` or in a queue has a check at or above it: see the member due_check.
constexpr lawn_time_t open_limit = lawn_time_t{1} << 63;

struct alignas(64) Lawn : LawnState {
    lawn_time_t wake; // the same as `next`, but `next` is 0 with an observer
    lawn_time_t done; // the slots that began at or before it are done
    // The round that is being worked on: what the slots hold that began at or
    // before this time,
    lawn_time_t round_time;
    lawn_time_t round_check; // and what is in `due` with a check before this
    lawn_link_t due;         // timers in no slot, for the next round
    // The check of a timer that is put into `due` or a queue: 2^63 and the
    // number of the latest advance or drain, which skips timers that carry it.
    lawn_time_t due_check;
    // Of the advance that runs:
    lawn_time_t pass_time;   // timers that are due by then fire
    lawn_time_t quiet_until; // of those due before, only their callbacks know
    size_t budget_left;      // timers that may still be touched
    Queue *queues;           // list of all queues
    Kind kinds[kind_count];  // those that nobody has set are alarms
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

// ---- Timers

// NULL if the program has made the timer.
inline const Kind *kind_of(const Lawn *lawn, const lawn_timer_t *timer)
{
    for (const Kind &kind : lawn->kinds) {
        if (timer->expired == kind.expired) {
            return &kind;
        }
    }
    return nullptr;
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

// Returns the first timer of `due` or of a queue. Returns NULL if there is none
// that was put there before this advance or drain.
inline lawn_timer_t *first_old(const Lawn *lawn, lawn_link_t *list)
{
    lawn_timer_t *const first = timer_of(list->next);
    return list_is_empty(list) || first->check == lawn->due_check ? nullptr
                                                                  : first;
}

// ---- Where a timer is filed

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

// ---- Slots that have timers

// Calls `visit` for the slots with a bit that begin after `done` and before
// `end`, which `visit` may change. Returns false if `visit` does, which ends
// it.
template <class Visit>
bool each_slot(Lawn *lawn, const lawn_time_t &end, Visit visit)
{
    for (uint64_t classes = lawn->occupied; classes; classes &= classes - 1) {
        const unsigned c = lowest_bit(classes);
        // Slots of this class and of higher classes begin then or later.
        if ((slot_of(c, lawn->done) + 1) << shift_of(c) >= end) {
            break;
        }
        for (uint64_t bits = lawn->filled[c]; bits != 0;) {
            const lawn_time_t begin = first_begin(c, bits, lawn->done);
            if (begin >= end) {
                break;
            }
            const lawn_time_t slot = slot_of(c, begin);
            bits &= ~bit_of(slot);
            if (!visit(begin, &lawn->slots[index_of(c, slot)])) {
                return false;
            }
            // `visit` may have found that it needs no later slot.
            if (end <= begin) {
                break;
            }
        }
    }
    return true;
}

// Clears the bits of a slot that has become empty.
inline void clear_if_empty(Lawn *lawn, const lawn_link_t *slot)
{
    if (list_is_empty(slot)) {
        const size_t index = static_cast<size_t>(slot - lawn->slots);
        const size_t c = index / slot_count;
        lawn->filled[c] &= ~bit_of(index);
        lawn->occupied &= ~(uint64_t{lawn->filled[c] == 0} << c);
    }
}

// ---- Passes: advances and drains

// Begins a pass.
void enter(Lawn *lawn);

// Ends a pass: sets `wake` and the inline limit to their values outside of
// passes.
void reopen(Lawn *lawn);

inline void call_back(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->expired) {
        const lawn_time_t now = lawn->pass_time;
        LAWN_PROBE(fire, timer, lawn, now);
        timer->expired(timer, now);
    }
}

// Handles a touched timer that is not due, or that somebody else must be told
// of.
bool touch_slow(Lawn *lawn, lawn_timer_t *timer);

// Fires the timer or puts it off. The caller has taken it out of its list.
// Returns false if this was the last one of the budget.
inline bool touch(Lawn *lawn, lawn_timer_t *timer)
{
    if (LAWN_LIKELY(timer->deadline < lawn->quiet_until)) {
        end_run(lawn, timer);
        call_back(lawn, timer);
        return --lawn->budget_left != 0;
    }
    return touch_slow(lawn, timer);
}

// ---- Starts

// Sees to all that a start does beside the timer: wakes a settled lawn, and
// tells the observer. Returns the deadline, which is `never` at most.
lawn_time_t announce_start(Lawn *lawn, const lawn_timer_t *timer,
                           lawn_time_t deadline);

// Makes a timer of any state run. The caller puts it into a list.
inline void begin_run(Lawn *lawn, lawn_timer_t *timer, lawn_time_t deadline)
{
    if (LAWN_UNLIKELY(is_linked(timer))) {
        lawn->running -= !is_paused(timer);
        list_remove(&timer->link);
    }
    ++lawn->running;
    timer->deadline = deadline;
}

} // namespace lawn

#endif
