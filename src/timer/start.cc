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
// timers can check at their deadline. A TTL that comes twice running, or to an
// empty queue, is taken for the one.
bool has_sole_ttl(Queue *queue, lawn_time_t ttl)
{
    if (ttl == queue->last_ttl || list_is_empty(&queue->head)) {
        queue->sole_ttl = ttl;
    }
    queue->last_ttl = ttl;
    return ttl == queue->sole_ttl;
}

// The check of a timer that shares its class with other TTLs: the floor of the
// class, or up to one width earlier. Neighbours are spaced, so that many
// timers started together come up a few at a time and not all in one pass.
lawn_time_t spaced_check(const Queue *queue, unsigned c, lawn_time_t now)
{
    const lawn_time_t width = class_width(c);
    const lawn_time_t space = lawn_time_t{1} << step_shift(c);
    const lawn_time_t latest = now + class_floor(c);
    const lawn_time_t earliest = width > 1 ? latest - width : latest;
    const lawn_time_t spaced = add_saturating(queue->last_check, space);
    return later_of(queue->last_check,
                    earlier_of(later_of(spaced, earliest), latest));
}

// To the end of queue `c`.
void append(Lawn *lawn, lawn_timer_t *timer, unsigned c, lawn_time_t check,
            Where where)
{
    Queue *const queue = &lawn->queues[c];
    const bool is_head = list_is_empty(&queue->head);
    if (!is_head && check > add_saturating(lawn->bounds.get(c), reach(c))) {
        insert_near(lawn, timer);
        lawn->next = earlier_of(lawn->next, timer->deadline);
        return;
    }
    check = round_to_step(check, c);
    LAWN_ASSERT(queue->last_check <= check && check <= timer->deadline);
    queue->last_check = check;
    timer->place = turn_of(timer) | check_bits(check, c) |
                   uint64_t{c} << class_shift | where;
    list_append(&queue->head, &timer->link);
    if (where == stray && ++queue->strays == 1) {
        lawn->stray_bounds.set(c, check);
    }
    if (is_head) {
        lawn->bounds.set(c, check);
        lawn->next = earlier_of(lawn->next, check);
        if (where != stray) {
            lawn->stray_bounds.set(c, LAWN_TIME_INFINITY);
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
    list_remove(&timer->link);
    if (where_is(timer) <= stray) {
        lawn->queues[class_of_queue(timer)].strays--;
    }
}

// Counts a native as a stray of its queue; the caller makes it one, or pauses
// it.
void leave_order(Lawn *lawn, const lawn_timer_t *timer)
{
    const unsigned c = class_of_queue(timer);
    Queue *const queue = &lawn->queues[c];
    const lawn_time_t check = check_of(queue, c, timer);
    if (++queue->strays == 1 || check < lawn->stray_bounds.get(c)) {
        lawn->stray_bounds.set(c, check);
    }
}

} // namespace

void enqueue(Lawn *lawn, lawn_timer_t *timer, bool started)
{
    const lawn_time_t now = lawn->now;
    const lawn_time_t remains = timer->deadline - now;
    const unsigned c = class_of(remains);
    Queue *const queue = &lawn->queues[c];
    if (list_is_empty(&queue->head)) {
        queue->last_check = 0;
    }
    const bool exact = started && has_sole_ttl(queue, remains);
    const lawn_time_t latest = exact ? timer->deadline : now + class_floor(c);
    if (LAWN_LIKELY(queue->last_check <= latest)) {
        append(lawn, timer, c, exact ? latest : spaced_check(queue, c, now),
               started ? native : stray);
        return;
    }
    // Behind timers with a later check. By invariant 4 those of the class
    // below check before this one's deadline. Class 0 has but one TTL.
    LAWN_ASSERT(c > 0);
    Queue *const below = &lawn->queues[c - 1];
    if (list_is_empty(&below->head)) {
        below->last_check = 0;
    }
    append(lawn, timer, c - 1, spaced_check(below, c - 1, now), stray);
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
    const lawn_time_t deadline = add_saturating(lawn->now, ttl);
    const uint64_t where = where_is(timer);
    const bool is_last_turn = lawn->turn == turn_mask;
    lawn->turn += is_last_turn ? 0 : LAWN_PLACE_TURN_ONE;
    lawn->running += where <= paused;
    if (is_in_queue(timer) && ttl != 0 && !is_last_turn) {
        const unsigned c = class_of_queue(timer);
        if (deadline >= check_of(&lawn->queues[c], c, timer)) {
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
    const bool was_active = lawn_timer_is_active(timer);
    if (where_is(timer) != idle) {
        unlink(lawn, timer);
    }
    lawn->running -= was_active;
    timer->place = idle;
    return was_active;
}

bool lawn_timer_pause_rest(lawn_t *handle, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(handle);
    if (where_is(timer) != native) {
        return where_is(timer) != paused && lawn_timer_stop(lawn, timer);
    }
    --lawn->running;
    leave_order(lawn, timer);
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
