// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the library's other rooms use of a lawn, beside lawn/timer.h. How a lawn
// works is in lawn_impl.h, which only src/timer includes.
//
//     set_kind(lawn, kind_shared, {on_expired, ...});  // timers of your own
//     hide(lawn);                                      // one of them runs
//     advance_as_of(lawn, now, budget);                // in a pass
//     note_late(lawn, now - deadline);                 // in its callback

#ifndef LAWN_SRC_TIMER_INSIDE_H
#define LAWN_SRC_TIMER_INSIDE_H

#include "base/usage.h"

#include <lawn/stats.h>
#include <lawn/timer.h>

namespace lawn
{

constexpr lawn_time_t never = LAWN_TIME_INFINITY - 1; // runs, and never fires

// Timers that the library has made, rather than the program. They are filed
// and expire like any other. A lawn knows each kind by its callback.
struct Kind {
    lawn_expired_fn_t expired;
    // The program sees these as timers of its own: they are counted, walked and
    // drained. If not, each stands behind something else that may be due.
    bool is_shown;
    // Called for each that a drain has taken out, before the program sees it.
    void (*on_drain)(lawn_timer_t *timer);
    // For those that are not shown: when what stands behind it is due.
    // INFINITY: never.
    lawn_time_t (*deadline)(const lawn_timer_t *timer);
};

// The alarms of queues are a kind that every lawn has.
enum { kind_alarm, kind_shared, kind_shm, kind_keyed, kind_count };

void set_kind(lawn_t *lawn, unsigned which, const Kind &kind);

// For the inline functions below.
struct LawnState : lawn_t {
    size_t unfired;         // timers that the advance has touched and not fired
    size_t hidden;          // how many timers run that are not shown
    lawn_histogram_t *late; // NULL, or counts the lateness of timers that fire
    bool busy;              // an advance or a drain runs
    Usage usage;
};

inline LawnState *state_of(lawn_t *lawn)
{
    return static_cast<LawnState *>(lawn);
}

// Whether a lawn holds the timer, running or paused.
inline bool is_linked(const lawn_timer_t *timer)
{
    return timer->link.next != nullptr;
}

// Of a timer that is linked.
inline bool is_paused(const lawn_timer_t *timer)
{
    return timer->deadline == LAWN_TIME_INFINITY;
}

// The latest time that the lawn was told.
inline lawn_time_t latest_seen(const lawn_t *lawn)
{
    return lawn->now;
}

// True in the callbacks of an advance or a drain.
inline bool is_busy(const lawn_t *lawn)
{
    return static_cast<const LawnState *>(lawn)->busy;
}

// Of a timer that is not shown: it runs now, or does so no more.
inline void hide(lawn_t *lawn, bool is_new = true)
{
    state_of(lawn)->hidden += is_new;
}

inline void unhide(lawn_t *lawn, bool has_run = true)
{
    state_of(lawn)->hidden -= has_run;
}

// Of the callback of a timer that is not shown, which alone knows whether
// something of the program is due: how late that is, or that nothing is.
inline void note_late(lawn_t *lawn, lawn_time_t late)
{
    if (state_of(lawn)->late) {
        lawn_histogram_add(state_of(lawn)->late, late);
    }
}

inline void note_unfired(lawn_t *lawn)
{
    ++state_of(lawn)->unfired;
}

// From now on the lateness of timers that fire is counted there.
inline void count_late(lawn_t *lawn, lawn_histogram_t *late)
{
    state_of(lawn)->late = late;
}

// What an advance has done. `touched` includes `fired`.
struct Work {
    unsigned fired;
    size_t touched;
};

// Like lawn_advance_slow(), but to `now`, which is no later than the latest
// time seen. Timers that are due between these two times wait for the next
// advance. So an engine's pass fires by the time that it has read first, even
// if its sources have shown the lawn a later time since.
Work advance_slow(lawn_t *lawn, lawn_time_t now, unsigned budget);

// Like lawn_advance(), but to `now`, as advance_slow().
inline Work advance_as_of(lawn_t *lawn, lawn_time_t now, unsigned budget)
{
    lawn_see(lawn, now);
    return LAWN_LIKELY(now < lawn->next) ? Work{0, 0}
                                         : advance_slow(lawn, now, budget);
}

// Calls `each` for every timer that runs, also those that are not shown, but
// not for alarms.
void for_each_running(const lawn_t *lawn,
                      void (*each)(const lawn_timer_t *timer, void *arg),
                      void *arg);

// Calls `each` for every timer with this callback, paused ones too, that is in
// no queue. `each` may stop it.
void for_each_of_kind(lawn_t *lawn, lawn_expired_fn_t expired,
                      void (*each)(lawn_timer_t *timer, void *arg), void *arg);

// When the timer, or what stands behind it, is due for the program.
lawn_time_t program_deadline(const lawn_t *lawn, const lawn_timer_t *timer);

const lawn_allocator_t &allocator_of(const lawn_t *lawn);

// What the allocator has returned for the lawn.
void *memory_of(const lawn_t *lawn);

} // namespace lawn

#endif
