// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Takes all timers out of a lawn. What is in the slots goes to `due` first, so
// that `each`, which may start and stop any timer, changes only lists that are
// read from their heads.

#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

// Moves all timers from the slots to `due`, alarms too.
void begin_drain(Lawn *lawn)
{
    for (lawn_link_t &slot : lawn->slots) {
        while (!list_is_empty(&slot)) {
            LAWN_ASSERT(is_in_place(slot.next) && is_in_place(&slot) &&
                        "no timer was lost while it ran");
            lawn_timer_t *const timer = list_take_first(&slot);
            list_append(&lawn->due, &timer->link);
            timer->check = open_limit;
        }
    }
}

// An alarm stands for its queue until all timers are drained that were in the
// queue when the drain began.
lawn_timer_t *next_to_drain(Lawn *lawn)
{
    lawn_timer_t *timer = first_old(lawn, &lawn->due);
    while (timer && is_alarm(timer)) {
        Queue *const queue = queue_of(timer);
        if (lawn_timer_t *const member = first_old(lawn, &queue->timers)) {
            return member;
        }
        detach(timer);
        set_alarm(queue);
        timer = first_old(lawn, &lawn->due);
    }
    return timer;
}

} // namespace

} // namespace lawn

using namespace lawn;

unsigned lawn_drain(lawn_t *handle, lawn_expired_fn_t each)
{
    Lawn *const lawn = impl_of(handle);
    assert_usable(lawn);
    const bool is_nested = lawn->busy;
    enter(lawn);
    unsigned drained = 0;
    begin_drain(lawn);
    while (lawn_timer_t *const timer = next_to_drain(lawn)) {
        // Static analyzers do not see that the last one has left its list.
        LAWN_ASSERT(is_linked(timer));
        list_remove(&timer->link);
        if (!is_running(timer)) {
            timer->link.next = nullptr;
            continue;
        }
        end_run(lawn, timer);
        report(lawn, LAWN_EVENT_STOP, timer, lawn->now, 0);
        if (const Kind *const kind = kind_of(lawn, timer)) {
            kind->on_drain(timer);
            if (!kind->is_shown) {
                continue;
            }
        }
        ++drained;
        if (each) {
            each(timer, lawn->now);
        }
    }
    if (!is_nested) {
        reopen(lawn);
    }
    return drained;
}
