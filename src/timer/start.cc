// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Start, stop and pause: the parts that are not inline in lawn/timer.h.

#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

// The inline limit is 0, or the deadline is 2^63 or later.
LAWN_COLD_PATH void start_closed(Lawn *lawn, lawn_timer_t *timer,
                                 lawn_time_t deadline)
{
    deadline = announce_start(lawn, timer, deadline);
    // A re-arm leaves the timer in its slot here, too. If it took it out, the
    // slot might be empty when an engine wakes up for it. In a pass, a timer
    // that is due at once would fire in this pass if it stayed.
    if (is_linked(timer) && deadline >= timer->check && deadline < open_limit &&
        (deadline > lawn->now || !lawn->busy)) {
        lawn->running += is_paused(timer);
        timer->deadline = deadline;
    } else {
        begin_run(lawn, timer, deadline);
        file(lawn, timer);
    }
}

// Stops the timer but leaves it in its list. Returns true if the timer was
// running.
bool end(Lawn *lawn, lawn_timer_t *timer, lawn_event_t event)
{
    assert_own(lawn, timer);
    report(lawn, event, timer, lawn->now, 0);
    if (!is_linked(timer)) {
        timer->check = 0; // the deadline that it fired at, if it has
        return false;
    }
    const bool was_running = !is_paused(timer);
    lawn->running -= was_running;
    timer->deadline = LAWN_TIME_INFINITY;
    return was_running;
}

} // namespace

lawn_time_t announce_start(Lawn *lawn, const lawn_timer_t *timer,
                           lawn_time_t deadline)
{
    if (lawn->inline_limit == 0 && !lawn->busy) {
        reopen(lawn); // lawn_settle() may have moved `wake`
    }
    deadline = earlier_of(deadline, never);
    LAWN_PROBE(start, timer, deadline, lawn->now);
    report(lawn, LAWN_EVENT_START, timer, lawn->now,
           deadline == never ? LAWN_TIME_INFINITY
                             : later_of(deadline, lawn->now) - lawn->now);
    return deadline;
}

void file_due(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->deadline == never) {
        file_in_class(lawn, timer, 0);
        return;
    }
    timer->check = lawn->due_check;
    list_append(&lawn->due, &timer->link);
    set_wake(lawn, earlier_of(lawn->wake, timer->deadline));
}

} // namespace lawn

using namespace lawn;

void lawn_timer_start_slow(lawn_t *handle, lawn_timer_t *timer,
                           lawn_time_t deadline)
{
    Lawn *const lawn = impl_of(handle);
    assert_own(lawn, timer);
    if (LAWN_UNLIKELY(deadline >= lawn->inline_limit)) {
        start_closed(lawn, timer, deadline);
        return;
    }
    LAWN_PROBE(start, timer, deadline, lawn->now);
    begin_run(lawn, timer, deadline);
    file(lawn, timer);
}

bool lawn_timer_stop_slow(lawn_t *lawn, lawn_timer_t *timer)
{
    const bool was_running = end(impl_of(lawn), timer, LAWN_EVENT_STOP);
    detach(timer);
    return was_running;
}

bool lawn_timer_pause_slow(lawn_t *lawn, lawn_timer_t *timer)
{
    return end(impl_of(lawn), timer, LAWN_EVENT_PAUSE);
}
