// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The fields of a lawn and of a queue, and how a timer is filed and touched.
// All of src/timer is built on this header. src/shared, src/shm and src/stats
// read these fields, too. lawn/timer.h has the idea and doc/design.md a
// picture.
//
// The invariants, which lawn_check() verifies:
//   1. In a slot, check <= deadline, and checks do not decrease towards the
//      tail. While timers of a begun slot are left over, the slot may also hold
//      timers for 64 slots later, behind those left over.
//   2. A slot that holds a timer has its bit set. The bit of an empty slot may
//      be set too, because a stop does not know the slot. A class has its bit
//      set if and only if one of its slots has.
//   3. No slot holds a timer with a check at or before `seen`.
//   4. Outside of passes, `wake` is at or before every check in a slot and
//      every deadline in `due`. If the limit is closed, it need only be at or
//      before every deadline: no inline re-arm can then set a deadline before
//      `wake`.
//   5. If a queue holds a timer, its alarm is in the lawn, with a deadline no
//      later than that of any of its timers.

#ifndef LAWN_SRC_TIMER_LAWN_IMPL_H
#define LAWN_SRC_TIMER_LAWN_IMPL_H

#include "base/base.h"
#include "base/probe.h"
#include "base/ticks.h"
#include "timer/slots.h"

#include <lawn/observer.h>
#include <lawn/queue.h>
#include <lawn/stats.h>

namespace lawn
{

constexpr lawn_time_t never = LAWN_TIME_INFINITY - 1; // runs, and never fires
// Inline functions handle only deadlines and checks below this value. A timer
// in `due` or in a queue has a check at or above it: see the member due_check.
constexpr lawn_time_t open_limit = lawn_time_t{1} << 63;

struct Queue;

// A lawn learns that a queue has due timers by the queue's alarm. The alarm is
// a timer that is filed like any other. But it does not count as running, and
// no observer or histogram is told that it fires.
struct Alarm {
    lawn_timer_t timer; // first, so that an alarm can be cast
    Queue *queue;
};

struct Queue : lawn_queue_t {
    Alarm alarm;
    // Behind the last timer that the queue's turn may touch. In the list only
    // during a turn. For all who walk the list, it is a paused timer.
    lawn_timer_t mark;
    Queue *next; // in the lawn's list
    Queue *prev;
    bool is_owned; // the lawn frees it in lawn_destroy()
};

// A kind of timers that the library has to itself, inside of those of the
// program. They run and expire like any other, but a program does not see them.
struct Inner {
    lawn_expired_fn_t expired; // by which they are known; NULL: there are none
    // Called for each that a drain takes out.
    void (*on_drain)(lawn_timer_t *timer);
    // When something of the program is due by it; INFINITY: never.
    lawn_time_t (*deadline)(const lawn_timer_t *timer);
};

enum { inner_shared, inner_shm, inner_kinds };

struct alignas(64) Lawn : lawn_t {
    lawn_time_t wake;  // the same as `next`, but `next` is 0 with an observer
    lawn_time_t seen;  // all slots that began at or before it are done
    lawn_time_t until; // the round does slots that began at or before it
    lawn_time_t round; // and timers in `due` with a check before it
    lawn_link_t due;   // timers in no slot, for the next round
    // The check of a timer that is put into `due` or a queue: 2^63 and the
    // number of the latest advance or drain, which skips timers that carry it.
    lawn_time_t due_check;
    bool busy; // an advance or a drain runs
    // Of the advance that runs:
    lawn_time_t time;  // timers that are due by then fire
    lawn_time_t plain; // timers due before then fire and nobody else is told
    size_t left;       // of the budget, in timers to touch
    size_t moved;      // timers touched that did not fire
    Queue *queues;     // list of all queues
    Inner inner[inner_kinds];
    size_t inner_running;   // how many inner timers run
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

// ---- Lists

// Returns whether the neighbours of a link in a list point back to it. They do
// not if the timer was initialised, freed or overwritten while it ran.
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

// Takes the first or the last timer out of a list that is not empty. Prefetches
// the link that will be the second: a pass soon takes the link before it, and
// then writes to it.
inline lawn_timer_t *list_take_first(lawn_link_t *head)
{
    lawn_link_t *const first = head->next;
    lawn_link_t *const next = first->next;
    __builtin_prefetch(next->next);
    head->next = next;
    next->prev = head;
    return timer_of(first);
}

inline lawn_timer_t *list_take_last(lawn_link_t *head)
{
    lawn_link_t *const last = head->prev;
    lawn_link_t *const prev = last->prev;
    __builtin_prefetch(prev->prev);
    head->prev = prev;
    prev->next = head;
    return timer_of(last);
}

// ---- Timers

inline bool is_linked(const lawn_timer_t *timer)
{
    return timer->link.next != nullptr;
}

// The timer may be in a list or not.
inline void detach(lawn_timer_t *timer)
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

// The callback of an alarm.
void on_alarm(lawn_timer_t *alarm, lawn_time_t now);

inline bool is_alarm(const lawn_timer_t *timer)
{
    return timer->expired == on_alarm;
}

// Returns NULL if the timer is the program's own.
inline const Inner *inner_of(const Lawn *lawn, const lawn_timer_t *timer)
{
    for (const Inner &kind : lawn->inner) {
        if (kind.expired && timer->expired == kind.expired) {
            return &kind;
        }
    }
    return nullptr;
}

inline Queue *queue_of(const lawn_timer_t *alarm)
{
    return reinterpret_cast<const Alarm *>(alarm)->queue;
}

// For a timer of a list. Returns true if the timer runs and is no alarm.
inline bool is_running(const lawn_timer_t *timer)
{
    return !is_paused(timer) && !is_alarm(timer);
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

// Calls `each` for every running timer, inner ones included.
void for_each_running(const lawn_t *lawn,
                      void (*each)(const lawn_timer_t *timer, void *arg),
                      void *arg);

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

// ---- Passes: advances and drains

inline void report(const lawn_t *lawn, lawn_event_t event,
                   const lawn_timer_t *timer, lawn_time_t now, lawn_time_t ttl)
{
    if (LAWN_UNLIKELY(lawn->observer != nullptr)) {
        lawn_observer_t *const observer =
            static_cast<lawn_observer_t *>(lawn->observer);
        observer->event(observer, event, timer, now, ttl);
    }
}

// Begins a pass.
void enter(Lawn *lawn);

// Ends a pass: sets `wake` and the limit to their values outside of passes.
void reopen(Lawn *lawn);

// True in the callbacks of a pass.
inline bool is_busy(const lawn_t *lawn)
{
    return impl_of(lawn)->busy;
}

inline void call_back(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->expired) {
        const lawn_time_t now = lawn->time;
        LAWN_PROBE(fire, timer, lawn, now);
        timer->expired(timer, now);
    }
}

// Counts how late a timer fires. For an inner timer, its callback calls this:
// the callback alone knows whether something of the program is due.
inline void note_late(const Lawn *lawn, lawn_time_t late)
{
    if (lawn->late) {
        lawn_histogram_add(lawn->late, late);
    }
}

// Handles a touched timer that is not due, or that somebody else must be told
// of.
bool touch_rest(Lawn *lawn, lawn_timer_t *timer);

// Fires the timer or puts it off. The caller has taken it out of its list.
// Returns false if this was the last one of the budget.
inline bool touch(Lawn *lawn, lawn_timer_t *timer)
{
    if (LAWN_LIKELY(timer->deadline < lawn->plain)) {
        end_run(lawn, timer);
        call_back(lawn, timer);
        return --lawn->left != 0;
    }
    return touch_rest(lawn, timer);
}

// What an advance has done. `touched` includes `fired`.
struct Work {
    unsigned fired;
    size_t touched;
};

// Like lawn_advance_rest(), but to `now`, which is no later than the latest
// time seen. Timers that are due between these two times wait for the next
// advance. So an engine's pass fires by the time that it has read first, even
// if its sources have shown the lawn a later time since.
Work advance_rest(lawn_t *lawn, lawn_time_t now, unsigned budget);

// Like lawn_advance(), but to `now`, as advance_rest().
inline Work advance_as_of(lawn_t *lawn, lawn_time_t now, unsigned budget)
{
    lawn_see(lawn, now);
    return LAWN_LIKELY(now < lawn->next) ? Work{0, 0}
                                         : advance_rest(lawn, now, budget);
}

// ---- Starts

// For assertions about a timer that should be idle or in this lawn. Returns
// false if the timer was not initialised, was moved or overwritten while it
// ran, or belongs to another lawn. A timer does not store its lawn, so the
// function only takes a short look.
bool may_hold(const Lawn *lawn, const lawn_timer_t *timer);

inline void assert_own([[maybe_unused]] const Lawn *lawn,
                       [[maybe_unused]] const lawn_timer_t *timer)
{
    LAWN_ASSERT(may_hold(lawn, timer) &&
                "the timer was initialised, is no other lawn's, and was "
                "neither moved nor overwritten while it ran");
}

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

// ---- Queues

// Makes an empty queue in memory that the caller owns.
void queue_open(Queue *queue, lawn_t *lawn, lawn_time_t ttl);

// Stops the queue's timers and takes the queue out of its lawn.
void queue_close(Queue *queue);

// Sets the alarm if it is not set and the queue has timers.
void set_alarm(Queue *queue);

} // namespace lawn

#endif
