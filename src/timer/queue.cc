// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// TTL queues.

#include "timer/queue.h"

namespace lawn
{

namespace
{

const lawn_timer_t *head_of(const Queue *queue)
{
    const bool is_deferred = list_is_empty(&queue->timers);
    return timer_of((is_deferred ? queue->deferred : queue->timers).next);
}

bool is_empty(const Queue *queue)
{
    return list_is_empty(&queue->timers) && list_is_empty(&queue->deferred);
}

// Sets the alarm, if there is something to wait for. One that is set already is
// no later than the head's deadline, since those behind come later; it is
// earlier after the head was stopped.
void set_alarm(Queue *queue)
{
    lawn_timer_t *const alarm = &queue->alarm.timer;
    if (is_linked(alarm) || is_empty(queue)) {
        return;
    }
    const lawn_time_t deadline = head_of(queue)->deadline;
    // Which one a paused head had is forgotten.
    alarm->deadline = deadline == LAWN_TIME_INFINITY ? 0 : deadline;
    file(impl_of(queue->lawn), alarm);
}

// Fires what is due. The alarm has counted as a touch; where timers are touched
// it was none.
void on_alarm(lawn_timer_t *alarm, lawn_time_t now)
{
    Queue *const queue = queue_of(alarm);
    Lawn *const lawn = impl_of(queue->lawn);
    Pass *const pass = lawn->pass;
    ++lawn->running;
    const size_t left = ++pass->left;
    lawn_link_t *const list = &queue->timers;
    lawn->running_queue = queue;
    while (pass->left != 0 && !list_is_empty(list)) {
        lawn_timer_t *const timer = timer_of(list->next);
        const bool is_paused = timer->deadline == LAWN_TIME_INFINITY;
        if (timer->deadline > now && !is_paused) {
            break;
        }
        __builtin_prefetch(timer->link.next->next);
        touch(lawn, pass, timer);
        if (lawn->running_queue != queue) {
            return; // closed, and perhaps freed
        }
    }
    lawn->running_queue = nullptr;
    if (pass->left == left) {
        --pass->left;
        ++pass->moved;
    }
    set_alarm(queue);
}

void let_go_of_all(Lawn *lawn, lawn_link_t *list)
{
    while (!list_is_empty(list)) {
        lawn_timer_t *const timer = timer_of(list->next);
        if (is_active(timer)) {
            report(lawn, Event::stop, timer, lawn->now, 0);
            --lawn->running;
        }
        let_go(timer);
    }
}

size_t count_running(const lawn_link_t *list)
{
    size_t count = 0;
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        count += is_active(timer_of(i));
    }
    return count;
}

} // namespace

void queue_open(Queue *queue, lawn_t *handle, lawn_time_t ttl)
{
    Lawn *const lawn = impl_of(handle);
    *queue = {};
    queue->lawn = lawn;
    queue->ttl = ttl;
    list_init(&queue->timers);
    list_init(&queue->deferred);
    queue->alarm.queue = queue;
    lawn_timer_init(&queue->alarm.timer, on_alarm);
    queue->next = lawn->queues;
    if (lawn->queues) {
        lawn->queues->prev = queue;
    }
    lawn->queues = queue;
}

void queue_close(Queue *queue)
{
    Lawn *const lawn = impl_of(queue->lawn);
    let_go_of_all(lawn, &queue->timers);
    let_go_of_all(lawn, &queue->deferred);
    if (is_linked(&queue->alarm.timer)) {
        let_go(&queue->alarm.timer);
    }
    (queue->prev ? queue->prev->next : lawn->queues) = queue->next;
    if (queue->next) {
        queue->next->prev = queue->prev;
    }
    if (lawn->running_queue == queue) {
        lawn->running_queue = nullptr;
    }
    for (Queue **i = &lawn->deferred_queues; *i; i = &(*i)->next_deferred) {
        if (*i == queue) {
            *i = queue->next_deferred;
            break;
        }
    }
}

void end_deferral(Lawn *lawn)
{
    while (Queue *const queue = lawn->deferred_queues) {
        lawn->deferred_queues = queue->next_deferred;
        queue->is_deferred = false;
        list_splice(&queue->timers, &queue->deferred);
    }
}

bool is_alarm(const lawn_timer_t *timer)
{
    return timer->expired == on_alarm;
}

bool is_head(const Lawn *lawn, const lawn_link_t *link)
{
    const lawn_link_t *const first = lawn->slots[0];
    const lawn_link_t *const end = first + class_count * slot_count;
    if ((link >= first && link < end) || link == &lawn->due ||
        link == &lawn->deferred) {
        return true;
    }
    for (const Queue *i = lawn->queues; i; i = i->next) {
        if (link == &i->timers || link == &i->deferred) {
            return true;
        }
    }
    return false;
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

void lawn_queue_destroy(lawn_queue_t *handle)
{
    if (!handle) {
        return;
    }
    Queue *const queue = impl_of(handle);
    const lawn_allocator_t allocator = impl_of(queue->lawn)->allocator;
    queue_close(queue);
    release(allocator, queue);
}

void lawn_queue_start_rest(lawn_queue_t *handle, lawn_timer_t *timer)
{
    Queue *const queue = impl_of(handle);
    Lawn *const lawn = impl_of(queue->lawn);
    LAWN_ASSERT(may_hold(lawn, timer));
    if (lawn->is_settled) {
        open(lawn);
    }
    report(lawn, Event::start, timer, lawn->now, queue->ttl);
    lawn->running += !is_active(timer);
    if (is_linked(timer)) {
        list_remove(&timer->link);
    }
    timer->deadline = earlier_of(add_saturating(lawn->now, queue->ttl), never);
    timer->check = LAWN_TIME_INFINITY;
    if (queue->ttl == 0 && lawn->busy) {
        list_append(&queue->deferred, &timer->link);
        if (!queue->is_deferred) {
            queue->is_deferred = true;
            queue->next_deferred = lawn->deferred_queues;
            lawn->deferred_queues = queue;
        }
    } else {
        list_append(&queue->timers, &timer->link);
    }
    if (lawn->running_queue != queue) {
        set_alarm(queue);
    }
}

lawn_time_t lawn_queue_ttl(const lawn_queue_t *queue)
{
    return queue->ttl;
}

size_t lawn_queue_count(const lawn_queue_t *queue)
{
    return count_running(&queue->timers) +
           count_running(&static_cast<const Queue *>(queue)->deferred);
}
