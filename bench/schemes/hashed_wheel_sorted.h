// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Scheme 5 of Varghese and Lauck: a wheel whose slots are the buckets of a hash
// table. A timer goes to the slot of its tick modulo the size, in whichever
// revolution its tick is. Each slot is sorted, so a tick looks only at the head
// of one slot.
//
// A tick is O(1), and so is stop. Start is O(n / slots) on average if the ticks
// scatter well, and O(n) if they do not. The search begins at the tail. The
// scheme is good if there are more slots than timers. With fewer slots, scheme
// 6 is better: most timers are stopped before they expire, so the sorting was
// of no use.
//
// A jump over more than a revolution visits each slot once. So timers fire in
// the order of slots and not in the order of time.

#ifndef LAWN_BENCH_SCHEMES_HASHED_WHEEL_SORTED_H
#define LAWN_BENCH_SCHEMES_HASHED_WHEEL_SORTED_H

#include "list.h"
#include "ticks.h"

#include <vector>

namespace bench
{

class HashedWheelSorted
{
public:
    static constexpr Traits traits{
        "hashed-wheel-sorted",     "Varghese & Lauck 1987, scheme 5",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time tick = 0;
    };

    explicit HashedWheelSorted(const Config &config)
        : ticks_(config.tick),
          slots_(power_of_two(config.capacity, 512, size_t{1} << 16)),
          mask_(slots_.size() - 1)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        unlink(node);
        node.tick = ticks_.deadline(now, ttl);
        if (node.tick <= position_) {
            due_.add_for_next_pass(node);
            return;
        }
        List<Node> &slot = slots_[node.tick & mask_];
        Node *place = slot.last();
        while (place && place->tick > node.tick) {
            place = slot.before(*place);
        }
        slot.insert_after(place, node);
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
            List<Node> &slot = slots_[(from + i) & mask_];
            Node *node = slot.first();
            while (node && node->tick <= position_) {
                due_.add(*node);
                node = slot.first();
            }
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
