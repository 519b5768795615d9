// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Looks for what is wrong: lawn_check() walks the whole lawn and verifies every
// invariant that lawn_impl.h states, and assertions take a short look at a
// timer.

#include "timer/lawn_impl.h"

using namespace lawn;

namespace
{

// Returns whether the links are sound and `holds` is true for each timer. Adds
// the number of running timers to *running.
template <class Holds>
bool list_is_sound(const lawn_link_t *list, size_t *running, Holds holds)
{
    const lawn_link_t *i = list;
    do {
        if (!is_in_place(i) || (i != list && !holds(timer_of(i)))) {
            return false;
        }
        *running += i != list && is_running(timer_of(i));
        i = i->next;
    } while (i != list);
    return true;
}

// Returns whether the lawn wakes early enough for a timer that must be looked
// at by `when`. For a queue this is the head's deadline: the alarm may be
// earlier, so it does not count while the inline limit is 0.
bool wakes(const Lawn *lawn, const lawn_timer_t *timer, lawn_time_t when)
{
    return lawn->busy || is_paused(timer) || lawn->wake <= when ||
           (lawn->inline_limit == 0 && is_alarm(timer));
}

bool slot_is_sound(const Lawn *lawn, unsigned i, size_t *running)
{
    const unsigned c = i / slot_count;
    // An unfinished round may have left timers in its slots.
    lawn_time_t least = lawn->round_time == lawn->done ? lawn->done + 1 : 0;
    return list_is_sound(
        &lawn->slots[i], running, [&](const lawn_timer_t *timer) {
            const lawn_time_t check = timer->check;
            const lawn_time_t slot = slot_of(c, check);
            const bool is_ordered = least <= check && check <= timer->deadline;
            least = check;
            return is_ordered && (lawn->filled[c] & bit_of(i)) != 0 &&
                   check == slot << shift_of(c) && index_of(c, slot) == i &&
                   wakes(lawn, timer,
                         lawn->inline_limit ? check : timer->deadline);
        });
}

// During a drain, timers of any deadline are here.
bool due_is_sound(const Lawn *lawn, size_t *running)
{
    return list_is_sound(&lawn->due, running, [&](const lawn_timer_t *timer) {
        return timer->check >= open_limit &&
               (lawn->busy || timer->deadline <= lawn->now ||
                is_paused(timer)) &&
               wakes(lawn, timer, timer->deadline);
    });
}

bool queue_is_sound(const Queue *queue, size_t *running)
{
    const lawn_timer_t *const alarm = &queue->alarm.timer;
    lawn_time_t least = alarm->deadline;
    return is_alarm(alarm) &&
           (is_linked(alarm) || list_is_empty(&queue->timers)) &&
           list_is_sound(&queue->timers, running, [&](const lawn_timer_t *i) {
               const bool is_ordered = least <= i->deadline;
               least = is_paused(i) ? least : i->deadline;
               return is_ordered && i->check >= open_limit;
           });
}

} // namespace

lawn_status_t lawn_check(const lawn_t *handle)
{
    const Lawn *const lawn = impl_of(handle);
    if (!lawn) {
        return LAWN_ERR_CORRUPT;
    }
    const bool may_open = !lawn->observer && !lawn->busy;
    size_t running = 0;
    bool is_sound = lawn->round_time >= lawn->done &&
                    (lawn->inline_limit == 0 ||
                     (lawn->inline_limit == open_limit && may_open)) &&
                    lawn->next == (lawn->observer ? 0 : lawn->wake) &&
                    due_is_sound(lawn, &running);
    for (unsigned c = 0; c < class_count; ++c) {
        is_sound &= (lawn->occupied >> c & 1) == (lawn->filled[c] != 0);
    }
    for (unsigned i = 0; i < class_count * slot_count && is_sound; ++i) {
        is_sound = slot_is_sound(lawn, i, &running);
    }
    const Queue *prev = nullptr;
    for (const Queue *i = lawn->queues; i && is_sound; i = i->next) {
        is_sound =
            i->lawn == lawn && i->prev == prev && queue_is_sound(i, &running);
        prev = i;
    }
    return is_sound && running == lawn->running ? LAWN_OK : LAWN_ERR_CORRUPT;
}

#ifndef NDEBUG // for assertions
bool lawn::may_hold(const lawn_t *lawn, const lawn_timer_t *timer)
{
    constexpr unsigned most_steps = 16;
    const lawn_time_t deadline = timer->deadline;
    if (!is_linked(timer)) {
        return deadline == 0 || deadline == LAWN_TIME_INFINITY;
    }
    const lawn_link_t *link = &timer->link;
    for (unsigned i = 0; i < most_steps; ++i) {
        if (!is_in_place(link)) {
            return false;
        }
        link = link->next;
        const Queue *queue = impl_of(lawn)->queues;
        while (queue && &queue->timers != link) {
            queue = queue->next;
        }
        const auto inside = reinterpret_cast<uintptr_t>(link) -
                            reinterpret_cast<uintptr_t>(lawn);
        if (queue || inside < sizeof(Lawn)) {
            break; // the head of one of our lists
        }
        if (link == &timer->link) {
            return false; // once round a list of another lawn
        }
    }
    return timer->check <= deadline || timer->check >= open_limit;
}
#endif
