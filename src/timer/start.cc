// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Start, stop and pause, where they are not inline.

#include "timer/lawn_impl.h"
#include "timer/queue.h"

namespace lawn
{

namespace
{

// Takes a timer, running or not, to its new deadline.
void move_to(Lawn *lawn, lawn_timer_t *timer, lawn_time_t deadline)
{
    if (is_linked(timer)) {
        lawn->running += timer->deadline == LAWN_TIME_INFINITY;
        list_remove(&timer->link);
    } else {
        ++lawn->running;
    }
    timer->deadline = deadline;
    file(lawn, timer);
}

// The deadline is at the end of time, or the limit is closed: there is an
// observer, a pass runs, or lawn_settle() has moved `wake`.
LAWN_COLD_PATH void start_closed(Lawn *lawn, lawn_timer_t *timer,
                                 lawn_time_t deadline)
{
    deadline = earlier_of(deadline, never);
    if (lawn->is_settled) {
        open(lawn);
    }
    report(lawn, Event::start, timer, lawn->now,
           deadline == never ? LAWN_TIME_INFINITY
                             : later_of(deadline, lawn->now) - lawn->now);
    // In a pass, a timer that is due at once would fire in it.
    if (is_linked(timer) && deadline >= timer->check &&
        !(lawn->busy && deadline <= lawn->now)) {
        lawn->running += !is_active(timer);
        timer->deadline = deadline;
    } else {
        move_to(lawn, timer, deadline);
    }
}

// An idle timer that has fired no longer tells its deadline.
void forget(lawn_timer_t *timer)
{
    timer->check = 0;
}

} // namespace

void file_due(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->deadline == never) {
        file_in_class(lawn, timer, 0); // the time has come to its end
        return;
    }
    timer->check = LAWN_TIME_INFINITY;
    list_append(lawn->busy ? &lawn->deferred : &lawn->due, &timer->link);
    set_wake(lawn, earlier_of(lawn->wake, timer->deadline));
}

#ifndef NDEBUG

bool may_hold(const Lawn *lawn, const lawn_timer_t *timer)
{
    if (!is_linked(timer)) {
        return true;
    }
    constexpr unsigned most_steps = 16;
    const lawn_link_t *link = &timer->link;
    bool is_ours = false;
    for (unsigned i = 0; i < most_steps; ++i) {
        if (!link->next || !link->prev || link->next->prev != link ||
            link->prev->next != link) {
            return false;
        }
        is_ours |= is_head(lawn, link);
        link = link->next;
        if (link == &timer->link) {
            return is_ours; // once round
        }
    }
    return true;
}

#endif

} // namespace lawn

using namespace lawn;

void lawn_timer_init(lawn_timer_t *timer, lawn_expired_fn_t expired)
{
    *timer = {};
    timer->expired = expired;
}

void lawn_timer_start_rest(lawn_t *handle, lawn_timer_t *timer,
                           lawn_time_t deadline)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(may_hold(lawn, timer));
    if (LAWN_UNLIKELY(deadline >= lawn->limit)) {
        start_closed(lawn, timer, deadline);
    } else {
        move_to(lawn, timer, deadline);
    }
}

bool lawn_timer_stop_rest(lawn_t *handle, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(may_hold(lawn, timer));
    const bool was_active = is_active(timer);
    report(lawn, Event::stop, timer, lawn->now, 0);
    if (is_linked(timer)) {
        lawn->running -= was_active;
        let_go(timer);
    } else {
        forget(timer);
    }
    return was_active;
}

bool lawn_timer_pause_rest(lawn_t *handle, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(may_hold(lawn, timer));
    const bool was_active = is_active(timer);
    report(lawn, Event::pause, timer, lawn->now, 0);
    if (was_active) {
        timer->deadline = LAWN_TIME_INFINITY;
        --lawn->running;
    } else if (!is_linked(timer)) {
        forget(timer);
    }
    return was_active;
}

bool lawn_timer_is_active(const lawn_timer_t *timer)
{
    return is_active(timer);
}

lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer)
{
    lawn_time_t deadline = timer->deadline;
    if (!is_linked(timer) && deadline == 0) {
        deadline = timer->check != 0 ? timer->check : LAWN_TIME_INFINITY;
    }
    return deadline < never ? deadline : LAWN_TIME_INFINITY;
}
