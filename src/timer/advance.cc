// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Advance: fires what is due, and moves what has come up and is not.

#include "base/ticks.h"
#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

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
    if (timer->expired) {
        timer->expired(timer, pass->now);
    }
}

// Files a timer anew whose check has come and whose deadline has not.
void move(Lawn *lawn, lawn_timer_t *timer)
{
    // A callback may have brought a later time than that of the pass.
    if (timer->deadline <= lawn->now ||
        timer->deadline - lawn->now < near_ticks) {
        insert_near(lawn, timer);
    } else {
        enqueue(lawn, timer, false);
    }
}

// Ends a visit: the queue's head may have changed.
void settle(Lawn *lawn, unsigned q)
{
    const Queue *const queue = &lawn->queues[q];
    const lawn_time_t check =
        list_is_empty(&queue->head)
            ? LAWN_TIME_INFINITY
            : check_of(queue, q, timer_of(queue->head.next));
    lawn->bounds.set(q, check);
    lawn->stray_bounds.set(q, queue->strays ? check : LAWN_TIME_INFINITY);
}

// Fires or moves the head of a queue if it is a native that may fire when its
// deadline is before `limit`; false if it is none.
bool step_native(Lawn *lawn, Pass *pass, unsigned q, lawn_time_t limit)
{
    const Queue *const queue = &lawn->queues[q];
    lawn_timer_t *const timer = timer_of(queue->head.next);
    if (list_is_empty(&queue->head) || where_is(timer) != native ||
        check_of(queue, q, timer) > pass->now ||
        (timer->deadline <= pass->now && timer->deadline >= limit)) {
        return false;
    }
    list_remove(&timer->link);
    if (timer->deadline <= pass->now) {
        fire(lawn, pass, timer);
    } else {
        pass->moves++;
        move(lawn, timer);
    }
    return true;
}

// Works off natives, of several queues in turn, until strays are in the way.
// What callbacks start or re-arm meanwhile is due after this pass, so it is in
// nobody's way. False if there was nothing to do.
bool run_natives(Lawn *lawn, Pass *pass)
{
    constexpr unsigned most = 16;
    unsigned due[most];
    const lawn_time_t limit =
        earlier_of(lawn->stray_bounds.least(), lawn->near.first_deadline());
    const unsigned count =
        lawn->bounds.find(earlier_of(limit, pass->now), due, most);
    unsigned left = count;
    bool has_run = false;
    while (left > 0 && pass->may_go_on()) {
        // An unlink writes to the next timer. Loaded for all at once, ahead,
        // they cost a miss together instead of one each.
        for (unsigned i = 0; i < left; ++i) {
            const lawn_link_t *const next =
                lawn->queues[due[i]].head.next->next;
            __builtin_prefetch(next);
            __builtin_prefetch(&timer_of(next)->expired);
        }
        for (unsigned i = 0; i < left && pass->may_go_on();) {
            if (step_native(lawn, pass, due[i], limit)) {
                has_run = true;
                ++i;
            } else {
                const unsigned done = due[i];
                due[i] = due[--left];
                due[left] = done;
            }
        }
    }
    for (unsigned i = 0; i < count; ++i) {
        settle(lawn, due[i]);
    }
    return has_run;
}

// Works off the queue with the least bound, which has come, as long as its
// timers may fire before those of other queues: natives before all but strays,
// strays before nothing.
void visit(Lawn *lawn, Pass *pass)
{
    const unsigned q = lawn->bounds.leaf_of_least();
    Queue *const queue = &lawn->queues[q];
    const lawn_link_t *const head = &queue->head;
    // Deadlines of other strays, and of any other timers, are not before:
    lawn_time_t strays = earlier_of(lawn->stray_bounds.least_but(q),
                                    lawn->near.first_deadline());
    lawn_time_t others = earlier_of(lawn->bounds.least_but(q), strays);
    while (!list_is_empty(head) && pass->may_go_on()) {
        lawn_timer_t *const timer = timer_of(head->next);
        const uint64_t where = where_is(timer);
        lawn_time_t limit = where == native ? strays : others;
        if (check_of(queue, q, timer) > earlier_of(limit, pass->now)) {
            break;
        }
        lawn_link_t *const next = timer->link.next;
        __builtin_prefetch(next->next);
        list_remove(&timer->link);
        queue->strays -= where != native;
        if (queue->strays != 0 || where != native) {
            const lawn_time_t following =
                next == head ? LAWN_TIME_INFINITY
                             : check_of(queue, q, timer_of(next));
            limit = earlier_of(limit, following);
        }
        if (where != paused && timer->deadline <= pass->now &&
            timer->deadline < limit) {
            fire(lawn, pass, timer);
            continue;
        }
        pass->moves++;
        if (where == paused) {
            timer->place = idle;
        } else if (timer->deadline > pass->now) {
            move(lawn, timer);
        } else {
            insert_near(lawn, timer);
            strays = earlier_of(strays, timer->deadline);
            others = earlier_of(others, timer->deadline);
        }
    }
    settle(lawn, q);
}

void expire(Lawn *lawn, Pass *pass)
{
    while (pass->may_go_on()) {
        if (run_natives(lawn, pass)) {
            continue;
        }
        const lawn_time_t bound = lawn->bounds.least();
        lawn_timer_t *const timer = lawn->near.first();
        if (bound <= pass->now && (!timer || bound <= timer->deadline)) {
            visit(lawn, pass);
        } else if (timer && timer->deadline <= pass->now) {
            lawn->near.remove(timer);
            fire(lawn, pass, timer);
        } else {
            break;
        }
    }
}

} // namespace

void leave(Lawn *lawn)
{
    lawn->busy = false;
    while (!list_is_empty(&lawn->deferred)) {
        lawn_timer_t *const timer = timer_of(lawn->deferred.next);
        list_remove(&timer->link);
        insert_near(lawn, timer);
    }
    lawn->next = earlier_of(lawn->bounds.least(), lawn->near.first_deadline());
}

} // namespace lawn

using namespace lawn;

// Inside a pass `next` has come, so an advance from a callback ends up here.
unsigned lawn_advance_rest(lawn_t *handle, unsigned budget)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(!lawn->busy);
    if (lawn->busy) {
        return 0;
    }
    // The last tick of all is "never", whatever the clock says.
    const lawn_time_t now = earlier_of(lawn->now, LAWN_TIME_INFINITY - 1);
    lawn->busy = true;
    Pass pass = {now, budget, lawn->max_moves, 0, 0};
    expire(lawn, &pass);
    leave(lawn);
    return pass.fired;
}
