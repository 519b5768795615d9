// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Advance: fires what is due, and moves what has come up and is not.

#include "timer/advance.h"

#include "base/ticks.h"
#include "timer/lawn_impl.h"

#include <limits.h>

namespace lawn
{

namespace
{

constexpr unsigned many = 64; // moves in a pass, for the calendar
constexpr unsigned most_lanes = 16;
constexpr unsigned most_early = 16;
constexpr unsigned early_share = 8; // of a class's width

// One advance.
struct Pass {
    lawn_time_t now;
    unsigned budget; // 0: no limit
    unsigned max_moves;
    unsigned fired;
    unsigned moves;

    bool may_go_on() const
    {
        return (budget == 0 || fired < budget) &&
               (max_moves == 0 || moves < max_moves);
    }
};

void fire(Lawn *lawn, Pass *pass, lawn_timer_t *timer)
{
    set_where(timer, idle);
    --lawn->running;
    ++pass->fired;
    report(lawn, Event::fire, timer, pass->now, 0);
    if (timer->expired) {
        timer->expired(timer, pass->now);
    }
}

// Files a timer anew whose deadline has not come, or lets go of a paused one.
void move(Lawn *lawn, Pass *pass, lawn_timer_t *timer)
{
    pass->moves++;
    if (where_is(timer) == paused) {
        timer->place = idle;
        return;
    }
    if (lawn->near.count() < near_count / 2) {
        lawn->near_span = earlier_of(2 * lawn->near_span, most_near_span);
    } else if (lawn->near.count() > near_count) {
        lawn->near_span = later_of(lawn->near_span / 2, least_near_span);
    }
    // A callback or a source may have brought a later time than the pass's.
    if (timer->deadline <= lawn->now ||
        timer->deadline - lawn->now < lawn->near_span) {
        insert_near(lawn, timer);
    } else {
        enqueue(lawn, timer, stray);
    }
}

// Natives may fire when their deadlines are before this: those of strays, in
// queues and waiting, are not; and before a TTL took a queue of its own, its
// natives went to that of its class.
lawn_time_t native_limit(const Lawn *lawn, unsigned q)
{
    const lawn_time_t limit =
        earlier_of(lawn->stray_bounds.least(), first_waiting(lawn));
    return is_single(q)
               ? earlier_of(limit, lawn->bounds.get(lawn->queues[q].ttl_class))
               : limit;
}

// Has a timer that is due wait until it is first.
void wait_in_order(Lawn *lawn, Pass *pass, lawn_timer_t *timer)
{
    const bool are_many = pass->moves > many || lawn->calendar.count() != 0;
    if (are_many && lawn->calendar.add(timer, lawn->bounds.least())) {
        set_where(timer, dated);
    } else {
        insert_near(lawn, timer);
    }
}

// To the tree, a day of the calendar.
void take_day(Lawn *lawn, Pass *pass)
{
    lawn_timer_t *timer = lawn->calendar.first();
    // A bound on moves is one on this, too; the tree can do without.
    if (pass->max_moves == 0 && lawn->calendar.lay_out_last_day()) {
        timer = lawn->calendar.first();
    }
    do {
        __builtin_prefetch(timer->link.next->next);
        lawn->calendar.remove(timer);
        pass->moves++;
        insert_near(lawn, timer);
        if (lawn->calendar.end_day()) {
            break;
        }
        timer = lawn->calendar.first();
    } while (pass->may_go_on());
}

// Fires up to `most` natives from the head of a queue that are due and may; the
// check need not have come. Callbacks do not lower the limit: what they start
// is not due in this pass.
unsigned fire_natives(Lawn *lawn, Pass *pass, unsigned q, unsigned most)
{
    Queue *const queue = &lawn->queues[q];
    const lawn_time_t limit = earlier_of(native_limit(lawn, q), pass->now + 1);
    unsigned count = 0;
    while (count < most && pass->may_go_on()) {
        lawn_link_t *const link = queue->head.next;
        lawn_timer_t *const timer = timer_of(link);
        if (link == &queue->head || timer->deadline >= limit ||
            where_is(timer) != native) {
            break;
        }
        list_remove(link);
        fire(lawn, pass, timer);
        ++count;
    }
    return count;
}

// Looks at the head of a queue if it is a native that is due, or its check is
// <= `until`: fires it, moves it, or has it wait in the tree. False if it is
// neither, or a native that may not fire and is not `forced`: others first,
// then it may.
bool step(Lawn *lawn, Pass *pass, unsigned q, lawn_time_t until, bool forced)
{
    Queue *const queue = &lawn->queues[q];
    lawn_timer_t *const timer = timer_of(queue->head.next);
    if (list_is_empty(&queue->head)) {
        return false;
    }
    if (where_is(timer) == native && fire_natives(lawn, pass, q, 1) != 0) {
        return true;
    }
    if (check_of(queue, timer) > until) {
        return false;
    }
    const bool is_due = timer->deadline <= pass->now;
    if (!is_due || where_is(timer) == paused) {
        take(queue, timer);
        move(lawn, pass, timer);
    } else if (where_is(timer) != native || forced) {
        take(queue, timer);
        pass->moves++;
        wait_in_order(lawn, pass, timer);
    } else {
        return false;
    }
    return true;
}

// An unlink writes to the next timer. Loaded for all queues at once, ahead,
// they cost one miss together.
void prefetch_next(const Lawn *lawn, const unsigned *queues, unsigned count)
{
    for (unsigned i = 0; i < count; ++i) {
        const lawn_link_t *const next = lawn->queues[queues[i]].head.next->next;
        __builtin_prefetch(next);
        __builtin_prefetch(&timer_of(next)->expired);
    }
}

// Moves what will come up soon, too: a visit to a queue costs more than a move.
void move_early(Lawn *lawn, Pass *pass, unsigned q)
{
    Queue *const queue = &lawn->queues[q];
    const lawn_time_t soon =
        add_saturating(pass->now, class_width(q) / early_share);
    for (unsigned i = 0; i < most_early && pass->may_go_on(); ++i) {
        lawn_timer_t *const timer = timer_of(queue->head.next);
        if (list_is_empty(&queue->head) || check_of(queue, timer) > soon ||
            timer->deadline <= pass->now) {
            break;
        }
        __builtin_prefetch(timer->link.next->next);
        take(queue, timer);
        move(lawn, pass, timer);
    }
}

// Works off what has come up until a time. What callbacks start or re-arm
// meanwhile is due after this pass, so it is in nobody's way.
//
// One queue, which is how it goes when polls are frequent; true if more timers
// came up in it than that.
bool sweep_one(Lawn *lawn, Pass *pass, lawn_time_t until)
{
    const unsigned q = lawn->bounds.leaf_of_least();
    const Queue *const queue = &lawn->queues[q];
    unsigned steps = fire_natives(lawn, pass, q, most_lanes);
    if (steps == 0 || queue->strays != 0 || !is_single(q)) {
        while (steps < most_lanes && pass->may_go_on() &&
               step(lawn, pass, q, until, steps == 0)) {
            ++steps;
        }
    }
    if (!is_single(q) && steps < most_lanes) {
        move_early(lawn, pass, q);
    }
    settle(lawn, q);
    return steps == most_lanes;
}

// Many queues in turn.
void sweep(Lawn *lawn, Pass *pass, lawn_time_t until)
{
    unsigned queues[most_lanes];
    const unsigned count = lawn->bounds.find(until, queues, most_lanes);
    unsigned left = count;
    while (left > 0 && pass->may_go_on()) {
        if (left == 1) {
            fire_natives(lawn, pass, queues[0], UINT_MAX);
        }
        prefetch_next(lawn, queues, left);
        for (unsigned i = 0; i < left && pass->may_go_on();) {
            if (step(lawn, pass, queues[i], until, false)) {
                ++i;
            } else {
                const unsigned done = queues[i];
                queues[i] = queues[--left];
                queues[left] = done;
            }
        }
    }
    for (unsigned i = 0; i < count; ++i) {
        settle(lawn, queues[i]);
    }
}

// What waits may fire when nothing else can be due before it. To get there in
// few sweeps, each goes on for a little of the time that is to be made up.
void expire(Lawn *lawn, Pass *pass)
{
    while (pass->may_go_on()) {
        const lawn_time_t needed = earlier_of(first_waiting(lawn), pass->now);
        lawn_timer_t *const timer = lawn->near.first();
        if (lawn->bounds.least() <= needed) {
            const lawn_time_t until = needed + (pass->now - needed) / 64;
            if (sweep_one(lawn, pass, until)) {
                sweep(lawn, pass, until);
            }
        } else if (needed == lawn->calendar.begin()) {
            take_day(lawn, pass);
        } else if (timer && timer->deadline <= pass->now) {
            lawn->near.remove(timer);
            fire(lawn, pass, timer);
        } else {
            break;
        }
    }
}

} // namespace

void settle(Lawn *lawn, unsigned q)
{
    Queue *const queue = &lawn->queues[q];
    const lawn_time_t check = list_is_empty(&queue->head)
                                  ? LAWN_TIME_INFINITY
                                  : check_of(queue, timer_of(queue->head.next));
    set_first_check(queue, check);
    lawn->bounds.set(q, check);
    const lawn_time_t strays = queue->strays ? check : LAWN_TIME_INFINITY;
    if (lawn->stray_bounds.get(q) != strays) {
        lawn->stray_bounds.set(q, strays);
    }
}

void leave(Lawn *lawn)
{
    lawn->busy = false;
    while (!list_is_empty(&lawn->deferred)) {
        lawn_timer_t *const timer = timer_of(lawn->deferred.next);
        list_remove(&timer->link);
        insert_near(lawn, timer);
    }
    set_next(lawn, find_next(lawn));
}

// Inside a pass `next` has come, so an advance from a callback ends up here.
unsigned advance_rest(lawn_t *handle, lawn_time_t now, unsigned budget)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(!lawn->busy);
    if (lawn->busy) {
        return 0;
    }
    report(lawn, Event::advance, nullptr, lawn->now, 0);
    // The last tick of all is "never", whatever the clock says.
    now = earlier_of(now, LAWN_TIME_INFINITY - 1);
    lawn->busy = true;
    Pass pass = {now, budget, lawn->max_moves, 0, 0};
    expire(lawn, &pass);
    leave(lawn);
    return pass.fired;
}

} // namespace lawn

unsigned lawn_advance_rest(lawn_t *lawn, unsigned budget)
{
    return lawn::advance_rest(lawn, lawn->now, budget);
}
