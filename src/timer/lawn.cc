// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The Lawn: start, stop and advance. lawn/timer.h has the idea and a picture.
//
// What holds between calls, and lawn_check() verifies:
//   1. check <= deadline for every timer in a queue.
//   2. Checks do not decrease along a queue.
//   3. A queue's bound is <= the check of its head. It may be too low, after a
//      stop; the next visit mends it.
//   4. No check in the queue of class c is later than
//      now + class_floor(c) + class_width(c) - 1.
//   5. A timer with check == deadline was put there by its latest start, and
//      such timers stand in a queue in the order of their starts.
// Never early is plain: only a timer with deadline <= now is fired. Never late
// follows from 1 to 3: while a deadline is <= now, so is some bound, and an
// advance goes on until none is. In order: a timer is fired only when no bound
// is <= its deadline, or only its own queue's is and 5 says that what follows
// comes later; any other waits in the tree until that holds.

#include "base/ticks.h"
#include "timer/lawn_impl.h"

using namespace lawn;

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
    const lawn_time_t space = later_of(width >> 20, 1);
    const lawn_time_t latest = now + class_floor(c);
    const lawn_time_t earliest = width > 1 ? latest - width : latest;
    const lawn_time_t spaced = add_saturating(queue->last_check, space);
    return later_of(queue->last_check,
                    earlier_of(later_of(spaced, earliest), latest));
}

// Files a timer under what remains of its time. `started`: by its start, not
// by a move.
void enqueue(lawn_t *lawn, lawn_timer_t *timer, bool started)
{
    const lawn_time_t now = lawn->now;
    const lawn_time_t remains = timer->deadline - now;
    unsigned c = class_of(remains);
    Queue *queue = &lawn->queues[c];
    // By invariant 5 only a start may check at the deadline.
    const bool exact = started && has_sole_ttl(queue, remains);
    const lawn_time_t latest =
        exact ? timer->deadline
              : earlier_of(now + class_floor(c), timer->deadline - 1);
    lawn_time_t check = exact ? latest : spaced_check(queue, c, now);
    check = later_of(queue->last_check, earlier_of(check, latest));
    if (LAWN_UNLIKELY(check > latest)) {
        // Behind timers with a later check. By invariant 4 those of the class
        // below check before this one's deadline. Class 0 has but one TTL.
        LAWN_ASSERT(c > 0);
        queue = &lawn->queues[--c];
        check = spaced_check(queue, c, now);
    }
    LAWN_ASSERT(check <= timer->deadline);
    const bool is_head = list_is_empty(&queue->head);
    timer->check = check;
    queue->last_check = check;
    set_where(timer, queued);
    list_append(&queue->head, &timer->link);
    if (is_head) {
        lawn->bounds.set(c, check);
        lawn->next = earlier_of(lawn->next, check);
    }
}

// Takes a timer out of whatever holds it; its order and deadline stay.
void unlink(lawn_t *lawn, lawn_timer_t *timer)
{
    if (where_is(timer) == near) {
        lawn->near.remove(timer);
    } else {
        list_remove(&timer->link);
    }
}

void insert_near(lawn_t *lawn, lawn_timer_t *timer)
{
    set_where(timer, near);
    lawn->near.insert(timer);
}

void fire(lawn_t *lawn, lawn_timer_t *timer, lawn_time_t now)
{
    set_where(timer, idle);
    --lawn->running;
    if (timer->expired) {
        timer->expired(timer, now);
    }
}

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

// Files a timer anew whose check has come and whose deadline has not.
void move(lawn_t *lawn, lawn_timer_t *timer)
{
    // A callback may have brought a later time than that of the pass.
    if (timer->deadline <= lawn->now ||
        timer->deadline - lawn->now < near_ticks) {
        insert_near(lawn, timer);
    } else {
        enqueue(lawn, timer, false);
    }
}

// Works off the queue with the least bound, which has come, until another
// comes first. What callbacks start meanwhile is due after this pass, so what
// was first at the beginning stays first.
void visit(lawn_t *lawn, Pass *pass)
{
    const unsigned c = lawn->bounds.leaf_of_least();
    const lawn_link_t *const head = &lawn->queues[c].head;
    lawn_time_t others =
        earlier_of(lawn->bounds.least_but(c), lawn->near.first_deadline());
    lawn_time_t check = LAWN_TIME_INFINITY;
    for (;;) {
        const bool is_empty = list_is_empty(head);
        lawn_timer_t *const timer = timer_of(head->next);
        check = is_empty ? LAWN_TIME_INFINITY : timer->check;
        if (check > pass->now || check > others || !pass->may_go_on()) {
            break;
        }
        lawn_link_t *const next = timer->link.next;
        const lawn_time_t following =
            next == head ? LAWN_TIME_INFINITY : timer_of(next)->check;
        __builtin_prefetch(next->next);
        list_remove(&timer->link);
        if (where_is(timer) == paused) {
            timer->order = idle;
            pass->moves++;
        } else if (timer->deadline > pass->now) {
            move(lawn, timer);
            pass->moves++;
        } else if (timer->deadline < others &&
                   (check == timer->deadline || timer->deadline < following)) {
            pass->fired++;
            fire(lawn, timer, pass->now);
        } else {
            insert_near(lawn, timer);
            others = earlier_of(others, timer->deadline);
            pass->moves++;
        }
    }
    lawn->bounds.set(c, check);
}

void expire(lawn_t *lawn, Pass *pass)
{
    while (pass->may_go_on()) {
        const lawn_time_t bound = lawn->bounds.least();
        lawn_timer_t *const timer = lawn->near.first();
        if (bound <= pass->now && (!timer || bound <= timer->deadline)) {
            visit(lawn, pass);
        } else if (timer && timer->deadline <= pass->now) {
            lawn->near.remove(timer);
            pass->fired++;
            fire(lawn, timer, pass->now);
        } else {
            break;
        }
    }
}

// Ends what set `busy`: timers deferred meanwhile are due from now on.
void leave(lawn_t *lawn)
{
    lawn->busy = false;
    while (!list_is_empty(&lawn->deferred)) {
        lawn_timer_t *const timer = timer_of(lawn->deferred.next);
        list_remove(&timer->link);
        insert_near(lawn, timer);
    }
    lawn->next = earlier_of(lawn->bounds.least(), lawn->near.first_deadline());
}

// Moves every timer, paused ones let go, to `list`.
void collect(lawn_t *lawn, lawn_link_t *list)
{
    list_init(list);
    for (unsigned c = 0; c < class_count; ++c) {
        lawn_link_t *const head = &lawn->queues[c].head;
        while (!list_is_empty(head)) {
            lawn_timer_t *const timer = timer_of(head->next);
            list_remove(&timer->link);
            if (where_is(timer) == paused) {
                timer->order = idle;
            } else {
                set_where(timer, listed);
                list_append(list, &timer->link);
            }
        }
    }
    lawn->bounds.clear();
    while (lawn_timer_t *const timer = lawn->near.first()) {
        lawn->near.remove(timer);
        set_where(timer, listed);
        list_append(list, &timer->link);
    }
    while (!list_is_empty(&lawn->deferred)) {
        lawn_link_t *const link = lawn->deferred.next;
        list_remove(link);
        list_append(list, link);
    }
}

LAWN_COLD_PATH
void start_anew(lawn_t *lawn, lawn_timer_t *timer, lawn_time_t deadline,
                uint64_t order)
{
    const uint64_t where = where_is(timer);
    if (where != idle) {
        unlink(lawn, timer);
    }
    lawn->running += where <= paused;
    timer->deadline = deadline;
    timer->order = order;
    if (lawn->busy && deadline == lawn->now) {
        set_where(timer, listed);
        list_append(&lawn->deferred, &timer->link);
    } else {
        enqueue(lawn, timer, true);
    }
}

// Inside a pass `next` has come, so an advance from a callback ends up here.
LAWN_COLD_PATH
unsigned advance_due(lawn_t *lawn, unsigned budget)
{
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

} // namespace

lawn_status_t lawn_create(const lawn_params_t *params, lawn_t **lawn_p)
{
    static const lawn_params_t defaults = {};
    params = params ? params : &defaults;
    if (!lawn_p || !allocator_is_valid(params->allocator)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_t *const lawn =
        static_cast<lawn_t *>(allocate(params->allocator, sizeof(lawn_t)));
    if (!lawn) {
        return LAWN_ERR_NO_MEMORY;
    }
    *lawn = {};
    lawn->next = LAWN_TIME_INFINITY;
    lawn->max_moves = params->max_moves;
    lawn->allocator = params->allocator;
    list_init(&lawn->deferred);
    lawn->bounds.clear();
    for (Queue &queue : lawn->queues) {
        list_init(&queue.head);
    }
    *lawn_p = lawn;
    return LAWN_OK;
}

void lawn_destroy(lawn_t *lawn)
{
    if (!lawn) {
        return;
    }
    LAWN_ASSERT(!lawn->busy);
    if (lawn->busy) {
        return;
    }
    lawn_link_t list;
    collect(lawn, &list);
    for (lawn_link_t *i = list.next; i != &list; i = i->next) {
        timer_of(i)->order = idle;
    }
    release(lawn->allocator, lawn);
}

void lawn_timer_init(lawn_timer_t *timer, lawn_expired_fn_t expired)
{
    *timer = {};
    timer->expired = expired;
}

void lawn_timer_start(lawn_t *lawn, lawn_timer_t *timer, lawn_time_t now,
                      lawn_time_t ttl)
{
    if (now > lawn->now) {
        lawn->now = now;
    }
    const lawn_time_t deadline = add_saturating(lawn->now, ttl);
    const uint64_t order = ++lawn->starts << where_bits;
    const uint64_t where = where_is(timer);
    // The re-arm: the timer stays where it is and moves when its check comes.
    // Not with ttl 0, which may not be due in the pass that runs; and not to a
    // deadline that is the check, by invariant 5.
    if ((where == queued || where == paused) && deadline > timer->check &&
        ttl != 0) {
        lawn->running += where == paused;
        timer->deadline = deadline;
        timer->order = order | queued;
        return;
    }
    start_anew(lawn, timer, deadline, order);
}

bool lawn_timer_stop(lawn_t *lawn, lawn_timer_t *timer)
{
    const bool was_active = lawn_timer_is_active(timer);
    if (where_is(timer) != idle) {
        unlink(lawn, timer);
    }
    lawn->running -= was_active;
    timer->order = idle;
    return was_active;
}

bool lawn_timer_pause(lawn_t *lawn, lawn_timer_t *timer)
{
    if (where_is(timer) != queued) {
        return where_is(timer) != paused && lawn_timer_stop(lawn, timer);
    }
    --lawn->running;
    set_where(timer, paused);
    return true;
}

bool lawn_timer_is_active(const lawn_timer_t *timer)
{
    return where_is(timer) >= queued;
}

lawn_time_t lawn_timer_deadline(const lawn_timer_t *timer)
{
    const bool none = timer->order == idle || where_is(timer) == paused;
    return none ? LAWN_TIME_INFINITY : timer->deadline;
}

unsigned lawn_advance(lawn_t *lawn, lawn_time_t now, unsigned budget)
{
    if (now > lawn->now) {
        lawn->now = now;
    }
    if (LAWN_LIKELY(lawn->now < lawn->next)) {
        return 0;
    }
    return advance_due(lawn, budget);
}

lawn_time_t lawn_next(const lawn_t *lawn)
{
    return lawn->running != 0 ? lawn->next : LAWN_TIME_INFINITY;
}

size_t lawn_count(const lawn_t *lawn)
{
    return lawn->running;
}

unsigned lawn_drain(lawn_t *lawn, lawn_expired_fn_t each)
{
    const bool nested = lawn->busy;
    lawn->busy = true;
    lawn_link_t list;
    collect(lawn, &list);
    unsigned drained = 0;
    while (!list_is_empty(&list)) {
        lawn_timer_t *const timer = timer_of(list.next);
        list_remove(&timer->link);
        set_where(timer, idle);
        --lawn->running;
        ++drained;
        if (each) {
            each(timer, lawn->now);
        }
    }
    if (!nested) {
        leave(lawn);
    }
    return drained;
}
