// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Scheme 1 of Varghese and Lauck: all timers are in one unsorted list, and
// every tick looks at each of them. (The original decrements a counter in each
// timer. Comparing deadlines is the same visit without the store.)
//
// Start and stop are O(1). A tick is O(n), whether or not a timer is due. The
// scheme is good for a handful of timers, or if ticks are rare. It is useless
// in a loop that polls. The list keeps the order of starts, so timers of equal
// TTLs fire in order.

#ifndef LAWN_BENCH_SCHEMES_UNORDERED_LIST_H
#define LAWN_BENCH_SCHEMES_UNORDERED_LIST_H

#include "list.h"
#include "ticks.h"

namespace bench
{

class UnorderedList
{
public:
    static constexpr Traits traits{
        "unordered-list",           "Varghese & Lauck 1987, scheme 1",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time deadline = 0;
    };

    explicit UnorderedList(const Config &)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        node.deadline = deadline_of(now, ttl);
        timers_.push_back(node);
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    // What callbacks start goes to the list, which has been walked by then.
    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        const Time present = before_never(now);
        due_.begin_pass(budget);
        timers_.each([&](Node &node) {
            if (node.deadline <= present) {
                due_.add(node);
            }
        });
        due_.fire(now, fired);
        return due_.fired();
    }

private:
    List<Node> timers_;
    DueList<Node> due_;
};

} // namespace bench

#endif
