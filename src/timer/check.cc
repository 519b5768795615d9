// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_check(): it walks the whole lawn and verifies every invariant that
// lawn_impl.h states.

#include "timer/queue.h"

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
        if (!i->next || !i->prev || i->next->prev != i || i->prev->next != i ||
            (i != list && !holds(timer_of(i)))) {
            return false;
        }
        *running += i != list && is_running(timer_of(i));
        i = i->next;
    } while (i != list);
    return true;
}

// Returns whether the lawn wakes early enough for the timer. A settled lawn
// wakes for a deadline. For a queue this is the head's: the alarm may be
// earlier, so it is not checked.
bool wakes(const Lawn *lawn, const lawn_timer_t *timer, lawn_time_t when)
{
    return lawn->busy || is_paused(timer) || lawn->wake <= when ||
           (lawn->is_settled && is_alarm(timer));
}

bool slot_is_sound(const Lawn *lawn, unsigned i, size_t *running)
{
    const unsigned c = i / slot_count;
    const bool has_bit = (lawn->filled[c] & bit_of(i)) != 0;
    // An unfinished round may have left timers in its slots.
    lawn_time_t least = lawn->until == lawn->seen ? lawn->seen + 1 : 0;
    return list_is_sound(
        &lawn->slots[i], running, [&](const lawn_timer_t *timer) {
            const lawn_time_t check = timer->check;
            const lawn_time_t number = slot_of(c, check);
            const bool is_ordered = check >= least;
            least = check;
            return has_bit && is_ordered && check <= timer->deadline &&
                   check == number << shift_of(c) &&
                   number % slot_count == i % slot_count &&
                   wakes(lawn, timer,
                         lawn->is_settled ? timer->deadline : check);
        });
}

// During a drain, timers of any deadline are here.
bool due_is_sound(const Lawn *lawn, size_t *running)
{
    return list_is_sound(&lawn->due, running, [&](const lawn_timer_t *timer) {
        return lawn->busy ||
               (timer->check >= open_limit &&
                (timer->deadline <= lawn->now || is_paused(timer)) &&
                wakes(lawn, timer, timer->deadline));
    });
}

bool queue_is_sound(const Queue *queue, size_t *running)
{
    const lawn_timer_t *const alarm = &queue->alarm.timer;
    const Lawn *const lawn = impl_of(queue->lawn);
    const bool has_no_alarm = lawn->firing == queue || lawn->draining;
    lawn_time_t least = 0;
    return is_alarm(alarm) &&
           list_is_sound(&queue->timers, running,
                         [&](lawn_timer_t const *timer) {
                             const bool is_ordered = timer->deadline >= least;
                             least = is_paused(timer) ? least : timer->deadline;
                             return is_ordered && timer->check >= open_limit &&
                                    (has_no_alarm ||
                                     (is_linked(alarm) &&
                                      alarm->deadline <= timer->deadline));
                         });
}

} // namespace

lawn_status_t lawn_check(const lawn_t *handle)
{
    const Lawn *const lawn = impl_of(handle);
    if (!lawn) {
        return LAWN_ERR_CORRUPT;
    }
    const bool is_closed = lawn->observer || lawn->busy || lawn->is_settled;
    size_t running = 0;
    bool is_sound = lawn->until >= lawn->seen &&
                    lawn->limit == (is_closed ? 0 : open_limit) &&
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
