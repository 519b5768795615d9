// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_backlog() and lawn_dump(), which look at the timers of a lawn and change
// nothing.

#include "timer/lawn_impl.h"

#include <lawn/stats.h>

#include <inttypes.h>

using namespace lawn;

namespace
{

// When the timer is due for the program. An inner one may have been stopped or
// started for later since it was filed: its deadline is INFINITY or later.
lawn_time_t deadline_of(const Lawn *lawn, const lawn_timer_t *timer)
{
    const Inner *const inner = inner_of(lawn, timer);
    return inner ? inner->deadline(timer) : timer->deadline;
}

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
                          deadline_of(count->lawn, timer) <= count->now;
        }
    }
}

struct Dump {
    const Lawn *lawn;
    lawn_time_t now;
    FILE *stream;
};

void print(const lawn_timer_t *timer, void *arg)
{
    const Dump *const dump = static_cast<const Dump *>(arg);
    const lawn_time_t deadline = deadline_of(dump->lawn, timer);
    if (deadline == LAWN_TIME_INFINITY) {
        return; // an inner one that was stopped
    }
    fprintf(dump->stream, "timer 0x%" PRIxPTR " callback 0x%" PRIxPTR " ",
            reinterpret_cast<uintptr_t>(timer),
            reinterpret_cast<uintptr_t>(timer->expired));
    if (deadline == never) {
        fputs("never\n", dump->stream);
    } else {
        const bool is_late = deadline < dump->now;
        const lawn_time_t left =
            is_late ? dump->now - deadline : deadline - dump->now;
        fprintf(dump->stream, "deadline %" PRIu64 " left %s%" PRIu64 "\n",
                deadline, is_late ? "-" : "", left);
    }
}

} // namespace

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

lawn_status_t lawn_dump(const lawn_t *lawn, lawn_time_t now, FILE *stream)
{
    Dump dump = {impl_of(lawn), now, stream};
    for_each_running(lawn, print, &dump);
    return ferror(stream) != 0 ? LAWN_ERR_IO : LAWN_OK;
}
