// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_check(): every invariant that lawn_impl.h states, by walking everything.

#include "timer/lawn_impl.h"
#include "timer/queue.h"

namespace lawn
{

namespace
{

bool links_are_sound(const lawn_link_t *link)
{
    return link->next && link->prev && link->next->prev == link &&
           link->prev->next == link;
}

// Each of these adds the running timers that a program has started.

bool slot_is_sound(const Lawn *lawn, unsigned c, unsigned index,
                   size_t *running)
{
    const lawn_link_t *const slot = &lawn->slots[c][index];
    if (!links_are_sound(slot)) {
        return false;
    }
    if (list_is_empty(slot)) {
        return true;
    }
    if ((lawn->filled[c] & bit_of(index)) == 0 ||
        (lawn->occupied & uint64_t{1} << c) == 0) {
        return false;
    }
    // Until the round is done, some of what it is about is left.
    lawn_time_t least = lawn->until == lawn->seen ? lawn->seen + 1 : 0;
    for (const lawn_link_t *i = slot->next; i != slot; i = i->next) {
        const lawn_timer_t *const timer = timer_of(i);
        const lawn_time_t wakes =
            lawn->is_settled ? timer->deadline : timer->check;
        const bool is_paused = timer->deadline == LAWN_TIME_INFINITY;
        if (!links_are_sound(i) || timer->check < least ||
            timer->check > timer->deadline ||
            timer->check != slot_of(c, timer->check) << shift_of(c) ||
            slot_of(c, timer->check) % slot_count != index ||
            (!lawn->busy && lawn->wake > wakes && !is_paused &&
             !(lawn->is_settled && is_alarm(timer)))) {
            return false;
        }
        least = timer->check;
        *running += !is_paused && !is_alarm(timer);
    }
    return true;
}

bool due_is_sound(const Lawn *lawn, const lawn_link_t *list, size_t *running)
{
    if (!links_are_sound(list)) {
        return false;
    }
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        const lawn_timer_t *const timer = timer_of(i);
        const bool is_paused = timer->deadline == LAWN_TIME_INFINITY;
        // A drain keeps here what it has not handed over yet.
        if (!links_are_sound(i) ||
            (!lawn->busy && (timer->check != LAWN_TIME_INFINITY ||
                             (lawn->wake > timer->deadline &&
                              !(lawn->is_settled && is_alarm(timer))) ||
                             (timer->deadline > lawn->now && !is_paused)))) {
            return false;
        }
        *running += !is_paused && !is_alarm(timer);
    }
    return true;
}

bool fifo_is_sound(const Queue *queue, const lawn_link_t *list,
                   lawn_time_t *least, size_t *running)
{
    if (!links_are_sound(list)) {
        return false;
    }
    const lawn_timer_t *const alarm = &queue->alarm.timer;
    const bool is_firing = impl_of(queue->lawn)->running_queue == queue;
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        const lawn_timer_t *const timer = timer_of(i);
        if (!links_are_sound(i) || timer->check != LAWN_TIME_INFINITY ||
            (!is_firing &&
             (!is_linked(alarm) || alarm->deadline > timer->deadline))) {
            return false;
        }
        if (timer->deadline != LAWN_TIME_INFINITY) {
            if (timer->deadline < *least) {
                return false;
            }
            *least = timer->deadline;
            ++*running;
        }
    }
    return true;
}

bool queues_are_sound(const Lawn *lawn, size_t *running)
{
    const Queue *prev = nullptr;
    for (const Queue *i = lawn->queues; i; i = i->next) {
        lawn_time_t least = 0;
        if (i->lawn != lawn || i->prev != prev || !is_alarm(&i->alarm.timer) ||
            !fifo_is_sound(i, &i->timers, &least, running) ||
            !fifo_is_sound(i, &i->deferred, &least, running) ||
            (!lawn->busy && !list_is_empty(&i->deferred))) {
            return false;
        }
        prev = i;
    }
    return true;
}

} // namespace

} // namespace lawn

using namespace lawn;

lawn_status_t lawn_check(const lawn_t *handle)
{
    const Lawn *const lawn = impl_of(handle);
    if (!lawn || lawn->until < lawn->seen) {
        return LAWN_ERR_CORRUPT;
    }
    size_t running = 0;
    for (unsigned c = 0; c < class_count; ++c) {
        for (unsigned index = 0; index < slot_count; ++index) {
            if (!slot_is_sound(lawn, c, index, &running)) {
                return LAWN_ERR_CORRUPT;
            }
        }
    }
    const bool lists_are_sound =
        due_is_sound(lawn, &lawn->due, &running) &&
        due_is_sound(lawn, &lawn->deferred, &running) &&
        queues_are_sound(lawn, &running);
    const bool is_closed = lawn->observer || lawn->busy || lawn->is_settled;
    const bool state_is_sound =
        lawn->limit == (is_closed ? 0 : open_limit) &&
        lawn->next == (lawn->observer ? 0 : lawn->wake) &&
        (lawn->busy || list_is_empty(&lawn->deferred));
    return lists_are_sound && state_is_sound && running == lawn->running
               ? LAWN_OK
               : LAWN_ERR_CORRUPT;
}
