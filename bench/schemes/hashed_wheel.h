// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Scheme 6 of Varghese and Lauck: a hashed wheel with unsorted slots, as in the
// callouts of the BSDs and Netty's HashedWheelTimer. A timer goes to the slot
// of its tick modulo the size. Each tick looks at every timer of one slot, and
// leaves the timers whose round has not come.
//
// Start and stop are O(1). A tick is O(n / slots) on average. A running timer
// is looked at once per revolution. The scheme is good if there are more slots
// than the usual TTL has ticks. It is poor with long TTLs, because their timers
// are looked at many times, and with deadlines that crowd in a few slots. The
// original and Netty count rounds down in each timer. Comparing the tick
// instead saves this store.
//
// A jump over more than a revolution visits each slot once. So timers fire in
// the order of slots and not in the order of time.

#ifndef LAWN_BENCH_SCHEMES_HASHED_WHEEL_H
#define LAWN_BENCH_SCHEMES_HASHED_WHEEL_H

#include "list.h"
#include "ticks.h"

#include <vector>

namespace bench
{

class HashedWheel
{
public:
    static constexpr Traits traits{
        "hashed-wheel",
        "Varghese & Lauck 1987, scheme 6; Netty",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time tick = 0;
    };

    explicit HashedWheel(const Config &config)
        : ticks_(config.tick),
          slots_(power_of_two(config.capacity, 512, size_t{1} << 16)),
          mask_(slots_.size() - 1)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        node.tick = ticks_.deadline(now, ttl);
        if (node.tick <= position_) {
            due_.add_for_next_pass(node);
        } else {
            slots_[node.tick & mask_].push_back(node);
        }
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    // What callbacks start may land in a slot that is still to be visited; its
    // tick is to come, so it stays there.
    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        due_.begin_pass(budget);
        const Time from = position_;
        position_ = ticks_.present(now);
        due_.fire(now, fired);
        const Time visits = std::min<Time>(position_ - from, slots_.size());
        for (Time i = 1; i <= visits; ++i) {
            slots_[(from + i) & mask_].each([&](Node &node) {
                if (node.tick <= position_) {
                    due_.add(node);
                }
            });
            due_.fire(now, fired);
        }
        return due_.fired();
    }

private:
    Ticks ticks_;
    std::vector<List<Node>> slots_;
    Time mask_;
    Time position_ = 0; // ticks up to this one are over
    DueList<Node> due_;
};

} // namespace bench

#endif
