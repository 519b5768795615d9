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

// Works off the queue with the least bound, which has come, as long as its
// timers may fire before those of other queues: natives before all but strays,
// strays before nothing. What callbacks start or re-arm meanwhile is due after
// this pass, so what was first at the beginning stays first.
void visit(Lawn *lawn, Pass *pass)
{
    const unsigned c = lawn->bounds.leaf_of_least();
    Queue *const queue = &lawn->queues[c];
    const lawn_link_t *const head = &queue->head;
    // Deadlines of other strays, and of any other timers, are not before:
    lawn_time_t strays = earlier_of(lawn->stray_bounds.least_but(c),
                                    lawn->near.first_deadline());
    lawn_time_t others = earlier_of(lawn->bounds.least_but(c), strays);
    lawn_time_t check = LAWN_TIME_INFINITY;
    for (;;) {
        if (list_is_empty(head)) {
            check = LAWN_TIME_INFINITY;
            break;
        }
        lawn_timer_t *const timer = timer_of(head->next);
        const uint64_t where = where_is(timer);
        lawn_time_t limit = where == native ? strays : others;
        check = check_of(queue, c, timer);
        if (check > pass->now || check > limit || !pass->may_go_on()) {
            break;
        }
        lawn_link_t *const next = timer->link.next;
        __builtin_prefetch(next->next);
        list_remove(&timer->link);
        queue->strays -= where != native;
        if (queue->strays != 0 || where != native) {
            const lawn_time_t following =
                next == head ? LAWN_TIME_INFINITY
                             : check_of(queue, c, timer_of(next));
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
    lawn->bounds.set(c, check);
    lawn->stray_bounds.set(c, queue->strays ? check : LAWN_TIME_INFINITY);
}

void expire(Lawn *lawn, Pass *pass)
{
    while (pass->may_go_on()) {
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
