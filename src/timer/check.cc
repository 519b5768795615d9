// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_check(): every invariant that lawn_impl.h states, by walking everything.

#include "base/ticks.h"
#include "timer/lawn_impl.h"

using namespace lawn;

namespace
{

bool links_are_sound(const lawn_link_t *link)
{
    return link->next && link->prev && link->next->prev == link &&
           link->prev->next == link;
}

// Adds the running timers of queue `q` to *running.
bool queue_is_sound(const Lawn *lawn, unsigned q, size_t *running)
{
    const Queue *const queue = &lawn->queues[q];
    const lawn_link_t *const head = &queue->head;
    if (!links_are_sound(head)) {
        return false;
    }
    const lawn_time_t stray_bound = lawn->stray_bounds.get(q);
    lawn_time_t least = lawn->bounds.get(q);
    size_t strays = 0;
    for (const lawn_link_t *i = head->next; i != head; i = i->next) {
        const lawn_timer_t *const timer = timer_of(i);
        const uint64_t where = where_is(timer);
        const lawn_time_t check = check_of(queue, timer);
        if (!links_are_sound(i) || !is_in_queue(timer) ||
            queue_of(timer) != q || check < least || check > timer->deadline) {
            return false;
        }
        if (where != paused && !lawn->busy && timer->deadline < lawn->next) {
            return false;
        }
        least = check;
        if (where != native) {
            ++strays;
            if (check < stray_bound) {
                return false;
            }
        }
        *running += where != paused;
    }
    return strays == queue->strays && stray_bound >= lawn->bounds.get(q);
}

} // namespace

size_t Calendar::check() const
{
    size_t count = 0;
    for (unsigned day = 0; day <= last_day; ++day) {
        const lawn_link_t *const head = &days_[day];
        for (const lawn_link_t *i = head->next; i != head; i = i->next) {
            const lawn_time_t deadline = timer_of(i)->deadline;
            if (!links_are_sound(i) || where_is(timer_of(i)) != dated ||
                day < today_ || deadline < begin_of(day) ||
                (day < last_day && deadline >= begin_of(day + 1))) {
                return SIZE_MAX;
            }
            ++count;
        }
    }
    return count == count_ ? count : SIZE_MAX;
}

lawn_status_t lawn_check(const lawn_t *handle)
{
    const Lawn *const lawn = impl_of(handle);
    if (!lawn || !lawn->bounds.is_consistent() ||
        !lawn->stray_bounds.is_consistent()) {
        return LAWN_ERR_CORRUPT;
    }
    size_t running = 0;
    for (unsigned q = 0; q < queue_count; ++q) {
        if (!queue_is_sound(lawn, q, &running)) {
            return LAWN_ERR_CORRUPT;
        }
    }
    const size_t near_timers = lawn->near.check();
    if (near_timers == SIZE_MAX) {
        return LAWN_ERR_CORRUPT;
    }
    const size_t dated_timers = lawn->calendar.check();
    if (dated_timers == SIZE_MAX) {
        return LAWN_ERR_CORRUPT;
    }
    running += near_timers + dated_timers;
    const lawn_link_t *const deferred = &lawn->deferred;
    for (const lawn_link_t *i = deferred->next; i != deferred; i = i->next) {
        if (!links_are_sound(i) || where_is(timer_of(i)) != listed) {
            return LAWN_ERR_CORRUPT;
        }
        ++running;
    }
    // A pass works on the bounds themselves and sets `next` at its end.
    const bool next_is_sound =
        lawn->busy ||
        (list_is_empty(deferred) && lawn->next <= first_waiting(lawn));
    // A drain keeps what it has not handed over yet in a list of its own.
    const bool count_is_sound =
        lawn->busy ? running <= lawn->running : running == lawn->running;
    return next_is_sound && count_is_sound ? LAWN_OK : LAWN_ERR_CORRUPT;
}
