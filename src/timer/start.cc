// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Start, stop and pause: what lawn/timer.h does not do inline.

#include "base/ticks.h"
#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

// The check of a timer that shares its queue with other TTLs: the floor of the
// class, or up to one width earlier. Neighbours are spaced, so that many
// timers started together come up a few at a time and not all in one pass.
lawn_time_t spaced_check(const Queue *queue, lawn_time_t now)
{
    const unsigned c = queue->ttl_class;
    const lawn_time_t latest = now + class_floor(c);
    const lawn_time_t earliest = latest - class_width(c) / 4;
    const lawn_time_t spaced = add_saturating(queue->last << queue->shift,
                                              lawn_time_t{1} << queue->shift);
    return earlier_of(later_of(spaced, earliest), latest);
}

// To the end of queue `q`.
void append(Lawn *lawn, lawn_timer_t *timer, unsigned q, lawn_time_t check,
            Where where)
{
    Queue *const queue = &lawn->queues[q];
    const bool is_head = list_is_empty(&queue->head);
    if (!is_head && check > queue->limit) {
        insert_near(lawn, timer);
        lawn->next = earlier_of(lawn->next, timer->deadline);
        return;
    }
    LAWN_ASSERT(is_head || queue->last <= check >> queue->shift);
    LAWN_ASSERT(check <= timer->deadline);
    queue_append(queue, q, timer, check, where);
    check = queue->last << queue->shift;
    if (where == stray && ++queue->strays == 1) {
        lawn->stray_bounds.set(q, check);
    }
    if (is_head) {
        set_first_check(queue, check);
        lawn->bounds.set(q, check);
        lawn->next = earlier_of(lawn->next, check);
        if (where != stray && lawn->stray_bounds.get(q) != LAWN_TIME_INFINITY) {
            lawn->stray_bounds.set(q, LAWN_TIME_INFINITY);
        }
    }
}

// Takes a timer out of whatever holds it; its turn and deadline stay.
void unlink(Lawn *lawn, lawn_timer_t *timer)
{
    if (where_is(timer) == near) {
        lawn->near.remove(timer);
        return;
    }
    if (where_is(timer) == dated) {
        lawn->calendar.remove(timer);
        return;
    }
    list_remove(&timer->link);
    if (where_is(timer) <= stray) {
        lawn->queues[queue_of(timer)].strays--;
    }
}

// Counts a native as a stray of its queue; the caller makes it one, or pauses
// it.
void leave_order(Lawn *lawn, const lawn_timer_t *timer)
{
    const unsigned q = queue_of(timer);
    Queue *const queue = &lawn->queues[q];
    const lawn_time_t check = check_of(queue, timer);
    if (++queue->strays == 1 || check < lawn->stray_bounds.get(q)) {
        lawn->stray_bounds.set(q, check);
    }
}

// Leaves a timer where it is, if it is in a queue and its check is not too late
// for its new deadline.
bool re_arm_in_place(Lawn *lawn, lawn_timer_t *timer, lawn_time_t deadline)
{
    if (!is_in_queue(timer) ||
        deadline < check_of(&lawn->queues[queue_of(timer)], timer)) {
        return false;
    }
    if (where_is(timer) == native) {
        leave_order(lawn, timer);
    }
    timer->deadline = deadline;
    set_turn(timer, lawn->turn);
    set_where(timer, stray);
    lawn->next = earlier_of(lawn->next, deadline);
    return true;
}

#ifndef NDEBUG

// False for a timer that another lawn holds, or that was never initialised, as
// far as a short look shows: its queue is not walked to the end. A timer has no
// room for its lawn.
bool may_hold(const Lawn *lawn, const lawn_timer_t *timer)
{
    constexpr unsigned most_steps = 16;
    switch (where_is(timer)) {
    case idle:
    case listed:
        return true;
    case near:
        return lawn->near.count() != 0;
    case dated:
        return lawn->calendar.count() != 0;
    default:
        if (queue_of(timer) >= queue_count) {
            return false;
        }
    }
    const lawn_link_t *const head = &lawn->queues[queue_of(timer)].head;
    const lawn_link_t *link = timer->link.next;
    for (unsigned i = 0; i < most_steps && link != head; ++i) {
        if (link == &timer->link) {
            return false; // once round another lawn's queue
        }
        link = link->next;
    }
    return !list_is_empty(head);
}

#endif

bool stop(Lawn *lawn, lawn_timer_t *timer)
{
    const bool was_active = lawn_timer_is_active(timer);
    if (where_is(timer) != idle) {
        unlink(lawn, timer);
    }
    lawn->running -= was_active;
    timer->place = idle;
    return was_active;
}

} // namespace

void enqueue(Lawn *lawn, lawn_timer_t *timer, Where where)
{
    const unsigned q = class_of(timer->deadline - lawn->now);
    append(lawn, timer, q, spaced_check(&lawn->queues[q], lawn->now), where);
}

} // namespace lawn

using namespace lawn;

void lawn_timer_init(lawn_timer_t *timer, lawn_expired_fn_t expired)
{
    *timer = {};
    timer->expired = expired;
}

void lawn_timer_start_rest(lawn_t *handle, lawn_timer_t *timer, lawn_time_t ttl)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(may_hold(lawn, timer));
    const lawn_time_t deadline = add_saturating(lawn->now, ttl);
    if (LAWN_UNLIKELY(lawn->observer)) {
        report(lawn, Event::start, timer, lawn->now, ttl);
        lawn->observed_next = earlier_of(lawn->observed_next, deadline);
    }
    const uint64_t where = where_is(timer);
    const bool is_last_turn = lawn->turn == turn_mask;
    lawn->turn += is_last_turn ? 0 : LAWN_PLACE_TURN_ONE;
    lawn->running += where <= paused;
    if (where != idle) {
        if (ttl != 0 && !is_last_turn &&
            re_arm_in_place(lawn, timer, deadline)) {
            return;
        }
        unlink(lawn, timer);
    }
    timer->deadline = deadline;
    timer->place = lawn->turn;
    if (LAWN_UNLIKELY(lawn->busy && deadline == lawn->now)) {
        set_where(timer, listed);
        list_append(&lawn->deferred, &timer->link);
        return;
    }
    Queue *const single = single_queue(lawn->queues, ttl);
    if (LAWN_UNLIKELY(!single)) {
        enqueue(lawn, timer, native);
        return;
    }
    const unsigned q = static_cast<unsigned>(single - lawn->queues);
    if (LAWN_LIKELY(!list_is_empty(&single->head) &&
                    deadline <= single->limit)) {
        queue_append(single, q, timer, deadline, native);
    } else {
        append(lawn, timer, q, deadline, native);
    }
}

bool lawn_timer_stop(lawn_t *handle, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(may_hold(lawn, timer));
    report(lawn, Event::stop, timer, lawn->now, 0);
    return stop(lawn, timer);
}

bool lawn_timer_pause_rest(lawn_t *handle, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(handle);
    const uint64_t where = where_is(timer);
    LAWN_ASSERT(may_hold(lawn, timer));
    report(lawn, Event::pause, timer, lawn->now, 0);
    if (where != native && where != stray) {
        return where != paused && stop(lawn, timer);
    }
    --lawn->running;
    if (where == native) {
        leave_order(lawn, timer);
    }
    set_where(timer, paused);
    return true;
}

bool lawn_timer_is_active(const lawn_timer_t *timer)
{
    return where_is(timer) > paused;
}

lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer)
{
    const bool is_stopped = timer->place == idle || where_is(timer) == paused;
    return is_stopped ? LAWN_TIME_INFINITY : timer->deadline;
}
