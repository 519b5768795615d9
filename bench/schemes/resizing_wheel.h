// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The resizing wheel, Algorithm 1 ("Timer Wheel Resize") of the Lawn paper: a
// simple wheel that grows when a TTL does not fit. So the longest TTL need not
// be known beforehand.
//
// Stop and tick are O(1). Start is O(1), except when the wheel grows: then it
// is O(n + slots), and allocates. The wheel has a slot for each tick of the
// longest TTL ever seen, and never shrinks. It is good if TTLs are short and
// the longest one comes early. A single long TTL makes it huge, which is the
// paper's "overflow problem".
//
// The original grows by just the missing size, and moves slots by their index.
// Here the size doubles, so that growth is rare, and each timer is filed again,
// because its slot depends on the size. Growth ends at a cap. A timer beyond
// the cap goes to the slot of its tick modulo the size. It is passed over once
// per revolution until its tick has come, as in a hashed wheel. Timers of equal
// TTLs may then change their order.

#ifndef LAWN_BENCH_SCHEMES_RESIZING_WHEEL_H
#define LAWN_BENCH_SCHEMES_RESIZING_WHEEL_H

#include "list.h"
#include "ticks.h"

#include <vector>

namespace bench
{

class ResizingWheel
{
public:
    static constexpr Traits traits{
        "resizing-wheel",          "Lev-Libfeld, Lawn, algorithm 1",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time tick = 0;
    };

    explicit ResizingWheel(const Config &config)
        : ticks_(config.tick), slots_(256)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        if (!is_turning_) {
            turn_first(now);
        }
        node.tick = ticks_.deadline(now, ttl);
        if (node.tick <= position_) {
            due_.add_for_next_pass(node);
            return;
        }
        const Time distance = node.tick - position_;
        if (distance > slots_.size() && slots_.size() < most_slots) {
            grow(distance);
        }
        slot_of(node.tick).push_back(node);
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        if (!is_turning_) {
            turn_first(now);
        }
        due_.begin_pass(budget);
        const Time from = position_;
        position_ = ticks_.present(now);
        const Time visits = std::min<Time>(position_ - from, slots_.size());
        for (Time i = 1; i <= visits; ++i) {
            expire(slot_of(from + i));
        }
        due_.fire(now, fired);
        return due_.fired();
    }

private:
    static constexpr size_t most_slots = size_t{1} << 20; // 16 MiB

    List<Node> &slot_of(Time tick)
    {
        return slots_[tick & (slots_.size() - 1)];
    }

    // Until it is at its cap, a slot holds one tick and is due as a whole.
    void expire(List<Node> &slot)
    {
        if (slots_.size() < most_slots) {
            due_.add_all(slot);
            return;
        }
        slot.each([&](Node &node) {
            if (node.tick <= position_) {
                due_.add(node);
            }
        });
    }

    // Before its first use the wheel stands at no time in particular, and a
    // distance from there would mean nothing.
    void turn_first(Time now)
    {
        is_turning_ = true;
        position_ = ticks_.present(now);
    }

    void grow(Time distance)
    {
        std::vector<List<Node>> smaller(
            power_of_two(distance, 2 * slots_.size(), most_slots));
        smaller.swap(slots_);
        for (List<Node> &slot : smaller) {
            slot.each([&](Node &node) { slot_of(node.tick).push_back(node); });
        }
    }

    Ticks ticks_;
    std::vector<List<Node>> slots_;
    bool is_turning_ = false;
    Time position_ = 0; // ticks up to this one are over
    DueList<Node> due_;
};

} // namespace bench

#endif
