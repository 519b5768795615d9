// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Scheme 2 of Varghese and Lauck: one list sorted by deadline, as in the
// callout queues of early UNIX. Only the head can be due, so a tick is O(1).
//
// Stop is O(1). Start is O(n): it searches from the tail. If the TTL is among
// the longest, the timer finds its place at once. With one TTL the list is a
// FIFO, and no scheme is faster. With two TTLs, a start with the shorter one
// already walks past every timer of the longer one. The Lawn begins with this
// observation: it has a FIFO for each TTL.

#ifndef LAWN_BENCH_SCHEMES_ORDERED_LIST_H
#define LAWN_BENCH_SCHEMES_ORDERED_LIST_H

#include "list.h"
#include "ticks.h"

namespace bench
{

class OrderedList
{
public:
    static constexpr Traits traits{
        "ordered-list",
        "Varghese & Lauck 1987, scheme 2",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time deadline = 0;
        uint64_t sequence = 0; // number of the start
    };

    explicit OrderedList(const Config &)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        unlink(node);
        node.deadline = deadline_of(now, ttl);
        node.sequence = sequence_++;
        Node *place = timers_.last();
        while (place && place->deadline > node.deadline) {
            place = timers_.before(*place);
        }
        timers_.insert_after(place, node);
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    // A timer started by a callback with a TTL of 0 stands behind all others
    // that are due, and its number tells it from them.
    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        const Time present = before_never(now);
        const uint64_t pass = sequence_;
        unsigned count = 0;
        while (budget == 0 || count < budget) {
            Node *const node = timers_.first();
            if (!node || node->deadline > present || node->sequence >= pass) {
                break;
            }
            unlink(*node);
            ++count;
            fired(*node, now);
        }
        return count;
    }

private:
    List<Node> timers_;
    uint64_t sequence_ = 0;
};

} // namespace bench

#endif
