// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Start, stop and pause: what lawn/timer.h does not do inline.

#include "base/ticks.h"
#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

// Most connections of a program have one TTL, and then a class has one: its
// timers can check at their deadline, in a queue of their own. A class takes
// its single TTL when it is empty, by invariant 4.
bool is_sole_ttl(Queue *exact, const Queue *others, lawn_time_t ttl)
{
    if (list_is_empty(&exact->head) && list_is_empty(&others->head)) {
        exact->sole_ttl = ttl;
    }
    return ttl == exact->sole_ttl;
}

// The check of a timer that shares its queue with other TTLs: the floor of the
// class, or up to one width earlier. Neighbours are spaced, so that many
// timers started together come up a few at a time and not all in one pass.
lawn_time_t spaced_check(const Queue *queue, unsigned q, lawn_time_t now)
{
    const lawn_time_t width = class_width(q / 2);
    const lawn_time_t space = lawn_time_t{1} << step_shift(q);
    const lawn_time_t latest = now + class_floor(q / 2);
    const lawn_time_t earliest = latest - width / 4;
    const lawn_time_t spaced = add_saturating(queue->last_check, space);
    return earlier_of(later_of(spaced, earliest), latest);
}

// To the end of queue `q`.
void append(Lawn *lawn, lawn_timer_t *timer, unsigned q, lawn_time_t check,
            Where where)
{
    Queue *const queue = &lawn->queues[q];
    const bool is_head = list_is_empty(&queue->head);
    if (!is_head && check > add_saturating(lawn->bounds.get(q), reach(q))) {
        insert_near(lawn, timer);
        lawn->next = earlier_of(lawn->next, timer->deadline);
        return;
    }
    check = round_to_step(check, q);
    LAWN_ASSERT(is_head || queue->last_check <= check);
    LAWN_ASSERT(check <= timer->deadline);
    queue->last_check = check;
    timer->place = turn_of(timer) | uint64_t{q} << queue_shift | where;
    set_check(timer, check, q);
    list_append(&queue->head, &timer->link);
    if (where == stray && ++queue->strays == 1) {
        lawn->stray_bounds.set(q, check);
    }
    if (is_head) {
        lawn->bounds.set(q, check);
        lawn->next = earlier_of(lawn->next, check);
        if (where != stray) {
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
    const lawn_time_t check = check_of(queue, q, timer);
    if (++queue->strays == 1 || check < lawn->stray_bounds.get(q)) {
        lawn->stray_bounds.set(q, check);
    }
}

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

void enqueue(Lawn *lawn, lawn_timer_t *timer, bool started)
{
    const lawn_time_t remains = timer->deadline - lawn->now;
    const unsigned q = 2 * class_of(remains);
    Queue *const exact = &lawn->queues[q];
    Queue *const others = &lawn->queues[q + 1];
    if (started && is_sole_ttl(exact, others, remains)) {
        append(lawn, timer, q, timer->deadline, native);
    } else {
        append(lawn, timer, q + 1, spaced_check(others, q + 1, lawn->now),
               started ? native : stray);
    }
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
    report(lawn, Event::start, timer, lawn->now, ttl);
    const lawn_time_t deadline = add_saturating(lawn->now, ttl);
    const uint64_t where = where_is(timer);
    const bool is_last_turn = lawn->turn == turn_mask;
    lawn->turn += is_last_turn ? 0 : LAWN_PLACE_TURN_ONE;
    lawn->running += where <= paused;
    if (is_in_queue(timer) && ttl != 0 && !is_last_turn) {
        const unsigned q = queue_of(timer);
        if (deadline >= check_of(&lawn->queues[q], q, timer)) {
            if (where == native) {
                leave_order(lawn, timer);
            }
            timer->deadline = deadline;
            set_turn(timer, lawn->turn);
            set_where(timer, stray);
            return;
        }
    }
    if (where != idle) {
        unlink(lawn, timer);
    }
    timer->deadline = deadline;
    set_turn(timer, lawn->turn);
    if (lawn->busy && deadline == lawn->now) {
        set_where(timer, listed);
        list_append(&lawn->deferred, &timer->link);
    } else {
        enqueue(lawn, timer, true);
    }
}

bool lawn_timer_stop(lawn_t *handle, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(handle);
    report(lawn, Event::stop, timer, lawn->now, 0);
    return stop(lawn, timer);
}

bool lawn_timer_pause_rest(lawn_t *handle, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(handle);
    const uint64_t where = where_is(timer);
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
