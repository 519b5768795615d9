// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lawn as a whole: made, counted, walked, emptied. lawn_impl.h and
// advance.cc have the algorithm; lawn/timer.h the idea.

#include "timer/lawn_impl.h"
#include "timer/queue.h"

using namespace lawn;

namespace
{

// Moves everything that is linked to `due`, alarms included.
void collect(Lawn *lawn)
{
    for (auto &slots : lawn->slots) {
        for (lawn_link_t &slot : slots) {
            list_splice(&lawn->due, &slot);
        }
    }
    for (uint64_t &filled : lawn->filled) {
        filled = 0;
    }
    lawn->occupied = 0;
    list_splice(&lawn->due, &lawn->deferred);
    for (Queue *queue = lawn->queues; queue; queue = queue->next) {
        list_splice(&lawn->due, &queue->timers);
        list_splice(&lawn->due, &queue->deferred);
    }
}

template <class List, class Function>
void for_each_running(List *list, Function function)
{
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        if (is_active(timer_of(i)) && !is_alarm(timer_of(i))) {
            function(timer_of(i));
        }
    }
}

} // namespace

void lawn::observe(lawn_t *handle, Observer *observer)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(!lawn->busy);
    lawn->observer = observer;
    open(lawn);
}

bool lawn::is_busy(const lawn_t *lawn)
{
    return impl_of(lawn)->busy;
}

lawn_status_t lawn_create(const lawn_params_t *params, lawn_t **lawn_p)
{
    static const lawn_params_t defaults = {};
    params = params ? params : &defaults;
    if (!lawn_p || !allocator_is_valid(params->allocator)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    void *const memory =
        allocate(params->allocator, sizeof(Lawn) + alignof(Lawn));
    if (!memory) {
        return LAWN_ERR_NO_MEMORY;
    }
    const uintptr_t address =
        (reinterpret_cast<uintptr_t>(memory) + alignof(Lawn) - 1) &
        ~(uintptr_t{alignof(Lawn)} - 1);
    Lawn *const lawn = reinterpret_cast<Lawn *>(address);
    *lawn = {};
    lawn->memory = memory;
    lawn->allocator = params->allocator;
    list_init(&lawn->due);
    list_init(&lawn->deferred);
    for (auto &slots : lawn->slots) {
        for (lawn_link_t &slot : slots) {
            list_init(&slot);
        }
    }
    open(lawn);
    *lawn_p = lawn;
    return LAWN_OK;
}

void lawn_destroy(lawn_t *handle)
{
    Lawn *const lawn = impl_of(handle);
    if (!lawn) {
        return;
    }
    LAWN_ASSERT(!lawn->busy);
    if (lawn->busy) {
        return;
    }
    collect(lawn);
    while (!list_is_empty(&lawn->due)) {
        let_go(timer_of(lawn->due.next));
    }
    const lawn_allocator_t allocator = lawn->allocator;
    for (Queue *queue = lawn->queues; queue;) {
        Queue *const next = queue->next;
        if (queue->is_owned) {
            release(allocator, queue);
        }
        queue = next;
    }
    release(allocator, lawn->memory);
}

lawn_time_t lawn_next(const lawn_t *handle)
{
    const Lawn *const lawn = impl_of(handle);
    return lawn->running == 0 || lawn->wake >= never ? LAWN_TIME_INFINITY
                                                     : lawn->wake;
}

size_t lawn_count(const lawn_t *lawn)
{
    return lawn->running;
}

lawn_time_t lawn_now(const lawn_t *lawn)
{
    return lawn->now;
}

void lawn_for_each(const lawn_t *handle,
                   void (*each)(const lawn_timer_t *timer, void *arg),
                   void *arg)
{
    const Lawn *const lawn = impl_of(handle);
    const auto call = [&](const lawn_timer_t *timer) { each(timer, arg); };
    for (const auto &slots : lawn->slots) {
        for (const lawn_link_t &slot : slots) {
            for_each_running(&slot, call);
        }
    }
    for_each_running(&lawn->due, call);
    for_each_running(&lawn->deferred, call);
    for (const Queue *queue = lawn->queues; queue; queue = queue->next) {
        for_each_running(&queue->timers, call);
        for_each_running(&queue->deferred, call);
    }
}

unsigned lawn_drain(lawn_t *handle, lawn_expired_fn_t each)
{
    Lawn *const lawn = impl_of(handle);
    const bool is_nested = lawn->busy;
    enter(lawn);
    collect(lawn);
    unsigned drained = 0;
    while (!list_is_empty(&lawn->due)) {
        lawn_timer_t *const timer = timer_of(lawn->due.next);
        if (!is_active(timer) || is_alarm(timer)) {
            let_go(timer);
            continue;
        }
        list_remove(&timer->link);
        end_run(lawn, timer);
        ++drained;
        report(lawn, Event::stop, timer, lawn->now, 0);
        if (each) {
            each(timer, lawn->now);
        }
    }
    if (!is_nested) {
        leave(lawn);
    }
    return drained;
}
