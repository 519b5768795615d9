// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// When to advance next: lawn_next(), and lawn_settle(), which makes it exact.

#include "timer/lawn_impl.h"

#include <stdint.h>

namespace lawn
{

namespace
{

// Returns the beginning of the first slot that holds a timer and begins after
// `done`, or INFINITY if there is none. Nobody needs to wake for a slot that
// stops have left empty.
lawn_time_t first_slot(Lawn *lawn)
{
    lawn_time_t first = LAWN_TIME_INFINITY;
    each_slot(lawn, first, [&](lawn_time_t begin, const lawn_link_t *slot) {
        clear_if_empty(lawn, slot);
        if (!list_is_empty(slot)) {
            first = begin;
        }
        return true;
    });
    return first;
}

// Returns a time that is not after any deadline. Timers that are left of a
// round or in `due` may have any.
lawn_time_t deadline_bound(Lawn *lawn)
{
    return lawn->round_time == lawn->done && list_is_empty(&lawn->due)
               ? first_slot(lawn)
               : 0;
}

// The earliest deadline that lawn_settle() has found, and how many timers it
// may still look at.
struct Search {
    lawn_time_t earliest;
    size_t left;
};

// Returns false if `left` is too low for the list. A queue is searched up to
// its first timer that is not paused, which has its earliest deadline.
bool search(const lawn_link_t *list, Search *found, bool is_queue)
{
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        const lawn_timer_t *const timer = timer_of(i);
        __builtin_prefetch(i->next->next);
        if (found->left == 0) {
            return false;
        }
        --found->left;
        if (!is_alarm(timer)) {
            found->earliest = earlier_of(found->earliest, timer->deadline);
        } else if (!search(&queue_of(timer)->timers, found, true)) {
            return false;
        }
        if (is_queue && !is_paused(timer)) {
            break;
        }
    }
    return true;
}

} // namespace

void reopen(Lawn *lawn)
{
    leave_usage(&lawn->usage);
    lawn->busy = false;
    lawn->inline_limit = lawn->observer ? 0 : open_limit;
    set_wake(lawn, deadline_bound(lawn));
}

} // namespace lawn

using namespace lawn;

lawn_time_t lawn_next(const lawn_t *handle)
{
    const Lawn *const lawn = impl_of(handle);
    const bool is_never = lawn->running == 0 || lawn->wake >= never;
    return is_never ? LAWN_TIME_INFINITY : lawn->wake;
}

bool lawn_settle(lawn_t *handle, unsigned max_touches)
{
    Lawn *const lawn = impl_of(handle);
    assert_usable(lawn);
    if (lawn->busy) {
        return false;
    }
    Search found = {LAWN_TIME_INFINITY, max_touches ? max_touches : SIZE_MAX};
    const auto look = [&](lawn_time_t, const lawn_link_t *slot) {
        return search(slot, &found, false);
    };
    if (!search(&lawn->due, &found, false) ||
        !each_slot(lawn, found.earliest, look) ||
        (found.earliest <= lawn->now && found.earliest < never)) {
        // Stops may have left the first slots empty.
        set_wake(lawn, later_of(lawn->wake, deadline_bound(lawn)));
        return false;
    }
    set_wake(lawn, found.earliest);
    lawn->inline_limit = 0;
    return true;
}
