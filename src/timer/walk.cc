// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Functions that go through the timers of a lawn, for programs and for the
// library's other rooms; and what else those may know of a lawn.

#include "timer/lawn_impl.h"

namespace lawn
{

namespace
{

struct Count {
    const Lawn *lawn;
    lawn_time_t now;
    size_t left; // timers that may still be looked at
    size_t due;
};

// The order of a list, which shows where its due timers end.
enum class Order {
    none,
    by_check,    // a slot
    by_deadline, // a queue, except its paused timers
};

void look(const lawn_link_t *list, Order order, Count *count)
{
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        const lawn_timer_t *const timer = timer_of(i);
        __builtin_prefetch(i->next->next);
        const bool is_end =
            (order == Order::by_check && timer->check > count->now) ||
            (order == Order::by_deadline && timer->deadline > count->now &&
             !is_paused(timer));
        if (is_end || count->left == 0) {
            return;
        }
        --count->left;
        if (is_alarm(timer)) {
            look(&queue_of(timer)->timers, Order::by_deadline, count);
        } else {
            count->due += timer->deadline <= count->now &&
                          program_deadline(count->lawn, timer) <= count->now;
        }
    }
}

} // namespace

void for_each_running(const lawn_t *handle,
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

void for_each_of_kind(lawn_t *handle, lawn_expired_fn_t expired,
                      void (*each)(lawn_timer_t *timer, void *arg), void *arg)
{
    Lawn *const lawn = impl_of(handle);
    const auto call = [=](lawn_link_t *list) {
        for (lawn_link_t *i = list->next; i != list;) {
            lawn_timer_t *const timer = timer_of(i);
            i = i->next;
            if (timer->expired == expired) {
                each(timer, arg);
            }
        }
    };
    call(&lawn->due);
    for (lawn_link_t &slot : lawn->slots) {
        call(&slot);
    }
}

// What stands behind a timer may have been stopped or started for later since
// the timer was filed.
lawn_time_t program_deadline(const lawn_t *lawn, const lawn_timer_t *timer)
{
    const Kind *const kind = kind_of(impl_of(lawn), timer);
    return kind && !kind->is_shown ? kind->deadline(timer) : timer->deadline;
}

void set_kind(lawn_t *lawn, unsigned which, const Kind &kind)
{
    impl_of(lawn)->kinds[which] = kind;
}

const lawn_allocator_t &allocator_of(const lawn_t *lawn)
{
    return impl_of(lawn)->allocator;
}

void *memory_of(const lawn_t *lawn)
{
    return impl_of(lawn)->memory;
}

} // namespace lawn

using namespace lawn;

size_t lawn_count(const lawn_t *lawn)
{
    // An observer that is told of the end of a hidden timer comes between the
    // two counts.
    const size_t hidden = impl_of(lawn)->hidden;
    return lawn->running > hidden ? lawn->running - hidden : 0;
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
            const Kind *const kind = kind_of(of->lawn, timer);
            if (!kind || kind->is_shown) {
                of->each(timer, of->arg);
            }
        },
        &program);
}

size_t lawn_backlog(const lawn_t *handle, lawn_time_t now, size_t max_looks)
{
    const Lawn *const lawn = impl_of(handle);
    Count count = {lawn, earlier_of(now, never - 1),
                   max_looks != 0 ? max_looks : SIZE_MAX, 0};
    look(&lawn->due, Order::none, &count);
    for (unsigned c = 0; c < class_count; ++c) {
        for (uint64_t bits = lawn->filled[c]; bits != 0; bits &= bits - 1) {
            look(&lawn->slots[index_of(c, lowest_bit(bits))], Order::by_check,
                 &count);
        }
    }
    return count.due;
}
