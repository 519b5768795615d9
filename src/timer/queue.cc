// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// TTL queues: how the alarm is set, what it does when it fires, and the
// functions of lawn/queue.h that are not inline.

#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

// Returns true if the queue's first timer is due or paused. A mark that has
// come to the head is taken out.
bool has_work(const Lawn *lawn, Queue *queue)
{
    if (queue->timers.next == &queue->mark.link) {
        detach(&queue->mark);
    }
    const lawn_timer_t *const head = first_old(lawn, &queue->timers);
    return head && (head->deadline <= lawn->pass_time || is_paused(head));
}

} // namespace

// An alarm that is set already is never later than the head's deadline, because
// the timers behind come later. If the head was stopped, the alarm is earlier.
void set_alarm(Queue *queue)
{
    lawn_timer_t *const alarm = &queue->alarm.timer;
    if (!is_linked(alarm) && !list_is_empty(&queue->timers)) {
        const lawn_timer_t *const head = timer_of(queue->timers.next);
        // A paused head has lost its deadline. It is looked at in the next
        // pass.
        alarm->deadline = is_paused(head) ? 0 : head->deadline;
        file(impl_of(queue->lawn), alarm);
    }
}

// Fires the queue's due timers. Meanwhile the alarm is the first in `due`. If a
// callback closes the queue or drains the lawn, it is not.
//
// If the budget ends before the turn of the queue, the alarm stays first:
// otherwise each of the queue's timers would wait for a turn of its own. A turn
// is for the timers before the mark, which were in the queue when it began. So
// it ends, whatever callbacks and the program start, stop and pause meanwhile.
void on_alarm(lawn_timer_t *alarm, lawn_time_t)
{
    Queue *const queue = queue_of(alarm);
    Lawn *const lawn = impl_of(queue->lawn);
    ++lawn->running; // which it does not count for
    const size_t left = lawn->budget_left;
    if (!is_linked(&queue->mark)) {
        list_append(&queue->timers, &queue->mark.link);
    }
    alarm->check = open_limit; // before every round
    list_append(lawn->due.next, &alarm->link);
    bool has_budget = true;
    while (has_budget && has_work(lawn, queue)) {
        has_budget = touch(lawn, list_take_first(&queue->timers));
        if (lawn->due.next != &alarm->link) {
            ++lawn->budget_left;
            return;
        }
    }
    // touch() will charge the alarm to the budget. This stands only if no timer
    // of the queue was touched.
    lawn->unfired += lawn->budget_left == left;
    lawn->budget_left += lawn->budget_left != left;
    if (!has_work(lawn, queue) || !is_linked(&queue->mark)) {
        detach(&queue->mark);
        detach(alarm);
        set_alarm(queue);
    }
}

void queue_open(Queue *queue, lawn_t *handle, lawn_time_t ttl)
{
    Lawn *const lawn = impl_of(handle);
    *queue = {};
    queue->lawn = lawn;
    queue->ttl = ttl;
    queue->timers = {&queue->timers, &queue->timers};
    queue->alarm.queue = queue;
    lawn_timer_init(&queue->alarm.timer, on_alarm);
    queue->mark.deadline = LAWN_TIME_INFINITY; // paused
    queue->mark.check = open_limit;
    queue->next = lawn->queues;
    if (lawn->queues) {
        lawn->queues->prev = queue;
    }
    lawn->queues = queue;
}

void queue_close(Queue *queue)
{
    Lawn *const lawn = impl_of(queue->lawn);
    detach(&queue->mark);
    while (!list_is_empty(&queue->timers)) {
        lawn_timer_t *const timer = timer_of(queue->timers.next);
        // Static analyzers do not see that the last one has left the list.
        LAWN_ASSERT(is_linked(timer));
        lawn_timer_stop(lawn, timer);
    }
    detach(&queue->alarm.timer);
    (queue->prev ? queue->prev->next : lawn->queues) = queue->next;
    if (queue->next) {
        queue->next->prev = queue->prev;
    }
}

} // namespace lawn

using namespace lawn;

lawn_status_t lawn_queue_create(lawn_t *lawn, lawn_time_t ttl,
                                lawn_queue_t **queue_p)
{
    if (!lawn || !queue_p) {
        return LAWN_ERR_INVALID_PARAM;
    }
    Queue *const queue =
        static_cast<Queue *>(allocate(impl_of(lawn)->allocator, sizeof(Queue)));
    if (!queue) {
        return LAWN_ERR_NO_MEMORY;
    }
    queue_open(queue, lawn, ttl);
    queue->is_owned = true;
    *queue_p = queue;
    return LAWN_OK;
}

void lawn_queue_destroy(lawn_queue_t *queue)
{
    if (queue) {
        const lawn_allocator_t allocator = impl_of(queue->lawn)->allocator;
        queue_close(static_cast<Queue *>(queue));
        release(allocator, queue);
    }
}

void lawn_queue_start_slow(lawn_queue_t *queue, lawn_timer_t *timer)
{
    Lawn *const lawn = impl_of(queue->lawn);
    assert_own(lawn, timer);
    begin_run(
        lawn, timer,
        announce_start(lawn, timer, add_saturating(lawn->now, queue->ttl)));
    timer->check = lawn->due_check;
    list_append(&queue->timers, &timer->link);
    set_alarm(static_cast<Queue *>(queue));
}

size_t lawn_queue_count(const lawn_queue_t *queue)
{
    size_t count = 0;
    const lawn_link_t *const timers = &queue->timers;
    for (const lawn_link_t *i = timers->next; i != timers; i = i->next) {
        count += is_running(timer_of(i));
    }
    return count;
}
