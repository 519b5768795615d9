// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lawn as a whole: made, counted, emptied. start.cc and advance.cc have
// the algorithm; lawn/timer.h the idea and a picture.

#include "base/ticks.h"
#include "timer/lawn_impl.h"

using namespace lawn;

namespace
{

// Moves every timer, paused ones let go, to `list`.
void collect(Lawn *lawn, lawn_link_t *list)
{
    list_init(list);
    for (Queue &queue : lawn->queues) {
        while (!list_is_empty(&queue.head)) {
            lawn_timer_t *const timer = timer_of(queue.head.next);
            list_remove(&timer->link);
            if (where_is(timer) == paused) {
                timer->place = idle;
            } else {
                set_where(timer, listed);
                list_append(list, &timer->link);
            }
        }
        queue.strays = 0;
    }
    lawn->bounds.clear();
    lawn->stray_bounds.clear();
    while (lawn_timer_t *const timer = lawn->near.first()) {
        lawn->near.remove(timer);
        set_where(timer, listed);
        list_append(list, &timer->link);
    }
    while (lawn->calendar.count() != 0) {
        lawn_timer_t *const timer = lawn->calendar.first();
        lawn->calendar.remove(timer);
        set_where(timer, listed);
        list_append(list, &timer->link);
    }
    while (!list_is_empty(&lawn->deferred)) {
        lawn_link_t *const link = lawn->deferred.next;
        list_remove(link);
        list_append(list, link);
    }
}

} // namespace

void lawn::observe(lawn_t *handle, Observer *observer)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(!lawn->busy);
    lawn->observer = observer;
    set_next(lawn, find_next(lawn));
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
    lawn->next = LAWN_TIME_INFINITY;
    lawn->near_span = least_near_span;
    lawn->max_moves = params->max_moves;
    lawn->allocator = params->allocator;
    list_init(&lawn->deferred);
    lawn->bounds.clear();
    lawn->stray_bounds.clear();
    lawn->calendar.init();
    for (unsigned q = 0; q < queue_count; ++q) {
        list_init(&lawn->queues[q].head);
        set_class(&lawn->queues[q], is_single(q) ? 0 : q);
    }
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
    lawn_link_t list;
    collect(lawn, &list);
    for (lawn_link_t *i = list.next; i != &list; i = i->next) {
        timer_of(i)->place = idle;
    }
    release(lawn->allocator, lawn->memory);
}

lawn_time_t lawn_next(const lawn_t *lawn)
{
    if (lawn->running == 0) {
        return LAWN_TIME_INFINITY;
    }
    return lawn->observer ? impl_of(lawn)->observed_next : lawn->next;
}

size_t lawn_count(const lawn_t *lawn)
{
    return lawn->running;
}

unsigned lawn_drain(lawn_t *handle, lawn_expired_fn_t each)
{
    Lawn *const lawn = impl_of(handle);
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
        report(lawn, Event::stop, timer, lawn->now, 0);
        if (each) {
            each(timer, lawn->now);
        }
    }
    if (!nested) {
        leave(lawn);
    }
    return drained;
}
