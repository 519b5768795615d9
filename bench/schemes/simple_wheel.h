// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Scheme 4 of Varghese and Lauck: a circular array with a slot for each future
// tick within a range. A timer goes to the slot of its tick, and each tick
// empties one slot. Everything is O(1), and within the range nothing is faster.
// The original refuses a TTL beyond the range. Other wheels put it into the
// last slot, where it expires early.
//
// Here, a timer beyond the range waits in an overflow list. Once per revolution
// the scheme looks through this list, in O(overflow), and moves the timers that
// are now in range into the wheel. The scheme is good if the longest TTL is
// known and is some thousand ticks. It costs a slot for each tick, and it has a
// resolution. A timer from the overflow list may fire after younger timers of
// its TTL.

#ifndef LAWN_BENCH_SCHEMES_SIMPLE_WHEEL_H
#define LAWN_BENCH_SCHEMES_SIMPLE_WHEEL_H

#include "list.h"
#include "ticks.h"

#include <vector>

namespace bench
{

class SimpleWheel
{
public:
    static constexpr Traits traits{
        "simple-wheel",
        "Varghese & Lauck 1987, scheme 4",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time tick = 0;
    };

    explicit SimpleWheel(const Config &config)
        : ticks_(config.tick), slots_(slots_for(config)),
          mask_(slots_.size() - 1)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        node.tick = ticks_.deadline(now, ttl);
        if (node.tick <= position_) {
            due_.add_for_next_pass(node);
        } else {
            file(node);
        }
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    // A slot holds one tick, so it is due as a whole.
    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        due_.begin_pass(budget);
        const Time from = position_;
        position_ = ticks_.present(now);
        const Time visits = std::min<Time>(position_ - from, slots_.size());
        for (Time i = 1; i <= visits; ++i) {
            due_.add_all(slots_[(from + i) & mask_]);
        }
        const bool new_revolution = (from ^ position_) > mask_;
        if (new_revolution) {
            examine_overflow();
        }
        due_.fire(now, fired);
        return due_.fired();
    }

private:
    static size_t slots_for(const Config &config)
    {
        if (config.longest_ttl == 0) {
            return 4096;
        }
        const Time longest = Ticks(config.tick).deadline(0, config.longest_ttl);
        return power_of_two(deadline_of(longest, 1), 256, size_t{1} << 20);
    }

    // For a tick that is not over yet.
    void file(Node &node)
    {
        if (node.tick - position_ <= slots_.size()) {
            slots_[node.tick & mask_].push_back(node);
        } else {
            overflow_.push_back(node);
        }
    }

    void examine_overflow()
    {
        List<Node> overflow;
        overflow.append(overflow_);
        overflow.each([&](Node &node) {
            if (node.tick <= position_) {
                due_.add(node);
            } else {
                file(node);
            }
        });
    }

    Ticks ticks_;
    std::vector<List<Node>> slots_;
    Time mask_;
    Time position_ = 0; // ticks up to this one are over
    List<Node> overflow_;
    DueList<Node> due_;
};

} // namespace bench

#endif
