// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Creates, walks, drains and destroys a lawn. Also has the parts of start, stop
// and pause that are not inline.

#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

// The limit is closed by an observer, a pass or lawn_settle(), or the deadline
// is 2^63 or later.
LAWN_COLD_PATH void start_closed(Lawn *lawn, lawn_timer_t *timer,
                                 lawn_time_t deadline)
{
    deadline = announce_start(lawn, timer, deadline);
    // A re-arm leaves the timer in its slot here, too. If it took it out, the
    // slot might be empty when an engine wakes up for it. In a pass, a timer
    // that is due at once would fire in this pass if it stayed.
    if (is_linked(timer) && deadline >= timer->check && deadline < open_limit &&
        (deadline > lawn->now || !lawn->busy)) {
        lawn->running += is_paused(timer);
        timer->deadline = deadline;
    } else {
        begin_run(lawn, timer, deadline);
        file(lawn, timer);
    }
}

// Moves all timers from the slots to `due`, alarms too.
void begin_drain(Lawn *lawn)
{
    for (lawn_link_t &slot : lawn->slots) {
        while (!list_is_empty(&slot)) {
            LAWN_ASSERT(is_in_place(slot.next) && is_in_place(&slot) &&
                        "no timer was lost while it ran");
            lawn_timer_t *const timer = list_take_first(&slot);
            list_append(&lawn->due, &timer->link);
            timer->check = open_limit;
        }
    }
}

// An alarm stands for its queue until all timers are drained that were in the
// queue when the drain began.
lawn_timer_t *next_to_drain(Lawn *lawn)
{
    lawn_timer_t *timer = first_old(lawn, &lawn->due);
    while (timer && is_alarm(timer)) {
        Queue *const queue = queue_of(timer);
        if (lawn_timer_t *const member = first_old(lawn, &queue->timers)) {
            return member;
        }
        detach(timer);
        set_alarm(queue);
        timer = first_old(lawn, &lawn->due);
    }
    return timer;
}

// Stops the timer but leaves it in its list. Returns true if the timer was
// running.
bool end(Lawn *lawn, lawn_timer_t *timer, lawn_event_t event)
{
    assert_own(lawn, timer);
    report(lawn, event, timer, lawn->now, 0);
    if (!is_linked(timer)) {
        timer->check = 0; // the deadline that it fired at, if it has
        return false;
    }
    const bool was_running = !is_paused(timer);
    lawn->running -= was_running;
    timer->deadline = LAWN_TIME_INFINITY;
    return was_running;
}

} // namespace

#ifndef NDEBUG // for assertions
bool may_hold(const Lawn *lawn, const lawn_timer_t *timer)
{
    constexpr unsigned most_steps = 16;
    const lawn_time_t deadline = timer->deadline;
    if (!is_linked(timer)) {
        return deadline == 0 || deadline == LAWN_TIME_INFINITY;
    }
    const lawn_link_t *link = &timer->link;
    for (unsigned i = 0; i < most_steps; ++i) {
        if (!is_in_place(link)) {
            return false;
        }
        link = link->next;
        const Queue *queue = lawn->queues;
        while (queue && &queue->timers != link) {
            queue = queue->next;
        }
        const auto inside = reinterpret_cast<uintptr_t>(link) -
                            reinterpret_cast<uintptr_t>(lawn);
        if (queue || inside < sizeof(Lawn)) {
            break; // the head of one of our lists
        }
        if (link == &timer->link) {
            return false; // once round a list of another lawn
        }
    }
    return timer->check <= deadline || timer->check >= open_limit;
}
#endif

lawn_time_t announce_start(Lawn *lawn, const lawn_timer_t *timer,
                           lawn_time_t deadline)
{
    if (lawn->limit == 0 && !lawn->busy) {
        reopen(lawn); // lawn_settle() may have moved `wake`
    }
    deadline = earlier_of(deadline, never);
    LAWN_PROBE(start, timer, deadline, lawn->now);
    report(lawn, LAWN_EVENT_START, timer, lawn->now,
           deadline == never ? LAWN_TIME_INFINITY
                             : later_of(deadline, lawn->now) - lawn->now);
    return deadline;
}

void file_due(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->deadline == never) {
        file_in_class(lawn, timer, 0);
        return;
    }
    timer->check = lawn->due_check;
    list_append(&lawn->due, &timer->link);
    set_wake(lawn, earlier_of(lawn->wake, timer->deadline));
}

} // namespace lawn

using namespace lawn;

lawn_status_t lawn_observe(lawn_t *lawn, lawn_observer_t *observer)
{
    if (!lawn || !observer || !observer->event) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (is_busy(lawn) || lawn->observer) {
        return LAWN_ERR_BUSY;
    }
    lawn->observer = observer;
    reopen(impl_of(lawn));
    return LAWN_OK;
}

lawn_status_t lawn_unobserve(lawn_t *lawn, const lawn_observer_t *observer)
{
    if (!lawn || !observer || lawn->observer != observer) {
        return LAWN_ERR_NO_ELEM;
    }
    if (is_busy(lawn)) {
        return LAWN_ERR_BUSY;
    }
    lawn->observer = nullptr;
    reopen(impl_of(lawn));
    return LAWN_OK;
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
    const uintptr_t end = reinterpret_cast<uintptr_t>(memory) + alignof(Lawn);
    Lawn *const lawn = reinterpret_cast<Lawn *>(end - end % alignof(Lawn));
    *lawn = {};
    lawn->memory = memory;
    lawn->allocator = params->allocator;
    lawn->due_check = open_limit;
    lawn->due = {&lawn->due, &lawn->due};
    for (lawn_link_t &slot : lawn->slots) {
        slot = {&slot, &slot};
    }
    reopen(lawn);
    *lawn_p = lawn;
    return LAWN_OK;
}

void lawn_destroy(lawn_t *handle)
{
    LAWN_ASSERT(!handle || !is_busy(handle));
    if (!handle || is_busy(handle)) {
        return;
    }
    handle->observer = nullptr;
    lawn_drain(handle, nullptr);
    Lawn *const lawn = impl_of(handle);
    const lawn_allocator_t allocator = lawn->allocator;
    while (Queue *const queue = lawn->queues) {
        lawn->queues = queue->next;
        if (queue->is_owned) {
            release(allocator, queue);
        }
    }
    release(allocator, lawn->memory);
}

void lawn_timer_start_rest(lawn_t *handle, lawn_timer_t *timer,
                           lawn_time_t deadline)
{
    Lawn *const lawn = impl_of(handle);
    assert_own(lawn, timer);
    if (LAWN_UNLIKELY(deadline >= lawn->limit)) {
        start_closed(lawn, timer, deadline);
        return;
    }
    LAWN_PROBE(start, timer, deadline, lawn->now);
    begin_run(lawn, timer, deadline);
    file(lawn, timer);
}

bool lawn_timer_stop_rest(lawn_t *lawn, lawn_timer_t *timer)
{
    const bool was_running = end(impl_of(lawn), timer, LAWN_EVENT_STOP);
    detach(timer);
    return was_running;
}

bool lawn_timer_pause_rest(lawn_t *lawn, lawn_timer_t *timer)
{
    return end(impl_of(lawn), timer, LAWN_EVENT_PAUSE);
}

size_t lawn_count(const lawn_t *lawn)
{
    // An observer that is told of the end of an inner timer comes between the
    // two counts.
    const size_t inner = impl_of(lawn)->inner_running;
    return lawn->running > inner ? lawn->running - inner : 0;
}

void lawn::for_each_running(const lawn_t *handle,
                            void (*each)(const lawn_timer_t *timer, void *arg),
                            void *arg)
{
    const Lawn *const lawn = impl_of(handle);
    const auto call = [=](const lawn_link_t *list) {
        for (const lawn_link_t *i = list->next; i != list; i = i->next) {
            if (is_running(timer_of(i))) {
                each(timer_of(i), arg);
            }
        }
    };
    for (const lawn_link_t &slot : lawn->slots) {
        call(&slot);
    }
    call(&lawn->due);
    for (const Queue *queue = lawn->queues; queue; queue = queue->next) {
        call(&queue->timers);
    }
}

void lawn_for_each(const lawn_t *lawn,
                   void (*each)(const lawn_timer_t *timer, void *arg),
                   void *arg)
{
    struct Program {
        const Lawn *lawn;
        void (*each)(const lawn_timer_t *timer, void *arg);
        void *arg;
    } program = {impl_of(lawn), each, arg};
    for_each_running(
        lawn,
        [](const lawn_timer_t *timer, void *self) {
            const Program *const of = static_cast<const Program *>(self);
            if (!inner_of(of->lawn, timer)) {
                of->each(timer, of->arg);
            }
        },
        &program);
}

unsigned lawn_drain(lawn_t *handle, lawn_expired_fn_t each)
{
    Lawn *const lawn = impl_of(handle);
    const bool is_nested = lawn->busy;
    enter(lawn);
    unsigned drained = 0;
    begin_drain(lawn);
    while (lawn_timer_t *const timer = next_to_drain(lawn)) {
        // Static analyzers do not see that the last one has left its list.
        LAWN_ASSERT(is_linked(timer));
        list_remove(&timer->link);
        if (!is_running(timer)) {
            timer->link.next = nullptr;
            continue;
        }
        end_run(lawn, timer);
        report(lawn, LAWN_EVENT_STOP, timer, lawn->now, 0);
        if (const Inner *const inner = inner_of(lawn, timer)) {
            inner->on_drain(timer);
            continue;
        }
        if (lawn->on_hand_over) {
            lawn->on_hand_over(timer);
        }
        ++drained;
        if (each) {
            each(timer, lawn->now);
        }
    }
    if (!is_nested) {
        reopen(lawn);
    }
    return drained;
}
